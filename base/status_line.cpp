#include "base/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace onestep {
namespace {

constexpr const char* kClear = "\r\x1b[K";

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Columns of stderr's terminal without the last, after which some wrap.
size_t columns() {
#ifdef TIOCGWINSZ
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col - size_t{1};
#endif
  return 79;
}

/// The parts two spaces apart, as many as fit; of the first at least its beginning.
std::string joined(const std::vector<std::string>& parts, size_t width) {
  std::string line;
  for (const std::string& part : parts) {
    if (line.size() + part.size() + 2 > width && !line.empty()) break;
    line += (line.empty() ? "" : "  ") + part;
  }
  return line.substr(0, width);
}

}  // namespace

StatusLine::StatusLine()
    : terminal_(::isatty(STDERR_FILENO) == 1 && variable("TERM") != "dumb"),
      styled_(terminal_ && variable("NO_COLOR").empty()) {}

StatusLine::~StatusLine() {
  if (!live_.empty()) std::cerr << kClear << std::flush;
}

void StatusLine::show(const std::vector<std::string>& parts) {
  if (!terminal_) {
    std::cerr << joined(parts, std::string::npos) << std::endl;
    return;
  }
  live_ = joined(parts, columns());
  if (styled_) live_ = "\x1b[2m" + live_ + "\x1b[0m";
  std::cerr << kClear << live_ << std::flush;
}

void StatusLine::print(const std::vector<std::string>& parts) {
  const std::string line = joined(parts, terminal_ ? columns() : std::string::npos);
  if (terminal_) std::cerr << kClear;
  std::cerr << (styled_ ? "\x1b[1m" + line + "\x1b[0m" : line) << std::endl;
  live_.clear();
}

void StatusLine::keep() {
  if (!live_.empty()) std::cerr << std::endl;
  live_.clear();
}

}  // namespace onestep

#include "cli/commands/stop_signals.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace onestep::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0, silent = 0;

/// A terminal that is closed may send SIGHUP twice: only the other two end the program the second time.
void on_signal(int) {
  interrupted = 1;
  constexpr std::string_view kSentence =
      "\nonestep: finishing the step and saving (a second signal ends the run at once, unsaved)\n";
  if (silent == 0) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
  }
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_stop_signals(bool quiet) {
  silent = quiet ? 1 : 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup
}

bool stop_signalled() { return interrupted != 0; }

}  // namespace onestep::cli

#include "train/text_files.h"

#include <glob.h>

#include <algorithm>
#include <set>
#include <vector>

#include "autograd/error.h"
#include "train/files.h"
#include "train/utf8.h"

namespace onestep::train {
namespace {

constexpr int64_t kMaxTextBytes = int64_t{4} << 30;

// The files that match, sorted by bytes whatever the locale.
std::vector<std::string> matching_files(const std::string& pattern) {
  std::vector<std::string> names;
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_files(const Config& config) {
  if (!config.data.path.empty()) return {config.data.path};
  std::vector<std::string> files;
  std::set<std::string> seen;
  for (size_t i = 0; i < config.data.paths.size(); ++i) {
    const std::string& pattern = config.data.paths[i];
    const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
    const std::vector<std::string> names = is_pattern ? matching_files(pattern) : std::vector<std::string>{pattern};
    check<ConfigError>(!names.empty(), config.origin.at("/data/paths/" + std::to_string(i)),
                       ": no file matches: ", quote(pattern), " (paths are relative to the working directory)");
    for (const std::string& name : names) {
      if (seen.insert(name).second) files.push_back(name);
    }
  }
  return files;
}

}  // namespace

std::string read_text(const Config& config) {
  if (!config.data.text.empty()) return config.data.text;
  std::string text;
  for (const std::string& file : list_files(config)) {
    const std::string part = read_file(file, kMaxTextBytes - static_cast<int64_t>(text.size()));
    const bool any_bytes = config.data.tokenizer == "byte" || config.data.tokenizer == "bpe";
    const size_t invalid = any_bytes ? std::string::npos : find_invalid_utf8(part);
    check<IoError>(invalid == std::string::npos, file, ": not UTF-8: byte ",
                   quote(std::string_view(part).substr(std::min(invalid, part.size()), 1)), " at offset ", invalid,
                   " (data.tokenizer = byte or bpe takes any bytes)");
    text += part;
  }
  return text;
}

}  // namespace onestep::train

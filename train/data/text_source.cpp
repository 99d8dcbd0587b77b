#include "train/data/text_source.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/open_file.h"
#include "base/utf8.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;

// The file of that very name, or the files that match, sorted by bytes whatever the locale.
std::vector<std::string> matching_files(const std::string& pattern) {
  std::error_code ignored;
  const bool cut_short = pattern.find('\0') != std::string::npos;  // by glob; refused where it is opened
  if (pattern.find_first_of("*?[") == std::string::npos || cut_short || fs::exists(pattern, ignored)) return {pattern};
  std::vector<std::string> names;
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::erase_if(names, [&](const std::string& name) { return fs::is_directory(name, ignored); });
  std::sort(names.begin(), names.end());
  return names;
}

bool finds(const std::string& pattern) {
  const std::vector<std::string> names = matching_files(pattern);
  std::error_code ignored;
  return !names.empty() && fs::exists(names[0], ignored);
}

// The pattern as it counts from the working directory or, for a run that finds nothing there, from the nearest folder above the
// run: it may have been started in one of them. The tokens are compared with those that it was trained on.
std::string located(const std::string& pattern, const ConfigOrigin& origin) {
  if (origin.run.empty() || finds(pattern)) return pattern;
  for (fs::path folder = fs::absolute(origin.run); folder.has_relative_path();) {
    folder = folder.parent_path();
    if (const std::string there = (folder / pattern).string(); finds(there)) return there;
  }
  return pattern;
}

// One name for a file however it is called.
std::string canonical(const std::string& name) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(name, error);
  return error ? name : path.string();
}

}  // namespace

std::vector<std::string> text_files(const Config& config) {
  if (!config.data.path.empty()) return {located(config.data.path, config.origin)};
  std::vector<std::string> files;
  std::set<std::string> seen;
  for (size_t i = 0; i < config.data.paths.size(); ++i) {
    const std::string& pattern = config.data.paths[i];
    const std::vector<std::string> names = matching_files(located(pattern, config.origin));
    ONESTEP_CHECK(ConfigError, !names.empty(), config.origin.at("/data/paths/" + std::to_string(i)),
                  ": no file matches: ", quote(pattern), " (paths are relative to the working directory)");
    for (const std::string& name : names) {
      if (seen.insert(canonical(name)).second) files.push_back(name);
    }
  }
  return files;
}

std::vector<std::string> validation_files(const Config& config) {
  if (config.data.val_path.empty()) return {};
  return {located(config.data.val_path, config.origin)};
}

namespace {

// Names, sizes, times and inodes of the files; `ends` gets where each ends in the whole text.
std::string stamp_of(const std::vector<std::string>& files, std::vector<int64_t>& ends) {
  Hasher hasher;
  int64_t end = 0;
  for (const std::string& file : files) {
    struct stat status {};
    ONESTEP_CHECK(IoError, ::stat(file.c_str(), &status) == 0, file, ": cannot be examined: ", error_reason(errno));
    const int64_t facts[] = {status.st_size,
                             static_cast<int64_t>(status.st_ino),
                             static_cast<int64_t>(status.st_dev),
                             status.st_mtim.tv_sec,
                             status.st_mtim.tv_nsec,
                             status.st_ctim.tv_sec,
                             status.st_ctim.tv_nsec};
    hasher.update(file.c_str(), file.size() + 1);
    hasher.update(facts, sizeof facts);
    ends.push_back(end += status.st_size);
  }
  return hasher.hex();
}

}  // namespace

TextReader::TextReader(std::vector<std::string> files) : files_(std::move(files)), starts_{0} {
  for (const std::string& file : files_) InputFile checked(file);
  stamp_ = stamp_of(files_, starts_);
}

size_t TextReader::read(char* to, size_t count) {
  while (next_ < files_.size()) {
    if (!open_) open_ = std::make_unique<InputFile>(files_[next_]);
    if (const size_t got = open_->read_some(to, count)) return got;
    open_.reset();
    ++next_;
  }
  std::vector<int64_t> ends;
  ONESTEP_CHECK(IoError, stamp_of(files_, ends) == stamp_,
                files_.size() == 1 ? files_[0] : files_[0] + " or another file of the text", ": changed while it was read");
  return 0;
}

std::string TextReader::place(int64_t offset) const {
  size_t file = 0;
  while (file + 1 < files_.size() && offset >= starts_[file + 1]) ++file;
  return files_[file] + ": offset " + std::to_string(offset - starts_[file]);
}

}  // namespace onestep::train

#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/open_file.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "base/write_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/frozen_file.h"

namespace onestep::train {

namespace fs = std::filesystem;

namespace {

/// Nothing is in the folder but files of these names.
bool holds_only(const fs::path& folder, const std::set<std::string>& names) {
  const auto entries = fs::directory_iterator(folder);
  return std::all_of(begin(entries), end(entries), [&](const auto& e) { return names.contains(e.path().filename().string()); });
}

/// Nothing is in the folder but what a start that was killed may have left before it was a run.
bool is_unused(const fs::path& folder) { return holds_only(folder, {".config.json.tmp"}); }

/// Nothing is there that has to give way to a new run.
bool is_free(const fs::path& run) { return !fs::exists(run) || (fs::is_directory(run) && is_unused(run)); }

/// NAME.previous, NAME.previous.2, NAME.previous.3, ...: the first that is free.
fs::path place_for_earlier(const fs::path& run) {
  const std::string first = run.string() + ".previous";
  fs::path place = first;
  for (int n = 2; fs::exists(fs::symlink_status(place)); ++n) place = first + '.' + std::to_string(n);
  return place;
}

/// Moves an earlier run of that name away and says where to. Refuses to touch what is not a run.
void set_aside(const fs::path& run) {
  if (is_free(run)) return;
  ONESTEP_CHECK(IoError, is_run(run), run.string(), ": is there already and not the folder of a run (name another with --out)");
  const RunLock lock(run);
  const fs::path place = place_for_earlier(run);
  std::error_code error;
  fs::rename(run, place, error);
  ONESTEP_CHECK(IoError, !error, run.string(), ": the earlier run cannot be moved to ", place.string(), ": ",
                error_reason(error.value()));
  std::cerr << "onestep: " << escaped(run.string()) << ": the earlier run of this name is now " << escaped(place.string())
            << '\n';
}

}  // namespace

bool is_run(const fs::path& folder) {
  const std::string path = (folder / "config.json").string();
  if (!fs::is_regular_file(path)) return false;
  try {
    const Config config = load_config(path);
    if (fs::exists(folder / "metrics.jsonl") || !checkpoint_folders(folder).empty()) return true;
    const bool resolved = read_file(path, static_cast<int64_t>(fs::file_size(path))) == resolved_json(config);
    return resolved &&
           holds_only(folder, {"config.json", "tokenizer.json", kFrozenFile, ".config.json.tmp", ".tokenizer.json.tmp"});
  } catch (const Error&) {
    return false;
  }
}

std::string metrics_path(const fs::path& run) {
  const std::string path = (run / "metrics.jsonl").string();
  std::error_code error;
  const bool missing = !fs::exists(path, error) && !error;
  ONESTEP_CHECK(IoError, !missing || !is_run(run), run.string(),
                ": is a run without metrics (it was imported, or stopped before its first step)");
  ONESTEP_CHECK(IoError, !missing, run.string(), ": is not the folder of a run (it has no metrics.jsonl)");
  return path;
}

void check_stays(const fs::path& source, const fs::path& run) {
  if (is_free(run)) return;
  const fs::path relative = fs::weakly_canonical(source).lexically_relative(fs::weakly_canonical(run));
  const bool stays = relative.empty() || *relative.begin() == "..";
  ONESTEP_CHECK(ConfigError, stays, source.string(), ": would be moved away for the new run ", run.string(),
                " (name another folder with --out)");
}

fs::path default_run_folder(const std::string& config_path) { return fs::path("runs") / fs::path(config_path).stem(); }

fs::path run_path(const std::string& name) {
  ONESTEP_CHECK(ConfigError, !name.empty(), "the name of the run folder is empty");
  ONESTEP_CHECK(ConfigError, name.find('\0') == std::string::npos, quote(name), ": the name of a run must not hold a NUL byte");
  const fs::path path = fs::path(name).lexically_normal();
  return path.filename().empty() ? path.parent_path() : path;
}

// The lock is on the folder itself: it leaves no file behind, moves with the folder, and ends with the process.
RunLock::RunLock(const fs::path& run) : run_(run), fd_(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  ONESTEP_CHECK(IoError, fd_ >= 0, run.string(), ": cannot be opened: ", error_reason(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;  // some file systems have no locks
  ::close(fd_);
  fail<IoError>(run.string(), ": another process is training this run");
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

RunLock::RunLock(RunLock&& other) noexcept : run_(std::move(other.run_)), fd_(std::exchange(other.fd_, -1)) {}

bool RunLock::is_here() const {
  struct stat held {
  }, named{};
  return ::fstat(fd_, &held) == 0 && ::stat(run_.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

fs::path RunLock::folder() const {
  const fs::path path = "/proc/self/fd/" + std::to_string(fd_);
  std::error_code error;
  return fs::is_directory(path, error) ? path : run_;
}

fs::path RunLock::name() const {
  if (is_here()) return run_;
  std::error_code error;
  const fs::path now = fs::read_symlink(folder(), error);
  return error ? run_ : now;
}

void RunLock::check_here() const {
  ONESTEP_CHECK(IoError, is_here(), run_.string(), ": was renamed while it was read (its name is now ", name().string(), ')');
}

void RunLock::naming_errors(const std::function<void()>& work) const {
  try {
    work();
  } catch (const IoError& error) {
    const std::string by_descriptor = folder().string();
    std::string text = error.what();
    for (size_t at = 0; (at = text.find(by_descriptor, at)) != std::string::npos; ++at)
      if (const size_t end = at + by_descriptor.size(); end == text.size() || text[end] < '0' || text[end] > '9')
        text.replace(at, by_descriptor.size(), name().string());
    throw IoError(text);
  }
}

RunLock create_run(const fs::path& run, const Config& config, const Tokenizer* tokenizer) {
  set_aside(run);
  make_folders(run);
  RunLock lock(run);
  ONESTEP_CHECK(IoError, is_unused(run), run.string(), ": another process has begun a run of this name");
  try {
    lock.naming_errors([&] { write_run_config(lock.folder(), config, tokenizer); });
  } catch (...) {
    discard_run(lock);
    throw;
  }
  return lock;
}

void discard_run(const RunLock& lock) {
  std::error_code ignored;
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(lock.folder(), ignored)) all.push_back(entry.path());
  for (const fs::path& path : all) fs::remove_all(path, ignored);
  if (lock.is_here()) fs::remove(lock.name(), ignored);
}

void write_run_config(const fs::path& run, const Config& config, const Tokenizer* tokenizer) {
  const auto write_new = [&](const char* name, const std::string& text) {
    std::error_code error;
    const fs::path path = run / name;
    const bool same_size = fs::file_size(path, error) == text.size() && !error;
    if (!same_size || read_file(path.string(), static_cast<int64_t>(text.size())) != text) write_file(path, text);
  };
  write_new("config.json", resolved_json(config));  // makes the folder a run
  if (tokenizer != nullptr) write_new("tokenizer.json", tokenizer->to_json());
}

Config load_run_config(const fs::path& run, const std::vector<std::string>& sets) {
  const std::string path = (run / "config.json").string();
  ONESTEP_CHECK(IoError, fs::is_regular_file(path), run.string(), ": is not the folder of a run (it has no config.json)");
  Config config = load_config(path, sets);
  if (!sets.empty()) check_resumable(load_config(path), config);
  config.origin.run = run.string();
  return config;
}

std::shared_ptr<const Tokenizer> load_run_tokenizer(const fs::path& run) {
  const fs::path path = run / "tokenizer.json";
  return fs::exists(path) ? load_tokenizer(path.string()) : nullptr;
}

}  // namespace onestep::train

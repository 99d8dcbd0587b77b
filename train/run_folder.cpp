#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "autograd/error.h"
#include "train/checkpoint.h"
#include "train/files.h"

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

void move_run(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  check<IoError>(!error, from.string(), ": the earlier run cannot be moved to ", to.string(), ": ",
                 error_reason(error.value()));
}

fs::path previous_of(const fs::path& run) { return run.string() + ".previous"; }

/// Nothing is there that has to give way to a new run.
bool is_free(const fs::path& run) { return !fs::exists(run) || (fs::is_directory(run) && is_unused(run)); }

/// The earlier run, a start that came to nothing, gives way to the one before it.
bool keeps_previous(const fs::path& run) {
  return checkpoint_folders(run).empty() && !checkpoint_folders(previous_of(run)).empty();
}

/// Moves an earlier run of that name to NAME.previous; the one before it goes, unless it has checkpoints and the earlier run, a
/// start that came to nothing, has none and goes itself. Refuses to touch what is not a run.
void set_aside(const fs::path& run) {
  if (is_free(run)) return;
  const fs::path previous = previous_of(run), doomed = temporary_path(run.string() + ".old");
  check<IoError>(is_run(run), run.string(), ": is there already and not the folder of a run (name another with --out)");
  check<IoError>(!fs::exists(previous) || is_run(previous), previous.string(), ": is not the folder of a run, so the earlier ",
                 run.string(), " cannot be kept there (move one of them away)");
  const RunLock lock(run);
  if (!fs::exists(previous)) return move_run(run, previous);
  const RunLock previous_lock(previous);
  std::error_code ignored;  // one folder too many does no harm
  fs::remove_all(doomed, ignored);
  if (keeps_previous(run)) {
    move_run(run, doomed);
  } else {
    move_run(previous, doomed);  // deleted once nothing can fail any more
    try {
      move_run(run, previous);
    } catch (const IoError&) {
      fs::rename(doomed, previous, ignored);
      throw;
    }
  }
  fs::remove_all(doomed, ignored);
}

}  // namespace

bool is_run(const fs::path& folder) {
  const std::string path = (folder / "config.json").string();
  if (!fs::is_regular_file(path)) return false;
  try {
    const Config config = load_config(path);
    if (fs::exists(folder / "metrics.jsonl") || !checkpoint_folders(folder).empty()) return true;
    const bool resolved = read_file(path, static_cast<int64_t>(fs::file_size(path))) == resolved_json(config);
    return resolved && holds_only(folder, {"config.json", "tokenizer.json", ".config.json.tmp", ".tokenizer.json.tmp"});
  } catch (const Error&) {
    return false;
  }
}

void check_stays(const fs::path& source, const fs::path& run) {
  const auto lies_in = [&](const fs::path& folder) {
    const fs::path relative = fs::weakly_canonical(source).lexically_relative(fs::weakly_canonical(folder));
    return !relative.empty() && *relative.begin() != "..";
  };
  if (is_free(run)) return;
  const bool stays = !lies_in(run) && (keeps_previous(run) || !lies_in(previous_of(run)));
  check<ConfigError>(stays, source.string(), ": would be moved or deleted, as what the folder ", run.string(),
                     " held before (name another with --out)");
}

fs::path default_run_folder(const std::string& config_path) { return fs::path("runs") / fs::path(config_path).stem(); }

fs::path run_path(const std::string& name) {
  check<ConfigError>(!name.empty(), "the name of the run folder is empty");
  const fs::path path = fs::path(name).lexically_normal();
  return path.filename().empty() ? path.parent_path() : path;
}

// The lock is on the folder itself: it leaves no file behind, moves with the folder, and ends with the process.
RunLock::RunLock(const fs::path& run) : fd_(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  check<IoError>(fd_ >= 0, run.string(), ": cannot be opened: ", error_reason(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;  // some file systems have no locks
  ::close(fd_);
  fail<IoError>(run.string(), ": another process is training this run");
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunLock create_run(const fs::path& run, const Config& config, const Tokenizer* tokenizer) {
  set_aside(run);
  make_folders(run);
  RunLock lock(run);
  check<IoError>(is_unused(run), run.string(), ": another process has begun a run of this name");
  write_run_config(run, config, tokenizer);
  return lock;
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
  check<IoError>(fs::is_regular_file(path), run.string(), ": is not the folder of a run (it has no config.json)");
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

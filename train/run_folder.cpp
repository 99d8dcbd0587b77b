#include "train/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "train/safetensors.h"

namespace onestep::train {

namespace fs = std::filesystem;

namespace {

struct Checkpoint {
  int64_t step;
  fs::path path;
};

/// The step-N folders, oldest first.
std::vector<Checkpoint> checkpoints(const fs::path& run) {
  std::vector<Checkpoint> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    int64_t step = 0;
    if (!name.starts_with("step-")) continue;
    const auto [end, code] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (code == std::errc() && end == name.data() + name.size()) found.push_back({step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  return found;
}

/// Makes the entries of a folder (new files, renames) durable.
void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  check<IoError>(synced, folder.string(), ": cannot be written to the disk");
}

}  // namespace

fs::path default_run_folder(const std::string& config_path) { return fs::path("runs") / fs::path(config_path).stem(); }

void save_checkpoint(const fs::path& run, int64_t step, const nn::Module& model, int64_t keep) {
  const fs::path parent = run / "checkpoints", final = parent / ("step-" + std::to_string(step));
  const fs::path temporary = parent / (".step-" + std::to_string(step) + ".tmp");
  std::error_code error;
  fs::create_directories(parent, error);
  fs::remove_all(temporary, error);
  fs::create_directory(temporary, error);
  check<IoError>(!error, temporary.string(), ": cannot be made: ", error.message());
  write_safetensors((temporary / "model.safetensors").string(), model.state_dict());
  sync_folder(temporary);
  fs::remove_all(final, error);
  fs::rename(temporary, final, error);
  check<IoError>(!error, final.string(), ": cannot be written: ", error.message());
  sync_folder(parent);
  const std::vector<Checkpoint> all = checkpoints(run);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) fs::remove_all(all[i].path, error);
}

fs::path latest_checkpoint(const fs::path& run) {
  const std::vector<Checkpoint> all = checkpoints(run);
  check<IoError>(!all.empty(), run.string(), ": holds no checkpoint (train it first: onestep train CONFIG --out ", run.string(),
                 ")");
  return all.back().path;
}

Config load_run_config(const fs::path& run) {
  const fs::path config = run / "config.json";
  check<IoError>(fs::is_regular_file(config), run.string(), ": is not the folder of a run (it has no config.json)");
  return load_config(config.string());
}

std::shared_ptr<const Tokenizer> load_run_tokenizer(const fs::path& run) {
  const fs::path path = run / "tokenizer.json";
  return fs::exists(path) ? load_tokenizer(path.string()) : nullptr;
}

}  // namespace onestep::train

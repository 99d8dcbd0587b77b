#include "train/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "autograd/memory.h"
#include "base/format.h"
#include "base/read_file.h"
#include "base/suggest.h"
#include "base/write_file.h"
#include "train/checkpoint/frozen_file.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/state_file.h"

namespace onestep::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kState = "state.json";

std::string folder_name(int64_t step) { return "step-" + std::to_string(step); }

/// A new folder that goes away with its owner unless it was renamed.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) { make_folder(path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  void rename_to(const fs::path& path) {
    rename_path(path_, path);
    path_.clear();
  }

 private:
  fs::path path_;
};

/// A model that is not finite is worth nothing: it must not push out a good checkpoint.
void check_finite(const TrainerState& state) {
  for (const auto& [name, tensor] : state.model) {
    if (!tensor.is_floating()) continue;
    const bool finite = dispatch_floating(tensor.dtype(), "save_checkpoint", [&t = tensor]<class T>() {
      return std::all_of(t.data<T>(), t.data<T>() + t.numel(), [](T value) { return std::isfinite(value); });
    });
    ONESTEP_CHECK(DivergedError, finite, "train: diverged at step ", state.step - 1, ": ", name,
                  " is not finite after it (lower optimizer.lr, or set train.grad_clip)");
  }
}

/// What a killed process left of a checkpoint that it was writing or deleting.
void remove_leftovers(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".step-") && name.ends_with(".tmp")) fs::remove_all(entry.path(), ignored);
  }
}

/// Deletes all but the newest `keep` and the best. Renamed first: half a checkpoint never has the name of one.
void prune(const fs::path& run, int64_t keep, const std::optional<BestEvaluation>& best) {
  const std::vector<fs::path> all = checkpoint_folders(run);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    if (best && all[i].filename() == folder_name(best->step)) continue;
    const fs::path doomed = temporary_path(all[i].string() + ".old");
    std::error_code ignored;  // one too many does no harm
    fs::rename(all[i], doomed, ignored);
    fs::remove_all(doomed, ignored);
  }
}

/// The stamp of frozen.safetensors that the newest checkpoint has; none if there is none, or no file that may be it.
std::optional<FileStamp> known_frozen(const fs::path& run) {
  const std::vector<fs::path> folders = checkpoint_folders(run);
  if (folders.empty()) return std::nullopt;
  try {
    const FileStamps files = read_state_file((folders.back() / kState).string()).files;
    const auto known = files.find(kFrozenFile);
    const bool there = known != files.end() && InputFile((run / kFrozenFile).string()).size() == known->second.bytes;
    return there ? std::optional(known->second) : std::nullopt;
  } catch (const IoError&) {
    return std::nullopt;
  }
}

void write_checkpoint(const fs::path& run, const Checkpoint& checkpoint, bool quiet) {
  const fs::path parent = run / "checkpoints";
  const std::string name = folder_name(checkpoint.trainer.step);
  NamedTensors trained, frozen;
  for (const auto& named : checkpoint.trainer.model)
    (checkpoint.trainer.frozen.contains(named.first) ? frozen : trained).push_back(named);
  FileStamps files;
  if (!frozen.empty()) {
    const std::optional<FileStamp> known = known_frozen(run);
    files[kFrozenFile] = known ? *known : keep_frozen(run, frozen, quiet);
  }
  TemporaryFolder temporary(temporary_path(parent / name));
  files[kModel] = write_safetensors((temporary.path() / kModel).string(), trained, {}, quiet);
  files[kOptimizer] = write_safetensors((temporary.path() / kOptimizer).string(), checkpoint.trainer.optimizer, {}, quiet);
  OutputFile state((temporary.path() / kState).string());
  state.write(state_json(checkpoint, files));
  state.finish();
  sync_folder(temporary.path());
  if (fs::exists(parent / name)) set_checkpoint_aside(parent / name);
  temporary.rename_to(parent / name);
  sync_folder(parent);
}

NamedTensors read_tensors(const fs::path& path, const FileStamps& files) {
  const auto expected = files.find(path.filename().string());
  ONESTEP_CHECK(IoError, expected != files.end(), path.string(), ": is not part of this checkpoint, says its state.json");
  const uint64_t bytes = InputFile(path.string()).size();
  ONESTEP_CHECK(IoError, bytes == expected->second.bytes, path.string(), ": is damaged: has ", bytes,
                " bytes, was written with ", expected->second.bytes);
  const FileStamp stamp = stamp_file(path.string());
  ONESTEP_CHECK(IoError, stamp == expected->second, path.string(), ": is damaged: its hash is ", stamp.hash, ", was ",
                expected->second.hash);
  return read_safetensors(path.string()).tensors;
}

}  // namespace

void save_checkpoint(const fs::path& run, const Checkpoint& checkpoint, int64_t keep, bool quiet) {
  check_finite(checkpoint.trainer);
  const fs::path parent = run / "checkpoints";
  try {
    if (make_folder(parent)) sync_folder(run);
    remove_leftovers(parent);
    write_checkpoint(run, checkpoint, quiet);
  } catch (const IoError& error) {
    const int64_t step = checkpoint.trainer.step;
    if (step == 0) throw;  // of an imported model, before which there is none
    fail<IoError>(error.what(), " (no checkpoint at step ", step, "; those before it are kept)");
  }
  prune(run, keep, checkpoint.run.best);
}

Checkpoint load_checkpoint(const fs::path& folder, CheckpointParts parts) {
  StateFile state = read_state_file((folder / kState).string());
  Checkpoint checkpoint = std::move(state.checkpoint);
  ONESTEP_CHECK(IoError, folder.filename() == folder_name(checkpoint.trainer.step), folder.string(),
                ": holds the checkpoint of step ", checkpoint.trainer.step, ", says its state.json");
  checkpoint.trainer.model = read_tensors(folder / kModel, state.files);
  if (state.files.contains(kFrozenFile)) {
    for (auto& named : read_tensors(folder.parent_path().parent_path() / kFrozenFile, state.files)) {
      checkpoint.trainer.frozen.insert(named.first);
      checkpoint.trainer.model.push_back(std::move(named));
    }
  }
  if (parts == CheckpointParts::all) checkpoint.trainer.optimizer = read_tensors(folder / kOptimizer, state.files);
  return checkpoint;
}

std::optional<int64_t> checkpoint_step(const std::string& name) {
  int64_t step = 0;
  if (!name.starts_with("step-")) return std::nullopt;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && name == folder_name(step) ? std::optional(step) : std::nullopt;
}

std::vector<fs::path> checkpoint_folders(const fs::path& run) {
  std::map<int64_t, fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error))
    if (const auto step = checkpoint_step(entry.path().filename().string())) found.emplace(*step, entry.path());
  std::vector<fs::path> folders;
  folders.reserve(found.size());
  for (auto& [_, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

std::optional<FoundCheckpoint> newest_checkpoint(const fs::path& run, CheckpointParts parts) {
  std::vector<fs::path> folders = checkpoint_folders(run);
  std::reverse(folders.begin(), folders.end());
  std::vector<std::pair<fs::path, std::string>> damaged;
  for (const fs::path& folder : folders) {
    try {
      return FoundCheckpoint{folder, load_checkpoint(folder, parts), damaged};
    } catch (const IoError& error) {
      damaged.emplace_back(folder, error.what());
    }
  }
  ONESTEP_CHECK(IoError, damaged.empty(), damaged.empty() ? "" : damaged.front().second,
                damaged.size() > 1 ? " (and no older checkpoint is whole)" : " (and there is no older checkpoint)");
  return std::nullopt;
}
namespace {

/// ` (there are step-50 and step-100)`
std::string whole_list(const fs::path& run) {
  std::vector<std::string> names;
  for (const fs::path& folder : checkpoint_folders(run)) names.push_back(folder.filename().string());
  return names.empty() ? "" : (names.size() == 1 ? " (there is " : " (there are ") + join(names, " and ") + ')';
}

}  // namespace

FoundCheckpoint find_checkpoint(const fs::path& run, const std::string& which, CheckpointParts parts) {
  const auto at_step = [&](int64_t step) {
    const fs::path folder = run / "checkpoints" / folder_name(step);
    ONESTEP_CHECK(IoError, fs::is_directory(folder), folder.string(), ": there is no such checkpoint", whole_list(run));
    return FoundCheckpoint{folder, load_checkpoint(folder, parts)};
  };
  if (const auto step = checkpoint_step(which)) return at_step(*step);
  ONESTEP_CHECK(ConfigError, which == "last" || which == "best", "--checkpoint: must be last, best or step-N: got ", which);
  std::optional<FoundCheckpoint> newest = newest_checkpoint(run, parts);
  ONESTEP_CHECK(IoError, newest.has_value(), run.string(), ": holds no checkpoint (train it first: onestep train CONFIG --out ",
                run.string(), ")");
  if (which == "last") return *std::move(newest);
  const auto& best = newest->checkpoint.run.best;
  ONESTEP_CHECK(IoError, best.has_value(), run.string(),
                ": no checkpoint is the best one, since nothing has been evaluated yet");
  return at_step(best->step);
}

void load_model(nn::Module& model, const FoundCheckpoint& found) { load_model(model, FoundCheckpoint(found)); }

void load_model(nn::Module& model, FoundCheckpoint&& found) {
  try {
    model.load_state_dict(std::move(found.checkpoint.trainer.model));
    memory::release_cached();
  } catch (const ConfigError& error) {
    throw IoError((found.folder / kModel).string() + ": does not fit the config: " + error.what());
  }
}

void set_checkpoint_aside(const fs::path& folder) {
  const fs::path aside = folder.string() + ".damaged";
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  rename_path(folder, aside);
}

}  // namespace onestep::train

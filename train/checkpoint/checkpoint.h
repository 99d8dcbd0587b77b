#pragma once
// checkpoints/step-N/ of a run: model.safetensors, optimizer.safetensors and state.json (docs/formats.md), and of all of them
// frozen.safetensors. A checkpoint is there whole or not at all, and hashes are verified on load.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/trainer_state.h"
#include "train/log/metrics.h"

namespace onestep::train {

/// The best evaluation of a run so far.
struct BestEvaluation {
  int64_t step = 0;  ///< Updates done before it.
  double val_loss = 0;
  bool operator==(const BestEvaluation&) const = default;
};

/// How far a run has come, beside its trainer.
struct RunState {
  double seconds = 0;                          ///< Spent training so far.
  std::optional<BestEvaluation> best = {};     ///< None before the first evaluation.
  std::optional<StepMetrics> unfinished = {};  ///< The last step, where an interrupt cut its evaluation short.
  /// The best of the evaluations that eval_every asked for, on which early stopping goes: a run of fewer steps ended with one
  /// more, which a run that is resumed would not have had.
  std::optional<BestEvaluation> best_due = {};
};

/// What a checkpoint holds.
struct Checkpoint {
  TrainerState trainer;
  RunState run;
};

/// Writes checkpoints/step-N: into a temporary folder beside it, all of it made durable, then renamed. Afterwards the newest
/// `keep` and the best are kept. Throws DivergedError for a model that is not finite and IoError when anything cannot be
/// written (a full disk); the older checkpoints are then all there, and nothing of the new one. Progress goes to stderr unless
/// `quiet`.
void save_checkpoint(const std::filesystem::path& run, const Checkpoint& checkpoint, int64_t keep, bool quiet = true);

/// What of a checkpoint is read.
enum class CheckpointParts { model, all };

/// Reads one checkpoint folder. Throws IoError naming the file and the reason unless every file is, by its hash, what was
/// written, and every field is in range.
Checkpoint load_checkpoint(const std::filesystem::path& folder, CheckpointParts parts = CheckpointParts::all);

/// The N of `step-N`; none for any other name.
std::optional<int64_t> checkpoint_step(const std::string& name);

/// The step-N folders of a run, whole or not, oldest first.
std::vector<std::filesystem::path> checkpoint_folders(const std::filesystem::path& run);

/// A checkpoint and where it was found.
struct FoundCheckpoint {
  std::filesystem::path folder;
  Checkpoint checkpoint;
  /// The newer ones that cannot be used, newest first, and why.
  std::vector<std::pair<std::filesystem::path, std::string>> damaged = {};
};

/// The newest whole checkpoint; none if the run has no checkpoint at all. Throws IoError if it has some and none is whole.
std::optional<FoundCheckpoint> newest_checkpoint(const std::filesystem::path& run,
                                                 CheckpointParts parts = CheckpointParts::all);

/// The checkpoint that `which` names: `last` (the newest whole one), `best` or `step-N`. Throws IoError if there is no such one
/// or it is damaged, ConfigError for another name.
FoundCheckpoint find_checkpoint(const std::filesystem::path& run, const std::string& which,
                                CheckpointParts parts = CheckpointParts::model);

/// Gives `model` the parameters of a checkpoint, whose own are released as they are copied where it is moved here; throws
/// IoError naming its file if they do not fit.
void load_model(nn::Module& model, const FoundCheckpoint& found);
void load_model(nn::Module& model, FoundCheckpoint&& found);

/// Takes what cannot be used out of the way: `step-N` becomes `step-N.damaged`.
void set_checkpoint_aside(const std::filesystem::path& folder);

}  // namespace onestep::train

#pragma once
// What happens around the steps of a run: evaluation, metrics, checkpoints, interrupts.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "train/checkpoint/checkpoint.h"
#include "train/log/metrics.h"
#include "train/trainer.h"

namespace onestep::train {

/// What a run did in this process.
struct Outcome {
  std::optional<StepMetrics> last = {};       ///< Its last step.
  std::optional<Evaluation> evaluation = {};  ///< Its last evaluation.
  int64_t steps = 0, tokens = 0;              ///< And input tokens, of this process.
  double step_seconds = 0;                    ///< Spent in training steps, without evaluation and saving,
  Communicator::Traffic traffic = {};         ///< and what this rank sent and waited for in them.
  bool interrupted = false;
  bool stopped_early = false;
};

/// Whether the last train.early_stop_patience evaluations found no better validation loss: the run then ends.
bool stops_early(const TrainConfig& plan, int64_t steps_done, const RunState& state);

/// Who watches a run.
struct Watch {
  Stopped stopped = [] { return false; };                     ///< Asked after every step and evaluation batch.
  std::function<void(const StepMetrics&)> on_step = nullptr;  ///< Called with every step, before `stopped` is asked.
  bool quiet = true;                                          ///< No progress on stderr.
};

/// A run one step at a time, for callers that do something else between steps. It writes what run_steps writes into `folder`,
/// but for the checkpoint of an interrupt, which is save()'s.
class RunLoop {
 public:
  RunLoop(Trainer& trainer, std::filesystem::path folder, RunState state, Watch watch = {});
  ~RunLoop();
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  /// Whether all steps are done, or it stops_early(), or was interrupted.
  bool done() const;
  /// The next step of a run that is not done(), and all that follows it: evaluation, log, checkpoint, each when it is due.
  /// Throws as run_steps does.
  StepMetrics step();
  /// Writes a checkpoint of where the run is. Throws IoError.
  void save();
  /// Deletes the checkpoints so far, for callers that change what they were trained with: the config would no longer be theirs.
  /// The best one is then the best from here on.
  void forget_checkpoints();

 private:
  friend Outcome run_steps(Trainer&, const std::filesystem::path&, RunState, const Watch&);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Trains from where `trainer` and `state` are to train.steps, or until it stops_early(), keeping metrics.jsonl and
/// checkpoints/ in `folder`. When `watch.stopped` says so, it saves after the step and returns; an evaluation is then left for
/// the resumed run. Throws DivergedError when loss, gradients, parameters or validation loss are not finite: nothing of that is
/// saved. Throws IoError. Of several ranks the root alone writes.
Outcome run_steps(Trainer& trainer, const std::filesystem::path& folder, RunState state, const Watch& watch);

}  // namespace onestep::train

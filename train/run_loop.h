#pragma once
// What happens around the steps of a run: evaluation, metrics, checkpoints, interrupts.
#include <filesystem>
#include <functional>
#include <optional>

#include "train/checkpoint/checkpoint.h"
#include "train/log/metrics.h"
#include "train/trainer.h"

namespace onestep::train {

/// What a run did in this process.
struct Outcome {
  std::optional<StepMetrics> last = {};       ///< Its last step.
  std::optional<Evaluation> evaluation = {};  ///< Its last evaluation.
  int64_t steps = 0;
  double step_seconds = 0;             ///< Spent in training steps, without evaluation and saving,
  Communicator::Traffic traffic = {};  ///< and what this rank sent and waited for in them.
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

/// Trains from where `trainer` and `state` stand to train.steps, or until it stops_early(), keeping metrics.jsonl and
/// checkpoints/ in `folder`. When `watch.stopped` says so, it saves after the step and returns; an evaluation is then left for
/// the resumed run. Throws DivergedError when loss, gradients, parameters or validation loss are not finite: nothing of that is
/// saved. Throws IoError. Of several ranks the root alone writes.
Outcome run_steps(Trainer& trainer, const std::filesystem::path& folder, RunState state, const Watch& watch);

}  // namespace onestep::train

#include "train/run_loop.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "autograd/profiler.h"
#include "base/progress_bar.h"
#include "train/log/histogram_file.h"
#include "train/log/progress.h"
#include "train/log/sample_file.h"
#include "train/log/tensorboard_writer.h"
#include "train/samples.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostSampled = 4096, kBins = 24;  // elements of a parameter in a histogram, and its parts

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Markdown for a text as it stands.
std::string indented(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) out += c == '\n' ? "\n    " : std::string(1, c);
  return out;
}

}  // namespace

struct RunLoop::Impl {
 public:
  Impl(Trainer& trainer, fs::path folder, RunState state, Watch watch)
      : trainer_(trainer),
        plan_(trainer.config().train),
        folder_(std::move(folder)),
        state_(state),
        watch_(std::move(watch)),
        progress_(plan_.steps, watch_.quiet),
        seconds_before_(state_.seconds) {
    if (!trainer.communicator().is_root()) return;
    metrics_file_.emplace((folder_ / "metrics.jsonl").string(), first_unlogged());
    if (plan_.sample_every > 0) sample_file_.emplace((folder_ / "samples.jsonl").string(), first_unlogged());
    // after the last step: its gradient is gone where an interrupt left only the evaluation to do
    if (plan_.histogram_every > 0) histogram_file_.emplace((folder_ / "histograms.jsonl").string(), trainer_.steps_done());
    if (!plan_.tensorboard) return;
    event_file_.emplace((folder_ / "tensorboard").string(), first_unlogged());
    event_file_->text("config", first_unlogged(), "```json\n" + resolved_json(trainer.config()) + "```");
  }

  bool done() const {
    if (state_.unfinished && !outcome_.interrupted) return false;
    return outcome_.interrupted || trainer_.steps_done() >= plan_.steps || stops_early();
  }

  StepMetrics advance() {
    total_ = Stopwatch();  // what happens between two calls is no training
    finish_step(state_.unfinished ? *std::exchange(state_.unfinished, std::nullopt) : step());
    seconds_before_ += total_.seconds();
    return *outcome_.last;
  }

  Outcome run() {
    while (!done()) advance();
    outcome_.stopped_early = trainer_.steps_done() < plan_.steps && stops_early();
    return outcome_;
  }

  /// The lines of all steps before a checkpoint are on the disk before it is.
  void save() {
    const Checkpoint checkpoint{trainer_.state(), state_};
    if (!metrics_file_) return;
    metrics_file_->sync();
    save_checkpoint(folder_, checkpoint, plan_.keep_checkpoints, watch_.quiet);
  }

  void forget_checkpoints() {
    fs::remove_all(folder_ / "checkpoints");
    state_.best.reset();
  }

 private:
  int64_t first_unlogged() const { return state_.unfinished ? state_.unfinished->step : trainer_.steps_done(); }
  bool stops_early() const { return train::stops_early(plan_, trainer_.steps_done(), state_); }
  bool is_due(int64_t every) const { return every > 0 && trainer_.steps_done() % every == 0; }

  StepMetrics step() {
    profile_mark("log and checkpoints");
    const Communicator::Traffic before = trainer_.communicator().traffic();
    const Stopwatch watch;
    StepMetrics metrics = trainer_.step();
    const double seconds = watch.seconds();
    outcome_.traffic += trainer_.communicator().traffic() - before;
    ++outcome_.steps;
    outcome_.step_seconds += seconds;
    outcome_.tokens += metrics.tokens;
    metrics.tokens_per_second = static_cast<double>(metrics.tokens) / seconds;
    const bool last = trainer_.steps_done() == plan_.steps && plan_.histogram_every > 0;
    if (last || is_due(plan_.histogram_every)) write_histograms(metrics.step);
    return metrics;
  }

  /// Whether the validation loss is the best so far.
  bool evaluate(StepMetrics& metrics) {
    ProgressBar progress("evaluating", trainer_.data().eval_batches(plan_.batch_size, plan_.eval_batches), "batches",
                         watch_.quiet);
    int64_t done = 0;
    const Evaluation evaluation = trainer_.evaluate([&] { return progress.show(done++), watch_.stopped(); });
    profile_mark("evaluation");
    ONESTEP_CHECK(DivergedError, std::isfinite(evaluation.loss), "train: diverged at step ", metrics.step, ": validation loss ",
                  std::abs(evaluation.loss), " (lower optimizer.lr, or set train.grad_clip)");
    outcome_.evaluation = evaluation;
    metrics.val_loss = evaluation.loss;
    metrics.val_accuracy = evaluation.accuracy;
    if (!evaluation.confusion.empty()) metrics.val_f1 = evaluation.macro_f1();
    const auto improves = [&](const std::optional<BestEvaluation>& best) { return !best || evaluation.loss < best->val_loss; };
    const BestEvaluation now{trainer_.steps_done(), evaluation.loss};
    if (is_due(plan_.eval_every) && improves(state_.best_due)) state_.best_due = now;
    if (!improves(state_.best)) return false;
    state_.best = now;
    return true;
  }

  /// All that follows a step: evaluation, log and checkpoint, each when it is due.
  void finish_step(StepMetrics metrics) {
    const bool last = trainer_.steps_done() == plan_.steps;
    bool best = false;
    try {
      if (last || is_due(plan_.eval_every)) best = evaluate(metrics);
    } catch (const InterruptedError&) {
      outcome_.interrupted = true;
    }
    state_.seconds = metrics.seconds = seconds_before_ + total_.seconds();
    outcome_.last = metrics;
    if (outcome_.interrupted) state_.unfinished = metrics;
    if (watch_.on_step && !state_.unfinished) watch_.on_step(metrics);
    outcome_.interrupted |= trainer_.communicator().any(watch_.stopped());
    if (metrics_file_ && !state_.unfinished) log(metrics);
    if (last || best || stops_early() || outcome_.interrupted || is_due(plan_.checkpoint_every)) save();
  }

  void log(const StepMetrics& metrics) {
    if (metrics.step == 0 || metrics.val_loss || is_due(plan_.log_every)) {
      metrics_file_->write(metrics);
      if (event_file_) write_events(metrics);
    }
    progress_.show(metrics);
    const bool last = trainer_.steps_done() == plan_.steps;
    if (sample_file_ && (last || is_due(plan_.sample_every))) sample(metrics.step);
  }

  /// A step of all ranks, of which the root writes.
  void write_histograms(int64_t step) {
    const auto histograms = trainer_.histograms(kMostSampled, kBins);
    if (histogram_file_) histogram_file_->write(step, histograms);
    profile_mark("histograms");
  }

  void sample(int64_t step) {
    for (const Sample& sample : write_samples(trainer_, 1)) {
      sample_file_->write(step, sample.prompt, sample.continuation);
      progress_.show_text(step, sample.prompt + sample.continuation);
    }
    profile_mark("sample");
  }

  /// The curves that TensorBoard shows, and with an evaluation a sample of what the model writes.
  void write_events(const StepMetrics& metrics) {
    event_file_->scalar("loss/train", metrics.step, metrics.loss);
    if (metrics.val_loss) event_file_->scalar("loss/validation", metrics.step, *metrics.val_loss);
    if (metrics.val_accuracy) event_file_->scalar("accuracy/validation", metrics.step, *metrics.val_accuracy);
    if (metrics.val_f1) event_file_->scalar("f1/validation", metrics.step, *metrics.val_f1);
    event_file_->scalar("lr", metrics.step, metrics.lr);
    event_file_->scalar("grad_norm", metrics.step, metrics.grad_norm);
    event_file_->scalar("tokens_per_second", metrics.step, metrics.tokens_per_second);
    if (!metrics.val_loss) return;
    for (const Sample& sample : write_samples(trainer_, 1))
      event_file_->text("sample", metrics.step, indented(sample.prompt + sample.continuation));
  }

  Trainer& trainer_;
  const TrainConfig& plan_;
  const fs::path folder_;
  RunState state_;
  const Watch watch_;
  std::optional<MetricsFile> metrics_file_;  // the root's, as all that is written
  std::optional<EventFile> event_file_;
  std::optional<SampleFile> sample_file_;
  std::optional<HistogramFile> histogram_file_;
  Progress progress_;
  Outcome outcome_;
  double seconds_before_;
  Stopwatch total_;
};

RunLoop::RunLoop(Trainer& trainer, fs::path folder, RunState state, Watch watch)
    : impl_(std::make_unique<Impl>(trainer, std::move(folder), state, std::move(watch))) {}
RunLoop::~RunLoop() = default;
bool RunLoop::done() const { return impl_->done(); }
StepMetrics RunLoop::step() { return impl_->advance(); }
void RunLoop::save() { impl_->save(); }
void RunLoop::forget_checkpoints() { impl_->forget_checkpoints(); }

bool stops_early(const TrainConfig& plan, int64_t steps_done, const RunState& state) {
  const bool wanted = plan.early_stop_patience > 0 && plan.eval_every > 0;
  return wanted && state.best_due && !state.unfinished &&
         (steps_done - state.best_due->step) / plan.eval_every >= plan.early_stop_patience;
}

Outcome run_steps(Trainer& trainer, const fs::path& folder, RunState state, const Watch& watch) {
  return RunLoop(trainer, folder, state, watch).impl_->run();
}

}  // namespace onestep::train

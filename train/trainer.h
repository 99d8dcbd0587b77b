#pragma once
// The training loop: one seed, one config, one step at a time.
#include <memory>
#include <string>

#include "optim/optimizer.h"
#include "train/checkpoint/trainer_state.h"
#include "train/config/config.h"
#include "train/data/data.h"
#include "train/distributed/data_parallel.h"
#include "train/evaluate.h"
#include "train/log/metrics.h"
#include "train/models/language_model.h"

namespace onestep::train {

struct ParameterHistograms;  // train/log/histogram_file.h

/// The optimizer that a resolved config describes, over these parameters.
std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                 const std::vector<optim::ParameterGroup>& groups);

/// Owns everything a run needs: data, model, optimizer and the one generator from which parameters, batches and dropout draw.
/// Of several ranks each has one; step(), evaluate(), state() and load_state() are then collective.
class Trainer {
 public:
  /// Reads the data and draws the initial parameters; text is read with a run's own tokenizer where one is given, with
  /// progress on stderr unless `quiet`. Throws ConfigError or IoError.
  explicit Trainer(const Config& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr, bool quiet = true,
                   std::shared_ptr<Communicator> communicator = std::make_shared<Communicator>());
  /// Neither copied nor moved: the model's dropout layers point to a generator of it.
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// One update: `grad_accumulation` micro-batches, their loss (mean over all targets that count), clipping, the optimizer.
  /// Where no target counts in any of them, others are drawn.
  /// Several ranks deal the micro-batches; each draws what the others draw, so that the step's bits do not depend on their
  /// number. Throws DivergedError when the loss or the gradient norm is not finite; the parameters are then those before the
  /// step.
  StepMetrics step();
  /// The loss of the next micro-batch as a recorded tensor: mean cross entropy over the targets that count, [].
  Tensor next_loss();
  /// Loss and accuracy on held-out data; never changes the run. Throws InterruptedError when `stopped` says so.
  Evaluation evaluate(const Stopped& stopped = {});
  /// The last evaluate(), unless there was a step since.
  const std::optional<Evaluation>& evaluation() const { return evaluation_; }
  /// The stream evaluations draw from, the same every time: looking at a run never changes it, and figures can be compared.
  Generator evaluation_generator() const { return Generator(config_.seed ^ 1); }
  /// How far training has come. The tensors are handles: save them before the next step. Only the root has the optimizer's.
  TrainerState state();
  /// Histograms of every parameter and of the gradient of the last step, after clipping, in `bins` parts: of every n-th
  /// element, so that they are at most `most`. Of several ranks all must call it; the same for any number of them.
  std::vector<ParameterHistograms> histograms(int64_t most, int64_t bins);
  /// Goes on with another optimizer.lr, from which the schedule derives those of the next steps. Throws ConfigError for one
  /// that a config could not have.
  void set_learning_rate(double lr);
  /// Goes on from the root's `state`, to the bit. Throws Error naming what does not fit this trainer, whose state is undefined
  /// then.
  void load_state(const TrainerState& state);

  /// Throws ConfigError unless the data is that of the run that was saved.
  void check_data(const TrainerState& saved);

  const Config& config() const { return config_; }
  LanguageModel& model() { return *model_; }
  const Data& data() const { return *data_; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  Generator& generator() { return generator_; }
  Communicator& communicator() { return replicas_->communicator(); }
  /// Data::hash(), computed once.
  const std::string& data_hash();
  /// Updates done so far.
  int64_t steps_done() const { return steps_done_; }
  /// `12,345`, or `1,234 of 12,345` where some are frozen: the parameters that are trained.
  std::string describe_parameters();
  /// Input tokens a step sees at most; all of them but with data that varies.
  int64_t tokens_per_step() const { return sequences_per_step() * data_->length(); }

 private:
  /// A micro-batch, and where in the run's random stream the dropout of its forward pass begins.
  struct MicroBatch {
    Batch batch;
    Generator dropout;
  };
  /// One micro-batch of every rank.
  struct Round {
    std::optional<MicroBatch> own;
    std::vector<int64_t> counted;  // targets that count, by rank
  };
  MicroBatch draw_micro_batch();
  void follow_forward();
  Tensor forward(const MicroBatch& micro_batch);
  double compute(const MicroBatch& micro_batch, bool last);
  void advance_past_forward(const MicroBatch& micro_batch);
  Round assign(int64_t first, int64_t last);
  std::optional<double> mean_loss(const std::vector<int64_t>& counted, const std::vector<double>& own_losses);
  std::optional<double> compute_gradients();
  int64_t sequences_per_step() const { return config_.train.grad_accumulation * config_.train.batch_size; }
  /// Repeats the step that began with the generator at `before`, with every op checked: where numbers stop being finite.
  std::string find_anomaly(const Generator& before);

  Config config_;
  Generator dropout_generator_;  // the model's; a forward pass begins by setting it to its micro-batch's place in the stream
  Generator generator_;          // the run's stream: parameters, then batches and dropout in turn
  std::unique_ptr<Data> data_;
  std::optional<std::string> data_hash_;  // once it was needed
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<DataParallel> replicas_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<uint64_t> forward_draws_;  // 32-bit outputs that a forward pass takes from the generator, once it was needed
  std::optional<Evaluation> evaluation_;
  int64_t steps_done_ = 0, step_tokens_ = 0;
};

}  // namespace onestep::train

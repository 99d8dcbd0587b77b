#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>

#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/operators.h"
#include "autograd/ops_loss.h"
#include "autograd/profiler.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "base/format.h"
#include "base/machine.h"
#include "base/utf8.h"
#include "nn/module.h"
#include "optim/schedule.h"
#include "train/log/histogram_file.h"
#include "train/memory_need.h"
#include "train/models/trainable.h"

namespace onestep::train {
namespace {

std::vector<optim::ParameterGroup> parameter_groups(const OptimizerConfig& config, nn::Module& model) {
  optim::ParameterGroup decayed{{}, config.weight_decay}, others{{}, 0.0};
  for (const Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    const bool decays = config.decay != Decay::matrices || parameter.dim() >= 2;
    (decays ? decayed : others).parameters.push_back(parameter);
  }
  return {decayed, others};
}

/// How products are computed while it lives; in float32 the order of bfloat16 is left to others.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(Precision precision)
      : autocast_(precision != Precision::float32),
        order_(precision == Precision::float32    ? bf16_order()
               : precision == Precision::bf16_amx ? Bf16Order::amx
                                                  : Bf16Order::avx512) {}

 private:
  AutocastGuard autocast_;
  Bf16OrderGuard order_;
};

/// load_state_dict() converts; here that would change bits.
void check_dtypes(const nn::NamedTensors& own, const nn::NamedTensors& saved) {
  for (const auto& [name, tensor] : saved) {
    const auto same = std::find_if(own.begin(), own.end(), [&, &key = name](const auto& named) { return named.first == key; });
    ONESTEP_CHECK(ConfigError, same == own.end() || same->second.dtype() == tensor.dtype(), "model: ", name, " is ",
                  tensor.dtype(), ", must be ", same == own.end() ? tensor.dtype() : same->second.dtype());
  }
}

void check_vocabulary(const Config& config, const Data& data) {
  const int64_t own = config.model.vocab_size, needed = data.vocab_size();
  ONESTEP_CHECK(ConfigError, own == 0 || own >= needed, config.origin.at("/model/vocab_size"), ": must be at least ", needed,
                ", the vocabulary of the data: got ", own);
}

}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                 const std::vector<optim::ParameterGroup>& groups) {
  const OptimizerConfig& o = config;
  switch (o.kind) {
    case OptimizerKind::sgd:
      return std::make_unique<optim::SGD>(groups, optim::SGDOptions{o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov});
    case OptimizerKind::adam:
      return std::make_unique<optim::Adam>(groups, optim::AdamOptions{o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad});
    case OptimizerKind::adamw:
      return std::make_unique<optim::AdamW>(groups, optim::AdamWOptions{o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad});
    case OptimizerKind::rmsprop:
      return std::make_unique<optim::RMSprop>(groups, optim::RMSpropOptions{o.lr, o.alpha, o.eps, o.weight_decay});
    default:
      return std::make_unique<optim::Adagrad>(groups, optim::AdagradOptions{o.lr, o.eps, o.weight_decay});
  }
}

Trainer::Trainer(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet,
                 std::shared_ptr<Communicator> communicator)
    : config_(resolve(config)),
      dropout_generator_(config_.seed, config_.model.rng_dialect),
      data_(make_data(config_, std::move(tokenizer), quiet)) {
  data_->complete(config_.data);
  check_vocabulary(config_, *data_);
  const MemoryNeed need = memory_need(config_, data_->vocab_size(), data_->length());
  const std::string warning = check_memory(config_, need, available_memory());
  if (!warning.empty() && !quiet) std::cerr << "warning: " << escaped(warning) << '\n';
  ONESTEP_CHECK(ConfigError, config_.train.grad_accumulation >= communicator->size(),
                config_.origin.at("/train/grad_accumulation"), ": must be at least ", communicator->size(),
                ", the number of ranks that share the micro-batches: got ", config_.train.grad_accumulation);
  model_ = make_language_model(config_.model, data_->vocab_size(), dropout_generator_, num_classes(config_));
  generator_ = dropout_generator_;  // after the parameters' draws
  model_->to(config_.train.dtype);
  freeze_parameters(*model_, config_);
  model_->set_recompute(config_.train.recompute);
  communicator->set_timeout(config_.distributed.timeout);
  replicas_ = std::make_unique<DataParallel>(std::move(communicator), *model_, parameter_groups(config_.optimizer, *model_),
                                             config_.distributed.bucket_mb << 20);
  optimizer_ = make_optimizer(config_.optimizer, replicas_->owned_groups());
}

Trainer::MicroBatch Trainer::draw_micro_batch() {
  Batch batch = data_->train_batch(config_.train.batch_size, generator_);
  if (!data_->varies()) return {std::move(batch), generator_};
  // Other micro-batches draw other numbers of dropout masks: the run's stream continues without them.
  return {std::move(batch), Generator(generator_.u32(), config_.model.rng_dialect)};
}

/// The run's stream continues after the draws of a forward pass.
void Trainer::follow_forward() {
  if (!data_->varies()) generator_ = dropout_generator_;
}

Tensor Trainer::forward(const MicroBatch& micro_batch) {
  dropout_generator_ = micro_batch.dropout;
  profile_mark("batch");
  return forward_batch(*model_, micro_batch.batch);
}

Tensor Trainer::next_loss() {
  const PrecisionGuard precision(config_.train.precision);
  const MicroBatch next = draw_micro_batch();
  Tensor logits = forward(next);
  follow_forward();
  return batch_loss(std::move(logits), next.batch, Reduction::mean);
}

/// Weighted as if every micro-batch of the step had all its targets count; where some do not, mean_loss() mends it.
double Trainer::compute(const MicroBatch& micro_batch, bool last) {
  const Batch& batch = micro_batch.batch;
  Tensor logits = forward(micro_batch);
  const auto counted = static_cast<double>(batch.counted()), whole = static_cast<double>(data_->targets() * batch.batch);
  if (counted == 0) return 0;
  const Tensor loss = batch_loss(std::move(logits), batch, Reduction::mean);
  if (last) forget_rounded_parameters();  // the backward pass lets go of each that it no longer needs
  const double parts = static_cast<double>(config_.train.grad_accumulation) * whole / counted;
  (parts == 1 ? loss : loss / parts).backward();
  return loss.item();
}

/// Advances the generator by what the dropout of one forward pass draws from it, which is the same for every micro-batch.
void Trainer::advance_past_forward(const MicroBatch& micro_batch) {
  if (data_->varies()) return;
  if (!forward_draws_) {
    const NoGradGuard no_grad;
    forward(micro_batch);
    forward_draws_ = dropout_generator_.drawn() - generator_.drawn();
  }
  generator_.discard(*forward_draws_);
}

/// Draws the micro-batches of a round, one a rank while there are any left, and keeps this rank's own.
Trainer::Round Trainer::assign(int64_t first, int64_t last) {
  const int64_t size = communicator().size(), rank = communicator().rank();
  Round round;
  round.counted.resize(static_cast<size_t>(size));
  for (int64_t i = first; i < std::min(first + size, last); ++i) {
    MicroBatch drawn = draw_micro_batch();
    step_tokens_ += std::ssize(drawn.batch.inputs);
    round.counted[static_cast<size_t>(i - first)] = drawn.batch.counted();
    if (size > 1) advance_past_forward(drawn);
    if (i - first == rank) round.own = std::move(drawn);
  }
  return round;
}

/// Mean over all targets of a step that count, from the losses of each rank; scales the summed gradient accordingly. None if no
/// target counts.
std::optional<double> Trainer::mean_loss(const std::vector<int64_t>& counted, const std::vector<double>& own_losses) {
  const std::vector<std::vector<double>> losses = communicator().all_gather(own_losses);
  const auto tokens = static_cast<double>(std::accumulate(counted.begin(), counted.end(), int64_t{0}));
  if (tokens == 0) return std::nullopt;
  const auto whole = static_cast<double>(sequences_per_step() * data_->targets());
  if (tokens != whole) replicas_->scale_gradients(whole / tokens);
  double loss = 0;
  for (size_t i = 0; i < counted.size(); ++i)
    loss += losses[i % losses.size()][i / losses.size()] / (tokens / static_cast<double>(counted[i]));
  return loss;
}

/// The mean loss of the step's micro-batches, whose gradient is summed; rank r computes every micro-batch r of size(). None if
/// no target counts.
std::optional<double> Trainer::compute_gradients() {
  const PrecisionGuard precision(config_.train.precision);
  const int64_t count = config_.train.grad_accumulation, size = communicator().size(), rank = communicator().rank();
  const bool exact = config_.distributed.reduce == Reduce::exact;
  std::vector<int64_t> counted;
  std::vector<double> own_losses;
  for (int64_t first = 0; first < count; first += size) {
    const Round round = assign(first, count);
    counted.insert(counted.end(), round.counted.begin(), round.counted.begin() + std::min(size, count - first));
    const bool last_of_own = round.own && first + rank + size >= count;
    const auto compute_own = [&] {
      if (round.own) own_losses.push_back(compute(*round.own, last_of_own));
    };
    // "exact" sums the micro-batches one by one in their order; "allreduce" sums the ranks' own sums, once.
    std::vector<bool> contributes(static_cast<size_t>(size), true);
    if (exact) std::transform(round.counted.begin(), round.counted.end(), contributes.begin(), [](int64_t n) { return n > 0; });
    if (exact || last_of_own)
      replicas_->reduce_gradients(contributes, compute_own);
    else
      compute_own();
    if (size == 1) follow_forward();
  }
  return mean_loss(counted, own_losses);
}

std::string Trainer::find_anomaly(const Generator& before) {
  for (const auto& [name, parameter] : model_->named_parameters())
    if (!all_finite(parameter)) return "the parameter " + name + " is not finite after the step before";
  replicas_->zero_grad();
  generator_ = before;
  const AnomalyGuard guard([this]() -> std::string {
    const nn::Module* running = nn::RunningModule::current();
    return running == nullptr ? "the loss" : model_->path_to(*running);
  });
  try {
    for (int64_t i = 0; i < config_.train.grad_accumulation; ++i) {
      compute(draw_micro_batch(), false);
      follow_forward();
    }
  } catch (const NonFiniteError& error) {
    return error.what();
  }
  return "every result is finite, a sum over them is not";
}

StepMetrics Trainer::step() {
  evaluation_.reset();
  optimizer_->set_lr(optim::learning_rate(config_.schedule, config_.optimizer.lr, steps_done_));
  StepMetrics metrics{.step = steps_done_, .lr = optimizer_->lr()};
  Generator before = generator_;
  std::optional<double> loss;
  step_tokens_ = 0;
  while (!loss) {  // the mean of no target is NaN in PyTorch
    before = generator_;
    replicas_->zero_grad();
    loss = compute_gradients();
  }
  metrics.loss = *loss;
  metrics.tokens = step_tokens_;
  const double limit = config_.train.grad_clip > 0 ? config_.train.grad_clip : std::numeric_limits<double>::infinity();
  metrics.grad_norm = replicas_->clip_grad_norm_(limit);
  profile_mark("gradient norm");
  if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.grad_norm)) {
    // Neither is below 0: abs() takes the sign from a NaN.
    const std::string anomaly = config_.train.anomaly ? "; " + find_anomaly(before) : "";
    fail<DivergedError>("train: diverged at step ", steps_done_, ": loss ", std::abs(metrics.loss), ", gradient norm ",
                        std::abs(metrics.grad_norm), anomaly, " (lower optimizer.lr, or set train.grad_clip)");
  }
  optimizer_->step();
  profile_mark("optimizer");
  replicas_->gather_parameters();
  profile_mark("exchange");
  ++steps_done_;
  return metrics;
}

std::vector<ParameterHistograms> Trainer::histograms(int64_t most, int64_t bins) {
  const std::vector<std::vector<double>> gradients = replicas_->sample_gradients(most);  // of what is trained
  std::vector<ParameterHistograms> all;
  size_t trained = 0;
  for (const auto& [name, parameter] : model_->named_parameters()) {
    const int64_t every = sampling_stride(parameter.numel(), most);
    const auto weights = parameter.detach().flatten().slice(0, 0, parameter.numel(), every).to_vector<double>();
    ParameterHistograms& one = all.emplace_back(ParameterHistograms{name, histogram(weights, bins)});
    if (!parameter.requires_grad()) continue;
    const std::vector<double>& gradient = gradients[trained++];
    if (!gradient.empty()) one.gradients = histogram(gradient, bins);
  }
  return all;
}

void Trainer::set_learning_rate(double lr) {
  Config changed = config_;
  changed.optimizer.lr = lr;
  config_ = resolve(changed);
}

Evaluation Trainer::evaluate(const Stopped& stopped) {
  const PrecisionGuard precision(config_.train.precision);
  evaluation_ = train::evaluate(*model_, *data_, config_.train.eval_batches, config_.train.batch_size, evaluation_generator(),
                                stopped, &communicator());
  return *evaluation_;
}

std::string Trainer::describe_parameters() {
  int64_t all = 0, trained = 0;
  for (const Tensor& parameter : model_->parameters()) {
    all += parameter.numel();
    if (parameter.requires_grad()) trained += parameter.numel();
  }
  const std::string total = grouped_count(all);
  return trained == all ? total : grouped_count(trained) + " of " + total;
}

const std::string& Trainer::data_hash() {
  if (!data_hash_) data_hash_ = data_->hash();
  return *data_hash_;
}

void Trainer::check_data(const TrainerState& saved) {
  ONESTEP_CHECK(ConfigError, saved.data_hash == data_hash(), "the data is not what the run was started with: its hash is ",
                data_hash(), ", was ", saved.data_hash, " (bring back the data, or start a new run)");
}

TrainerState Trainer::state() {
  std::set<std::string> frozen;
  for (const auto& [name, parameter] : model_->named_parameters())
    if (!parameter.requires_grad()) frozen.insert(name);
  return {.step = steps_done_,
          .sequences = steps_done_ * sequences_per_step(),
          .config = fixed_values(config_),
          .data_hash = data_hash(),
          .generator = generator_.state(),
          .model = model_->state_dict(),
          .frozen = std::move(frozen),
          .optimizer = replicas_->optimizer_state(*optimizer_, steps_done_)};
}

void Trainer::load_state(const TrainerState& state) {
  communicator().on_root([&] {
    check_trained_with(state.config, config_, "");
    check_data(state);
    ONESTEP_CHECK(ConfigError,
                  state.sequences / sequences_per_step() == state.step && state.sequences % sequences_per_step() == 0, "after ",
                  state.step, " steps of ", sequences_per_step(), " sequences it claims to have seen ", state.sequences);
    check_dtypes(model_->state_dict(), state.model);
    generator_.set_state(state.generator);
    model_->load_state_dict(state.model);
  });
  generator_.set_state(communicator().broadcast(generator_.state()));
  steps_done_ = std::stoll(communicator().broadcast(std::to_string(state.step)));
  replicas_->broadcast(model_->state_dict());
  replicas_->load_optimizer_state(*optimizer_, state.optimizer, steps_done_);
}

}  // namespace onestep::train

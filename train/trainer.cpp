#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>

#include "autograd/anomaly.h"
#include "autograd/ops.h"
#include "autograd/profiler.h"
#include "base/machine.h"
#include "base/utf8.h"
#include "nn/module.h"
#include "optim/schedule.h"
#include "train/memory_need.h"

namespace onestep::train {
namespace {

std::vector<optim::ParameterGroup> parameter_groups(const OptimizerConfig& config, nn::Module& model) {
  optim::ParameterGroup decayed{{}, config.weight_decay}, others{{}, 0.0};
  for (const Tensor& parameter : model.parameters()) {
    const bool decays = config.decay != Decay::matrices || parameter.dim() >= 2;
    (decays ? decayed : others).parameters.push_back(parameter);
  }
  return {decayed, others};
}

Tensor input_tensor(const Batch& batch) { return from_values(batch.inputs, {batch.batch, batch.length}); }

/// Cross entropy of logits [B, T, V] over the targets that count.
Tensor batch_loss(const Tensor& logits, const Batch& batch, Reduction reduction) {
  const Tensor targets = from_values(batch.targets, {batch.batch * batch.length});  // [B T]
  return cross_entropy(logits.flatten(0, 1), targets, {.reduction = reduction, .ignore_index = kIgnoreIndex});
}

/// load_state_dict() converts; here that would change bits.
void check_dtypes(const nn::NamedTensors& own, const nn::NamedTensors& saved) {
  for (const auto& [name, tensor] : saved) {
    const auto same = std::find_if(own.begin(), own.end(), [&, &key = name](const auto& named) { return named.first == key; });
    ONESTEP_CHECK(ConfigError, same == own.end() || same->second.dtype() == tensor.dtype(), "model: ", name, " is ",
                  tensor.dtype(), ", must be ", same == own.end() ? tensor.dtype() : same->second.dtype());
  }
}

/// Adds one batch's losses, right predictions (in `accuracy`), tokens and text.
void add_batch(LanguageModel& model, const Batch& batch, const Tokenizer* tokenizer, Evaluation& sums) {
  const Tensor logits = model.forward(input_tensor(batch));  // [B, T, V]
  sums.loss += batch_loss(logits, batch, Reduction::sum).item();
  const std::vector<int64_t> predicted = argmax(logits, -1).to_vector<int64_t>();
  for (size_t j = 0; j < predicted.size(); ++j) {
    if (batch.targets[j] == kIgnoreIndex) continue;
    ++sums.tokens;
    sums.accuracy += predicted[j] == batch.targets[j];
  }
  if (tokenizer == nullptr) return;
  for (int64_t row = 0; row < batch.batch; ++row) {
    const std::span targets(batch.targets.data() + row * batch.length, static_cast<size_t>(batch.length));
    const std::string text = tokenizer->decode(targets);
    sums.bytes += static_cast<int64_t>(text.size());
    sums.characters +=
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
  }
}

Evaluation means(Evaluation sums) {
  sums.loss /= static_cast<double>(sums.tokens);
  sums.accuracy /= static_cast<double>(sums.tokens);
  return sums;
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

Evaluation evaluate(LanguageModel& model, const Data& data, int64_t batches, int64_t batch_size, Generator generator,
                    const Stopped& stopped, Communicator* ranks) {
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  Communicator alone;
  Communicator& communicator = ranks == nullptr ? alone : *ranks;
  const int64_t size = communicator.size();
  std::vector<double> mine;  // five sums a batch
  bool interrupted = false;
  for (int64_t i = 0; i < batches && !interrupted; ++i) {
    interrupted = stopped && stopped();
    const Batch batch = data.eval_batch(batch_size, generator);
    if (interrupted || i % size != communicator.rank()) continue;
    Evaluation one;
    add_batch(model, batch, data.tokenizer(), one);
    for (const double sum : {one.loss, one.accuracy, static_cast<double>(one.tokens), static_cast<double>(one.bytes),
                             static_cast<double>(one.characters)})
      mine.push_back(sum);
  }
  ONESTEP_CHECK(InterruptedError, !communicator.any(interrupted), "evaluation: interrupted");
  const std::vector<std::vector<double>> all = communicator.all_gather(mine);
  Evaluation sums;
  for (int64_t i = 0; i < batches; ++i) {
    const double* one = all[static_cast<size_t>(i % size)].data() + i / size * 5;
    sums.loss += one[0];
    sums.accuracy += one[1];
    sums.tokens += static_cast<int64_t>(one[2]);
    sums.bytes += static_cast<int64_t>(one[3]);
    sums.characters += static_cast<int64_t>(one[4]);
  }
  return means(sums);
}

Evaluation evaluate_all(LanguageModel& model, const Tokens& tokens, const Tokenizer& tokenizer, int64_t batch_size,
                        const std::function<void(int64_t)>& show) {
  const int64_t scored = tokens.size() - 1, longest = model.context_length();
  ONESTEP_CHECK(ConfigError, scored > 0, "evaluation: a text needs at least 2 tokens: got ", tokens.size());
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  Evaluation sums;
  for (int64_t begin = 0; begin < scored;) {
    const int64_t whole = (scored - begin) / longest;  // windows; after them comes a shorter one
    const int64_t rows = std::max<int64_t>(std::min(whole, batch_size), 1), length = std::min(longest, scored - begin);
    std::vector<int64_t> ids;
    tokens.read(begin, rows * length + 1, ids);
    add_batch(model, {{ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}, rows, length}, &tokenizer, sums);
    begin += rows * length;
    if (show) show(begin);
  }
  return means(sums);
}

Trainer::Trainer(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet,
                 std::shared_ptr<Communicator> communicator)
    : config_(resolve(config)),
      generator_(config_.seed, config_.model.rng_dialect),
      data_(make_data(config_, std::move(tokenizer), quiet)) {
  check_vocabulary(config_, *data_);
  const MemoryNeed need = memory_need(config_, data_->vocab_size(), data_->length());
  const std::string warning = check_memory(config_, need, available_memory());
  if (!warning.empty() && !quiet) std::cerr << "warning: " << escaped(warning) << '\n';
  ONESTEP_CHECK(ConfigError, config_.train.grad_accumulation >= communicator->size(),
                config_.origin.at("/train/grad_accumulation"), ": must be at least ", communicator->size(),
                ", the number of ranks that share the micro-batches: got ", config_.train.grad_accumulation);
  model_ = make_language_model(config_.model, data_->vocab_size(), generator_);
  model_->to(config_.train.dtype);
  communicator->set_timeout(config_.distributed.timeout);
  replicas_ = std::make_unique<DataParallel>(std::move(communicator), *model_, parameter_groups(config_.optimizer, *model_),
                                             config_.distributed.bucket_mb << 20);
  optimizer_ = make_optimizer(config_.optimizer, replicas_->owned_groups());
}

Tensor Trainer::logits_of(const Batch& batch) {
  profile_mark("batch");
  return model_->forward(input_tensor(batch));
}

Tensor Trainer::next_loss() {
  const Batch batch = next_batch();
  return batch_loss(logits_of(batch), batch, Reduction::mean);
}

/// Weighted as if every micro-batch of the step had all its targets count; where some do not, step() mends it.
double Trainer::micro_batch(const Batch& batch) {
  Tensor logits = logits_of(batch);
  const auto counted = static_cast<double>(batch.counted()), whole = static_cast<double>(data_->targets() * batch.batch);
  if (counted == 0) return 0;
  const Tensor loss = batch_loss(std::exchange(logits, Tensor()), batch, Reduction::mean);  // which backward does not need
  const double parts = static_cast<double>(config_.train.grad_accumulation) * whole / counted;
  (parts == 1 ? loss : loss / parts).backward();
  return loss.item();
}

/// Draws what the forward pass of a micro-batch draws.
void Trainer::skip_forward() {
  if (!forward_draws_) {
    const NoGradGuard no_grad;
    const Generator before = generator_;
    const Batch batch = next_batch();
    const uint64_t start = generator_.drawn();
    model_->forward(input_tensor(batch));
    forward_draws_ = generator_.drawn() - start;
    generator_ = before;
  }
  generator_.discard(*forward_draws_);
}

/// The mean loss of the step's micro-batches, whose gradient is summed; rank r computes every micro-batch r of size(). None if
/// no target counts.
std::optional<double> Trainer::micro_batches() {
  const int64_t count = config_.train.grad_accumulation, size = communicator().size(), rank = communicator().rank();
  const bool exact = config_.distributed.reduce == Reduce::exact;
  const std::vector<bool> everyone(static_cast<size_t>(size), true);
  std::vector<double> counted, mine;
  for (int64_t round = 0; round < count; round += size) {
    std::vector<bool> contributes(static_cast<size_t>(size), false);
    std::optional<Batch> own;
    Generator own_draws = generator_;
    for (int64_t i = round; i < std::min(round + size, count); ++i) {
      Batch batch = next_batch();
      counted.push_back(static_cast<double>(batch.counted()));
      contributes[static_cast<size_t>(i - round)] = batch.counted() > 0;
      if (i - round == rank) {
        own = std::move(batch);
        own_draws = generator_;
      }
      if (size > 1) skip_forward();
    }
    Generator next_draws = std::exchange(generator_, own_draws);
    const auto compute = [&] {
      if (own) mine.push_back(micro_batch(*own));
    };
    const bool last = own && round + rank + size >= count;  // of this rank
    if (exact || last)
      replicas_->reduce_gradients(exact ? contributes : everyone, compute);
    else
      compute();
    if (size > 1) generator_ = next_draws;
  }
  const std::vector<std::vector<double>> losses = communicator().all_gather(mine);
  const double tokens = std::accumulate(counted.begin(), counted.end(), 0.0);
  if (tokens == 0) return std::nullopt;
  const auto whole = static_cast<double>(sequences_per_step() * data_->targets());
  if (tokens != whole) replicas_->scale_gradients(whole / tokens);
  double loss = 0;
  for (int64_t i = 0; i < count; ++i)
    loss += losses[static_cast<size_t>(i % size)][static_cast<size_t>(i / size)] / (tokens / counted[static_cast<size_t>(i)]);
  return loss;
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
    for (int64_t i = 0; i < config_.train.grad_accumulation; ++i) micro_batch(next_batch());
  } catch (const NonFiniteError& error) {
    return error.what();
  }
  return "every result is finite, a sum over them is not";
}

StepMetrics Trainer::step() {
  optimizer_->set_lr(optim::learning_rate(config_.schedule, config_.optimizer.lr, steps_done_));
  StepMetrics metrics{.step = steps_done_, .lr = optimizer_->lr()};
  Generator before = generator_;
  std::optional<double> loss;
  while (!loss) {  // the mean of no target is NaN in PyTorch
    before = generator_;
    replicas_->zero_grad();
    loss = micro_batches();
  }
  metrics.loss = *loss;
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

Evaluation Trainer::evaluate(const Stopped& stopped) {
  return train::evaluate(*model_, *data_, config_.train.eval_batches, config_.train.batch_size, evaluation_generator(), stopped,
                         &communicator());
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
  return {.step = steps_done_,
          .sequences = steps_done_ * sequences_per_step(),
          .config = fixed_values(config_),
          .data_hash = data_hash(),
          .generator = generator_.state(),
          .model = model_->state_dict(),
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

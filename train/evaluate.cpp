#include "train/evaluate.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops_math.h"
#include "nn/module.h"

namespace onestep::train {
namespace {

/// Adds one batch's losses, right predictions (in `accuracy`), tokens and text.
void add_batch(LanguageModel& model, const Batch& batch, const Tokenizer* tokenizer, Evaluation& sums) {
  const auto classes = static_cast<size_t>(model.num_classes());
  sums.confusion.resize(classes * classes);
  const Tensor logits = forward_batch(model, batch);  // [B, T, V]
  sums.loss += batch_loss(logits, batch, Reduction::sum).item();
  const std::vector<int64_t> predicted = argmax(logits, -1).to_vector<int64_t>();
  for (size_t j = 0; j < predicted.size(); ++j) {
    if (batch.targets[j] == kIgnoreIndex) continue;
    ++sums.tokens;
    sums.accuracy += predicted[j] == batch.targets[j];
    if (classes > 0) ++sums.confusion[static_cast<size_t>(batch.targets[j]) * classes + static_cast<size_t>(predicted[j])];
  }
  if (tokenizer == nullptr || classes > 0) return;
  for (int64_t row = 0; row < batch.batch; ++row) {
    const auto begin = batch.targets.begin() + row * batch.length;
    std::vector<int64_t> targets(begin, begin + batch.length);
    std::erase(targets, kIgnoreIndex);
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

}  // namespace

double Evaluation::macro_f1() const {
  const auto classes = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(confusion.size()))));
  double sum = 0;
  int64_t there = 0;
  for (size_t c = 0; c < classes; ++c) {
    int64_t of_class = 0, predicted = 0;
    for (size_t other = 0; other < classes; ++other) {
      of_class += confusion[c * classes + other];
      predicted += confusion[other * classes + c];
    }
    if (of_class + predicted == 0) continue;
    sum += 2.0 * static_cast<double>(confusion[c * classes + c]) / static_cast<double>(of_class + predicted);
    ++there;
  }
  return there > 0 ? sum / static_cast<double>(there) : 0;
}

Tensor forward_batch(const LanguageModel& model, const Batch& batch) {
  return batch.sequences.empty() ? model.forward(batch.input()) : model.forward_apart(batch.input(), batch.sequences);
}

Tensor batch_loss(Tensor logits, const Batch& batch, Reduction reduction) {
  logits = logits.flatten(0, 1);
  return cross_entropy(std::move(logits), batch.target(), {.reduction = reduction, .ignore_index = kIgnoreIndex});
}

Evaluation evaluate(LanguageModel& model, const Data& data, int64_t batches, int64_t batch_size, Generator generator,
                    const Stopped& stopped, Communicator* ranks) {
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  Communicator alone;
  Communicator& communicator = ranks == nullptr ? alone : *ranks;
  const int64_t size = communicator.size();
  batches = data.eval_batches(batch_size, batches);
  std::vector<double> mine;                                                                       // five sums a batch
  std::vector<double> confusion(static_cast<size_t>(model.num_classes() * model.num_classes()));  // integers, of all batches
  bool interrupted = false;
  for (int64_t i = 0; i < batches && !interrupted; ++i) {
    interrupted = stopped && stopped();
    const Batch batch = data.eval_batch_at(i, batch_size, generator);
    if (interrupted || i % size != communicator.rank()) continue;
    Evaluation one;
    add_batch(model, batch, data.tokenizer(), one);
    for (const double sum : {one.loss, one.accuracy, static_cast<double>(one.tokens), static_cast<double>(one.bytes),
                             static_cast<double>(one.characters)})
      mine.push_back(sum);
    for (size_t j = 0; j < confusion.size(); ++j) confusion[j] += static_cast<double>(one.confusion[j]);
  }
  ONESTEP_CHECK(InterruptedError, !communicator.any(interrupted), "evaluation: interrupted");
  const std::vector<std::vector<double>> all = communicator.all_gather(mine);
  Evaluation sums;
  sums.confusion.resize(confusion.size());
  for (const std::vector<double>& part : communicator.all_gather(confusion))
    for (size_t j = 0; j < confusion.size(); ++j) sums.confusion[j] += static_cast<int64_t>(part[j]);
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

}  // namespace onestep::train

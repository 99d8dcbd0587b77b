#include "train/data/examples.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>
#include <set>

#include "autograd/random/random_fill.h"
#include "base/format.h"
#include "base/hash.h"

namespace onestep::train {
namespace {

/// Tokens of the examples of a row.
int64_t tokens_in(const std::vector<const Example*>& row) {
  return std::accumulate(row.begin(), row.end(), int64_t{0},
                         [](int64_t sum, const Example* example) { return sum + std::ssize(example->inputs); });
}

}  // namespace

ExampleSet hold_out(std::vector<Example> examples, const Config& config) {
  const double fraction = config.data.val_fraction;
  const auto all = std::ssize(examples);
  if (fraction == 0) return {std::move(examples), {}};
  const int64_t held_out = std::max<int64_t>(1, all - training_tokens(all, fraction));
  ONESTEP_CHECK(ConfigError, held_out < all, config.origin.at("/data/val_fraction"), ": holds out all ", all,
                " examples (0 evaluates on the training data, data.val_path is a file of its own)");
  std::set<std::pair<std::string, size_t>> order;
  for (size_t i = 0; i < examples.size(); ++i) order.emplace(hash_of(examples[i].key), i);
  std::vector<bool> is_held_out(examples.size());
  for (auto at = order.begin(); at != std::next(order.begin(), held_out); ++at) is_held_out[at->second] = true;
  ExampleSet set;
  for (size_t i = 0; i < examples.size(); ++i) (is_held_out[i] ? set.held_out : set.train).push_back(std::move(examples[i]));
  return set;
}

ExampleData::ExampleData(const Config& config, ExampleSet examples, std::shared_ptr<const Tokenizer> tokenizer, bool packed,
                         int64_t most_targets)
    : examples_(std::move(examples)),
      tokenizer_(std::move(tokenizer)),
      packed_(packed),
      length_(config.model.context_length),
      most_targets_(most_targets),
      train_rows_(make_rows(examples_.train, packed)),
      held_out_rows_(make_rows(examples_.held_out, packed)) {
  for (const auto* const rows : {&train_rows_, &held_out_rows_})
    for (const Row& row : *rows) longest_ = std::max(longest_, tokens_in(row));
}

/// First-fit decreasing (Johnson 1973): the longest first, each into the first row that has room for it.
std::vector<ExampleData::Row> ExampleData::make_rows(const std::vector<Example>& examples, bool packed) const {
  std::vector<Row> rows;
  if (!packed) {
    for (const Example& example : examples) rows.push_back({&example});
    return rows;
  }
  std::vector<const Example*> order(examples.size());
  std::transform(examples.begin(), examples.end(), order.begin(), [](const Example& example) { return &example; });
  const auto longer = [](const Example* a, const Example* b) { return a->inputs.size() > b->inputs.size(); };
  std::stable_sort(order.begin(), order.end(), longer);
  std::map<int64_t, std::vector<size_t>> by_room;  // the rows that have so much room left
  for (const Example* const example : order) {
    const auto size = std::ssize(example->inputs);
    auto found = by_room.lower_bound(size);
    size_t row = rows.size();
    int64_t room = length_;
    if (found == by_room.end()) {
      rows.emplace_back();
    } else {
      room = found->first;
      row = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) by_room.erase(found);
    }
    rows[row].push_back(example);
    if (room > size) by_room[room - size].push_back(row);
  }
  return rows;
}

Batch ExampleData::random_rows(const std::vector<Row>& rows, int64_t batch_size, Generator& g) const {
  std::vector<int64_t> drawn(static_cast<size_t>(batch_size));
  fill_randint(drawn, 0, std::ssize(rows), g);
  std::vector<const Row*> chosen(drawn.size());
  std::transform(drawn.begin(), drawn.end(), chosen.begin(), [&](int64_t row) { return &rows[static_cast<size_t>(row)]; });
  return batch_of(chosen);
}

int64_t ExampleData::eval_batches(int64_t batch_size, int64_t most) const {
  return std::min<int64_t>(most, (std::ssize(evaluated_rows()) + batch_size - 1) / batch_size);
}

Batch ExampleData::eval_batch_at(int64_t i, int64_t batch_size, Generator& /*g*/) const {
  const std::vector<Row>& rows = evaluated_rows();
  const int64_t end = std::min<int64_t>(std::ssize(rows), (i + 1) * batch_size);
  std::vector<const Row*> chosen;
  for (int64_t row = i * batch_size; row < end; ++row) chosen.push_back(&rows[static_cast<size_t>(row)]);
  return batch_of(chosen);
}

Batch ExampleData::batch_of(const std::vector<const Row*>& rows) const {
  Batch batch;
  batch.batch = std::ssize(rows);
  for (const Row* const row : rows) batch.length = std::max(batch.length, tokens_in(*row));
  for (const Row* const row : rows) {
    for (const Example* const example : *row) {
      batch.inputs.insert(batch.inputs.end(), example->inputs.begin(), example->inputs.end());
      batch.targets.insert(batch.targets.end(), example->targets.begin(), example->targets.end());
      if (packed_) batch.sequences.push_back(std::ssize(example->inputs));
    }
    const int64_t padding = batch.length - tokens_in(*row);
    batch.inputs.insert(batch.inputs.end(), static_cast<size_t>(padding), 0);
    batch.targets.insert(batch.targets.end(), static_cast<size_t>(padding), kIgnoreIndex);
    if (packed_ && padding > 0) batch.sequences.push_back(padding);
  }
  return batch;
}

std::string ExampleData::hash() const {
  Hasher hasher;
  const auto add = [&](const std::vector<int64_t>& ids) {
    const std::vector<int32_t> narrow(ids.begin(), ids.end());
    const auto size = static_cast<uint64_t>(narrow.size());
    hasher.update(&size, sizeof size);
    hasher.update(narrow.data(), narrow.size() * sizeof(int32_t));
  };
  for (const std::vector<Example>* const part : {&examples_.train, &examples_.held_out}) {
    for (const Example& example : *part) {
      add(example.inputs);
      add(example.targets);
    }
    hasher.update("|", 1);
  }
  return hasher.hex();
}

std::string ExampleData::describe() const {
  const auto train = std::ssize(examples_.train), held_out = std::ssize(examples_.held_out);
  std::string out = std::to_string(train + held_out) + " examples (" + std::string(name_of(tokenizer_->kind())) + ")";
  if (held_out > 0) out += ", " + std::to_string(train) + " of them to train on";
  if (packed_) out += ", in " + std::to_string(train_rows_.size()) + " windows";
  return out + ", vocabulary " + std::to_string(vocab_size());
}

bool cut_to(Example& example, int64_t longest) {
  if (std::ssize(example.inputs) <= longest) return false;
  example.inputs.resize(static_cast<size_t>(longest));
  example.targets.resize(static_cast<size_t>(longest));
  return true;
}

void CutExamples::say(const std::string& what, int64_t context_length, bool quiet) const {
  if (quiet || (cut == 0 && left_out == 0)) return;
  std::cerr << "note: " << grouped_count(cut + left_out) << " of " << grouped_count(all) << ' ' << what
            << " are longer than model.context_length = " << context_length << " tokens and were cut at the end";
  if (left_out > 0) std::cerr << "; " << grouped_count(left_out) << " of them, of which no answer was left, were left out";
  std::cerr << '\n';
}

}  // namespace onestep::train

#include "train/data/task.h"

#include <algorithm>

#include "autograd/random/random_fill.h"
#include "base/error.h"
#include "train/config/config_fields.h"
#include "train/text/vocabulary_tokenizer.h"

namespace onestep::train {
namespace {

// The finisher of SplitMix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// `count` names, in the order of their bytes: letters while there are enough, else numbers.
std::vector<std::string> symbol_names(int64_t count, bool letters) {
  constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz",
                             kAll = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::vector<std::string> names;
  if (letters && count <= std::ssize(kAll)) {
    for (const char c : (count <= std::ssize(kLower) ? kLower : kAll).substr(0, static_cast<size_t>(count)))
      names.emplace_back(1, c);
    return names;
  }
  const size_t digits = std::to_string(count - 1).size();
  for (int64_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    names.push_back(std::string(digits - number.size(), '0') + number);
  }
  return names;
}

}  // namespace

std::shared_ptr<const Tokenizer> task_tokenizer(const DataConfig& data) {
  constexpr int64_t kMostNames = 65536;
  const bool adds = data.task == Task::modular_addition;
  const int64_t symbols = adds ? data.modulus : data.vocab_size;
  if (symbols > kMostNames) return nullptr;
  std::vector<std::string> names = symbol_names(symbols, !adds);
  if (adds) names.emplace_back("=");  // which comes after digits
  return std::make_shared<VocabularyTokenizer>(TokenizerKind::words, std::move(names));
}

TaskData::TaskData(const Config& config) : data_(config.data), names_(task_tokenizer(data_)) { check_both_kinds_exist(config); }

std::string TaskData::token_name(int64_t id) const {
  return names_ != nullptr && id < vocab_size() ? names_->decode(std::vector{id}) : Data::token_name(id);
}

int64_t TaskData::vocab_size() const { return adds() ? data_.modulus + 1 : data_.vocab_size; }

std::string TaskData::describe() const {
  const std::string what = adds() ? "modular_addition, modulus " + std::to_string(data_.modulus)
                                  : std::string(name_of(data_.task)) + " of " + std::to_string(data_.length) + " symbols";
  return what + ", vocabulary " + std::to_string(vocab_size()) + ", share held out " + to_json(data_.val_fraction);
}

bool TaskData::is_held_out(std::span<const int64_t> drawn) const {
  uint64_t hash = 0;
  for (const int64_t symbol : drawn) hash = mix(hash + static_cast<uint64_t>(symbol) + 0x9e3779b97f4a7c15u);
  return static_cast<double>(hash >> 11) * 0x1p-53 < data_.val_fraction;
}

void TaskData::check_both_kinds_exist(const Config& config) const {
  constexpr int64_t kFew = 1 << 16;  // with more prompts both kinds are certain: shares are from 0.001 to 0.9
  int64_t prompts = 1;
  for (int64_t i = 0; i < random_size() && prompts <= kFew; ++i) prompts *= symbols();
  if (prompts > kFew) return;
  int64_t held_out = 0;
  std::vector<int64_t> drawn(static_cast<size_t>(random_size()));
  for (int64_t i = 0; i < prompts; ++i) {
    int64_t digits = i;
    for (int64_t& symbol : drawn) symbol = digits % symbols(), digits /= symbols();
    held_out += is_held_out(drawn);
  }
  ONESTEP_CHECK(ConfigError, held_out > 0 && held_out < prompts, config.origin.at("/data/val_fraction"), ": holds out ",
                held_out, " of the ", prompts, " prompts that task ", name_of(data_.task),
                " has here; some must be held out and some not");
}

std::vector<int64_t> TaskData::sequence(std::vector<int64_t> drawn) const {
  std::vector<int64_t> out = drawn;
  if (adds()) {
    out.insert(out.end(), {data_.modulus, (drawn[0] + drawn[1]) % data_.modulus});
    return out;
  }
  if (data_.task == Task::reverse) std::reverse(drawn.begin(), drawn.end());
  if (data_.task == Task::sort) std::sort(drawn.begin(), drawn.end());
  out.insert(out.end(), drawn.begin(), drawn.end());
  return out;
}

Batch TaskData::batch(int64_t batch_size, bool held_out, Generator& g) const {
  Batch batch{{}, {}, batch_size, length()};
  std::vector<int64_t> drawn(static_cast<size_t>(random_size()));
  for (int64_t row = 0; row < batch_size; ++row) {
    do fill_randint(drawn, 0, symbols(), g);
    while (is_held_out(drawn) != held_out);
    const std::vector<int64_t> tokens = sequence(drawn);
    batch.inputs.insert(batch.inputs.end(), tokens.begin(), tokens.end() - 1);
    batch.targets.insert(batch.targets.end(), static_cast<size_t>(prompt_size() - 1), kIgnoreIndex);
    batch.targets.insert(batch.targets.end(), tokens.begin() + prompt_size(), tokens.end());
  }
  return batch;
}

}  // namespace onestep::train

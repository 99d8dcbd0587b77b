// Conversations: how they are read, which targets count, and that those of a window do not see each other.
#include "train/data/instructions.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "autograd/ops.h"
#include "tests/support.h"
#include "train/evaluate.h"
#include "train/models/gpt.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;
using Ids = std::vector<int64_t>;

namespace {

std::string write_examples(const std::string& name, const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / ("onestep_instructions_" + name)).string();
  std::ofstream(path) << text;
  return path;
}

const ChatTemplate kChat{.before_user = "a:", .before_answer = "|b:", .after_answer = "\n"};

/// The text of the targets that count, and of all others dots.
std::string scored(const Example& example) {
  std::string out;
  for (const int64_t target : example.targets) out += target == kIgnoreIndex ? '.' : static_cast<char>(target);
  return out;
}

std::string read_one(const std::string& line) {
  const std::vector<Dialogue> dialogues = read_dialogues(write_examples("one.jsonl", line));
  std::string out = dialogues.at(0).system;
  for (const auto& [message, answer] : dialogues[0].turns) out += "<" + message + ">" + answer;
  return out;
}

std::unique_ptr<Data> data_of(const std::string& path, const std::string& more = "") {
  return make_data(
      parse_config(R"({"model": {"kind": "gpt", "context_length": 40, "d_model": 8, "num_heads": 2, "num_layers": 1},
      "data": {"kind": "instructions", "tokenizer": "byte", "template": "a:{user}|b:{answer}\n", "path": ")" +
                       path + "\"" + more + "}}",
                   "run.json"));
}

/// Twelve conversations of different lengths.
std::string some_dialogues() {
  std::string lines;
  for (int i = 0; i < 12; ++i)
    lines += R"({"prompt": ")" + std::string(static_cast<size_t>(1 + i % 5), static_cast<char>('a' + i)) + R"(", "answer": ")" +
             std::string(static_cast<size_t>(1 + i % 3), 'x') + "\"}\n";
  return lines;
}

}  // namespace

TEST_CASE("instructions: what a line may say") {
  CHECK(read_one(R"({"prompt": "p", "answer": "q", "id": 3})") == "<p>q");
  CHECK(read_one(R"({"instruction": "p", "input": "i", "output": "q", "system": "s"})") == "s<p\n\ni>q");
  CHECK(read_one(R"({"question": "p", "completion": "q", "system": null})") == "<p>q");
  CHECK(read_one(R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "1"}, )"
                 R"({"role": "assistant", "content": "2"}, {"role": "user", "content": "3"}, )"
                 R"({"role": "assistant", "content": "4"}]})") == "s<1>2<3>4");
}

TEST_CASE("instructions: bad lines are refused by file and line") {
  const auto refused = [](const std::string& line) {
    const std::string path = write_examples("bad.jsonl", "{\"prompt\": \"p\", \"answer\": \"q\"}\n\n" + line + "\n");
    const std::string said = refusal<ConfigError>([&] { read_dialogues(path); });
    const std::string place = path + ": line 3";
    REQUIRE(said.substr(0, place.size()) == place);
    return said.substr(place.size());
  };
  CHECK(refused("{").starts_with(":1:2: "));
  CHECK(refused("[1]").starts_with(": "));
  CHECK(refused(R"({"prompt": "p"})") == ": must have a text that is not empty in answer or response or completion or output");
  CHECK(refused(R"({"prompt": 3, "answer": "q"})") == ": /prompt: must be a text: got 3");
  CHECK(refused(R"({"messages": []})") == ": /messages: must end with an answer of assistant");
  CHECK(refused(R"({"messages": [{"role": "user", "content": "1"}]})").starts_with(": /messages: "));
  CHECK(refused(R"({"messages": [{"role": "assistant", "content": "1"}]})") ==
        ": /messages/0: /role: must be user or system: got assistant");
  CHECK(refused(R"({"messages": [{"role": "user", "content": "1"}, {"role": "user", "content": "1"}]})")
            .starts_with(": /messages/1: /role: "));
  CHECK(refused("\xff").starts_with(": "));
}

TEST_CASE("instructions: an empty file is refused by its name") {
  const std::string path = write_examples("empty.jsonl", "\n");
  CHECK(refusal<ConfigError>([&] { data_of(path); }) == path + ": has no examples");
}

TEST_CASE("instructions: the answers and what ends them count, nothing else") {
  const ByteTokenizer bytes;
  const Example one = encode_dialogue({.turns = {{"hi", "yes"}}}, kChat, bytes);
  CHECK(bytes.decode(one.inputs) == "a:hi|b:yes\na");  // "a:" after a line end is what tells an answer from a message
  CHECK(scored(one) == "......yes\na:");
  const Example two = encode_dialogue({.system = "s", .turns = {{"h", "y"}, {"i", "n"}}}, kChat, bytes);
  CHECK(bytes.decode(two.inputs) == "s\na:h|b:y\na:i|b:n\na");
  CHECK(scored(two) == ".......y\na:....n\na:");
  const ChatTemplate closed{.before_user = "[", .before_answer = "](", .after_answer = ")", .answer_prefix = " "};
  const Example marked = encode_dialogue({.turns = {{"h", "y"}, {"i", "n"}}}, closed, bytes);
  CHECK(bytes.decode(marked.inputs) == "[h]( y)[i]( n");
  CHECK(scored(marked) == "... y).... n)");
}

TEST_CASE("instructions: windows hold every conversation once and the fixed hash holds the same ones out") {
  const std::string path = write_examples("some.jsonl", some_dialogues());
  const auto data = data_of(path, R"(, "val_fraction": 0.25)");
  const auto texts_of = [&](int64_t batches) {
    std::multiset<std::string> texts;
    Generator unused(1);
    for (int64_t i = 0; i < batches; ++i) {
      const Batch batch = data->eval_batch_at(i, 2, unused);
      size_t at = 0;
      for (const int64_t length : batch.sequences) {
        const Ids ids(batch.inputs.begin() + static_cast<std::ptrdiff_t>(at),
                      batch.inputs.begin() + static_cast<std::ptrdiff_t>(at) + length);
        at += static_cast<size_t>(length);
        if (ids[0] != 0) texts.insert(ByteTokenizer().decode(ids));
      }
      CHECK(at == batch.inputs.size());
    }
    return texts;
  };
  const int64_t batches = data->eval_batches(2, 100);
  const std::multiset<std::string> held_out = texts_of(batches);
  CHECK(held_out.size() == 3);
  Generator g(3);
  for (int i = 0; i < 50; ++i) {
    const Batch batch = data->train_batch(3, g);
    CHECK(batch.length <= 40);
    const std::string text = ByteTokenizer().decode(batch.inputs);
    for (const std::string& one : held_out) CHECK(text.find(one) == std::string::npos);
  }
  CHECK(data->eval_batches(2, 1) == 1);
  const auto all = data_of(path, R"(, "val_fraction": 0)");
  CHECK(all->describe().starts_with("12 examples (byte), in 4 windows"));
  CHECK(all->hash() != data->hash());
}

TEST_CASE("instructions: conversations of a window give the loss and gradients that each gives alone") {
  Generator generator(5);
  for (const bool rope : {false, true})
    for (const bool recompute : {false, true}) {
      CAPTURE(rope);
      CAPTURE(recompute);
      ModelConfig config{
          .kind = ModelKind::gpt, .d_model = 16, .num_heads = 2, .context_length = 40, .num_layers = 2, .d_ff = 24};
      config.rope = rope;
      config.qk_norm = rope;
      Gpt model(config, 256, generator);
      model.set_recompute(recompute);
      const auto data = data_of(write_examples("some.jsonl", some_dialogues()), R"(, "val_fraction": 0)");
      Generator draws(7);
      const Batch packed = data->train_batch(3, draws);
      REQUIRE(packed.sequences.size() > 6);
      const Tensor logits = forward_batch(model, packed);
      batch_loss(logits, packed, Reduction::sum).backward();
      std::vector<Tensor> together;
      for (const Tensor& parameter : model.parameters()) together.push_back(parameter.grad().clone());
      model.zero_grad();
      const std::vector<float> all = logits.to_vector<float>();
      std::ptrdiff_t at = 0;
      for (const int64_t length : packed.sequences) {
        const Batch alone{{packed.inputs.begin() + at, packed.inputs.begin() + at + length},
                          {packed.targets.begin() + at, packed.targets.begin() + at + length},
                          1,
                          length};
        const Tensor own = forward_batch(model, alone);
        CHECK(own.to_vector<float>() ==
              std::vector<float>(all.begin() + at * 256, all.begin() + (at + length) * 256));  // to the bit
        if (alone.counted() > 0) batch_loss(own, alone, Reduction::sum).backward();
        at += length;
      }
      for (size_t i = 0; i < together.size(); ++i) {
        const std::vector<float> a = together[i].to_vector<float>(), b = model.parameters()[i].grad().to_vector<float>();
        double largest = 0, difference = 0;
        for (size_t j = 0; j < a.size(); ++j) {
          largest = std::max<double>(largest, std::abs(b[j]));
          difference = std::max<double>(difference, std::abs(a[j] - b[j]));
        }
        CHECK(difference <= 4e-6 * largest);  // sums over rows are added in another order
      }
    }
}

TEST_CASE("instructions: what does not fit is cut and what has no answer left is left out") {
  const std::string path =
      write_examples("long.jsonl", "{\"prompt\": \"" + std::string(100, 'p') + "\", \"answer\": \"q\"}\n" +
                                       "{\"prompt\": \"p\", \"answer\": \"" + std::string(100, 'q') + "\"}\n");
  const auto data = data_of(path, R"(, "val_fraction": 0)");
  Generator g(1);
  const Batch batch = data->train_batch(1, g);
  CHECK(batch.length == 40);
  CHECK(batch.sequences == Ids{40});
  CHECK(batch.counted() == 35);
  const std::string none = write_examples("none.jsonl", "{\"prompt\": \"" + std::string(100, 'p') + "\", \"answer\": \"q\"}\n");
  CHECK(refusal<ConfigError>([&] { data_of(none); }) ==
        "run.json: /data: no conversation of which an answer fits into model.context_length = 40");
}

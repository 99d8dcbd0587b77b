#include "train/data/data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/random/random_fill.h"
#include "base/enum_names.h"
#include "base/error.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "tests/support.h"
#include "train/data/task.h"

using namespace onestep::train;
using onestep::Generator;
using onestep::name_of;
using onestep::testing::refusal;
using Ids = std::vector<int64_t>;

namespace {

std::unique_ptr<Data> data_of(const std::string& json, const std::vector<std::string>& sets = {}) {
  return make_data(parse_config(json, "run.json", sets));
}

Ids row(const Ids& values, int64_t r, int64_t length) {
  return {values.begin() + r * length, values.begin() + (r + 1) * length};
}

// Token i is i, so that a window shows where it was cut.
std::string counting(int64_t count, const std::string& more) {
  std::string tokens;
  for (int64_t i = 0; i < count; ++i) tokens.append(i ? "," : "").append(std::to_string(i));
  return R"({"model": {"context_length": 4}, "data": {"kind": "tokens", "tokens": [)" + tokens +
         "], \"vocab_size\": " + std::to_string(count) + more + "}}";
}

}  // namespace

TEST_CASE("data: the golden runs' batches come from their configs") {
  for (const auto& run : onestep::testing::golden("reference.json")["training"]) {
    std::string name = run["id"];
    std::replace(name.begin(), name.end(), '-', '_');
    CAPTURE(name);
    const Config config = load_config(ONESTEP_SOURCE_DIR "/tests/configs/golden_" + name + ".json");
    const auto& golden = run["config"];
    CHECK(config.seed == golden["seed"]);
    CHECK(config.model.d_model == golden["width"]);
    CHECK(config.model.num_heads == golden["heads"]);
    CHECK(config.model.context_length == golden["context"]);
    CHECK(config.model.dropout == golden["dropout"]);
    CHECK(config.model.qkv_bias == golden["qkv_bias"]);
    CHECK(config.data.vocab_size == golden["vocab"]);
    CHECK(config.optimizer.lr == golden["lr"]);
    CHECK(config.train.steps == run["steps"]);
    const auto data = make_data(config);
    Generator g(1), untouched(1);
    const Batch batch = data->train_batch(config.train.batch_size, g);
    CHECK(batch.batch == static_cast<int64_t>(run["inputs"].size()));
    CHECK(batch.length == golden["context"]);
    CHECK(batch.inputs == onestep::testing::numbers<int64_t>(run["inputs"]));
    CHECK(batch.targets == onestep::testing::numbers<int64_t>(run["targets"]));
    CHECK(data->eval_batch(config.train.batch_size, g).inputs == batch.inputs);
    CHECK(g.u32() == untouched.u32());  // a fixed batch draws nothing
  }
}

TEST_CASE("data: the name of what is evaluated on") {
  const auto said = [](DataKind kind, double val_fraction) {
    DataConfig data;
    data.kind = kind;
    data.val_fraction = val_fraction;
    return evaluates_on(data);
  };
  CHECK(said(DataKind::text, 0.1) == "validation tokens");
  CHECK(said(DataKind::tokens, 0) == "training tokens");
  CHECK(said(DataKind::task, 0.1) == "held-out sequences");
  CHECK(said(DataKind::none, 0.1) == "nothing");
}

TEST_CASE("data: training windows are drawn with randint over the first tokens") {
  const auto data = data_of(counting(100, ", \"val_fraction\": 0.25"));
  CHECK(data->vocab_size() == 100);
  CHECK(data->length() == 4);
  CHECK(data->describe() == "100 tokens, 75 of them to train on, vocabulary 100");
  Generator g(5), same(5);
  for (int step = 0; step < 3; ++step) {
    Ids starts(6);
    onestep::fill_randint(starts, 0, 75 - 4, same);
    const Batch batch = data->train_batch(6, g);
    CHECK(batch.batch == 6);
    for (int64_t r = 0; r < 6; ++r) {
      const int64_t start = starts[static_cast<size_t>(r)];
      CHECK(row(batch.inputs, r, 4) == Ids{start, start + 1, start + 2, start + 3});
      CHECK(row(batch.targets, r, 4) == Ids{start + 1, start + 2, start + 3, start + 4});
    }
  }
}

TEST_CASE("data: training and validation never share a token and reach all of them") {
  const auto data = data_of(counting(40, ", \"val_fraction\": 0.25"));
  Generator g(9);
  std::set<int64_t> train, val;
  for (int step = 0; step < 300; ++step) {
    const Batch a = data->train_batch(2, g), b = data->eval_batch(2, g);
    for (const Ids* ids : {&a.inputs, &a.targets}) train.insert(ids->begin(), ids->end());
    for (const Ids* ids : {&b.inputs, &b.targets}) val.insert(ids->begin(), ids->end());
  }
  CHECK(train.size() == 30);
  CHECK(*train.rbegin() == 29);
  CHECK(val.size() == 10);
  CHECK(*val.begin() == 30);
}

TEST_CASE("data: without a share for validation the training tokens are evaluated") {
  const auto data = data_of(counting(6, ""));
  Generator a(3), b(3);
  CHECK(data->train_batch(8, a).inputs == data->eval_batch(8, b).inputs);
}

TEST_CASE("data: every batch of an evaluation has targets that count and data without any is refused") {
  const auto padded = [](const std::string& tokens, const std::string& more = "") {
    return R"({"model": {"context_length": 2}, "data": {"kind": "tokens", "vocab_size": 4, "ignore_index": 0, "tokens": [)" +
           tokens + "]" + more + "}}";
  };
  const std::string zeros = ", 0, 0, 0, 0, 0, 0, 0, 0, 0", half = R"(, "val_fraction": 0.5)";
  for (const std::string& json : {padded("1, 2, 3" + zeros), padded("0, 1, 0" + zeros + ", 1, 2, 3" + zeros, half)}) {
    const auto data = data_of(json);
    Generator g(1);
    for (int i = 0; i < 100; ++i) CHECK(data->eval_batch(1, g).counted() > 0);
  }
  const std::string place = "run.json: /data/ignore_index: ", all = ": all of them are 0";
  CHECK(refusal([&] { data_of(padded("1" + zeros)); }) == place + "must leave a target to train on" + all);
  CHECK(refusal([&] { data_of(padded("1, 2, 3" + zeros, R"(, "window_starts": [2, 5])")); }).starts_with(place));
  CHECK(refusal([&] { data_of(padded("1, 2, 3" + zeros, half)); }) ==
        place + "must leave a target among the held-out tokens" + all +
            " (data.val_fraction = 0 evaluates on the training data)");
}

TEST_CASE("data: the share of training tokens is floored") {
  CHECK(training_tokens(1115394, 0.1) == 1003854);
  CHECK(training_tokens(10, 0.1) == 9);
  CHECK(training_tokens(7, 0.1) == 6);
  CHECK(training_tokens(7, 0) == 7);
}

TEST_CASE("data: text inline, from a file and from several files") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "onestep_data_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "b.txt") << "ba";
  std::ofstream(folder / "a.txt") << "abcé";
  std::ofstream(folder / "c.md") << "zz";
  std::ofstream(folder / "bad.bin") << "ok\xff";
  const std::string where = folder.string();
  const std::string base = R"({"model": {"context_length": 2}, "data": {"kind": "text", "val_fraction": 0, )";
  const auto path_of = [&](const std::string& name) { return R"("path": ")" + where + "/" + name + "\""; };
  const auto paths_of = [&](const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list.append(list.empty() ? "\"" : ", \"").append(where + "/" + name).append("\"");
    return R"("paths": [)" + list + "]";
  };
  const auto text_of = [&](const std::string& key) {
    const auto data = data_of(base + key + "}}");
    Generator g(1);
    const Batch batch = data->train_batch(50, g);
    const std::set<int64_t> seen(batch.inputs.begin(), batch.inputs.end());
    return data->describe() + " " + std::to_string(seen.size()) + " " + std::string(name_of(data->tokenizer()->kind()));
  };
  CHECK(text_of(R"("text": "one two one two three", "tokenizer": "word")") == "5 tokens (word), vocabulary 3 2 word");
  CHECK(text_of(path_of("a.txt")) == "4 tokens (char), vocabulary 4 3 char");
  CHECK(text_of(paths_of({"*.txt"})) == "6 tokens (char), vocabulary 4 4 char");
  CHECK(text_of(paths_of({"b.txt", "*.txt", "c.md"})) == "8 tokens (char), vocabulary 5 5 char");
  CHECK(text_of(paths_of({"*.txt", "./b.txt", "../onestep_data_test/a.txt"})) == "6 tokens (char), vocabulary 4 4 char");
  std::ofstream(folder / "d[1].log") << "abab";
  std::ofstream(folder / "d1.log") << "no";
  std::filesystem::create_directories(folder / "sub.log");
  CHECK(text_of(paths_of({"d[1].log"})) == "4 tokens (char), vocabulary 2 2 char");
  CHECK(text_of(paths_of({"d1*.log", "*.log"})) == "6 tokens (char), vocabulary 4 4 char");
  CHECK(refusal([&] { text_of(paths_of({"s*.log"})); }).starts_with("run.json: /data/paths/0: "));
  CHECK(text_of(path_of("bad.bin") + R"(, "tokenizer": "byte")") == "3 tokens (byte), vocabulary 256 2 byte");

  CHECK(refusal([&] { text_of(path_of("bad.bin")); }).starts_with(where + "/bad.bin: offset 2: "));
  CHECK(refusal([&] { text_of(path_of("none")); }).starts_with(where + "/none: "));
  CHECK(refusal([&] { text_of(path_of("")); }).starts_with(where + "/: "));
  CHECK(refusal([&] { text_of(R"("paths": ["*.none", "b"])"); }) ==
        "run.json: /data/paths/0: no file matches: \"*.none\" (paths are relative to the working directory)");
  CHECK(refusal([&] { text_of(R"("text": "ab")"); }) ==
        "run.json: /data: too few tokens to train on: 2 of 2, one window takes context_length + 1 = 3 (a longer text, or a "
        "smaller model.context_length)");
  CHECK(refusal([&] { text_of(R"("text": "   ", "tokenizer": "word")"); }).starts_with("run.json: /data: "));
  CHECK(refusal([&] { data_of(base + R"("text": "abcdefghij"}})", {"data.val_fraction=0.1"}); }) ==
        "--set data.val_fraction=0.1: /data/val_fraction: leaves too few tokens for validation: 1, one window takes "
        "context_length + 1 "
        "= 3 "
        "(0 evaluates on the training data)");
  std::filesystem::remove_all(folder);
}

TEST_CASE("data: a text is encoded with the tokenizer of the run if there is one") {
  const Config config = parse_config(
      R"({"model": {"context_length": 1}, "data": {"kind": "text", "text": "ab", "val_fraction": 0}})", "run.json");
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(TokenizerKind::characters, "xyzab");
  Generator g(1);
  CHECK(make_data(config, tokenizer)->train_batch(1, g).inputs == Ids{0});
  CHECK(make_data(config, tokenizer)->vocab_size() == 5);
  CHECK(refusal([&] {
          make_data(config, make_tokenizer(TokenizerKind::characters, "b"));
        }).starts_with("run.json: /data: encode: offset 0: "));
}

TEST_CASE("tasks: sequences are a prompt and its answer and only the answer counts") {
  struct Task {
    std::string json;
    int64_t length, prompt, vocab;
    std::function<Ids(Ids)> answer;
  };
  const std::vector<Task> tasks = {
      {R"({"kind": "task", "task": "copy", "length": 5, "vocab_size": 9})", 9, 5, 9, [](Ids p) { return p; }},
      {R"({"kind": "task", "task": "reverse", "length": 5, "vocab_size": 9})", 9, 5, 9,
       [](Ids p) { return Ids(p.rbegin(), p.rend()); }},
      {R"({"kind": "task", "task": "sort", "length": 5, "vocab_size": 9})", 9, 5, 9,
       [](Ids p) {
         std::sort(p.begin(), p.end());
         return p;
       }},
      {R"({"kind": "task", "task": "modular_addition", "modulus": 11})", 3, 3, 12,
       [](Ids p) { return Ids{(p[0] + p[1]) % 11}; }},
  };
  for (const Task& task : tasks) {
    CAPTURE(task.json);
    const auto data = data_of("{\"data\": " + task.json + "}");
    CHECK(data->length() == task.length);
    CHECK(data->vocab_size() == task.vocab);
    CHECK(!data->bigram_loss());
    Generator g(2);
    for (const bool held_out : {false, true}) {
      const Batch batch = held_out ? data->eval_batch(40, g) : data->train_batch(40, g);
      CHECK(batch.batch == 40);
      CHECK(batch.length == task.length);
      for (int64_t r = 0; r < 40; ++r) {
        const Ids inputs = row(batch.inputs, r, task.length), targets = row(batch.targets, r, task.length);
        const Ids prompt(inputs.begin(), inputs.begin() + task.prompt), answer = task.answer(prompt);
        Ids whole = prompt, expected(static_cast<size_t>(task.prompt - 1), kIgnoreIndex);
        whole.insert(whole.end(), answer.begin(), answer.end() - 1);
        expected.insert(expected.end(), answer.begin(), answer.end());
        CHECK(inputs == whole);
        CHECK(targets == expected);
        for (const int64_t id : inputs) CHECK((id >= 0 && id < task.vocab));
        if (task.vocab == 12) CHECK(inputs[2] == 11);
      }
    }
  }
}

TEST_CASE("tasks: symbols have names that read back as their ids") {
  const auto config_of = [](const std::string& data) { return parse_config("{\"data\": " + data + "}", "run.json"); };
  for (const auto& each : std::vector<std::array<std::string, 3>>{
           {R"({"kind": "task", "task": "copy", "vocab_size": 3})", "a", "c"},
           {R"({"kind": "task", "task": "sort", "vocab_size": 27})", "A", "a"},
           {R"({"kind": "task", "task": "copy", "vocab_size": 53})", "00", "52"},
           {R"({"kind": "task", "task": "modular_addition", "modulus": 9})", "0", "="},
           {R"({"kind": "task", "task": "modular_addition", "modulus": 101})", "000", "="}}) {
    CAPTURE(each[0]);
    const Config config = config_of(each[0]);
    const auto data = make_data(config);
    const auto names = task_tokenizer(config.data);
    REQUIRE(names != nullptr);
    CHECK(names->vocab_size() == data->vocab_size());
    CHECK(data->token_name(0) == each[1]);
    CHECK(data->token_name(data->vocab_size() - 1) == each[2]);
    CHECK(data->token_name(data->vocab_size()) == std::to_string(data->vocab_size()));  // a model may know more
    Ids all(static_cast<size_t>(data->vocab_size()));
    std::iota(all.begin(), all.end(), int64_t{0});
    CHECK(names->encode(names->decode(all)) == all);
  }
  CHECK(task_tokenizer(config_of(R"({"kind": "task", "task": "copy", "vocab_size": 65537})").data) == nullptr);
}

TEST_CASE("tasks: what is held out never occurs in training and everything else does") {
  for (const int64_t seed : {1, 2}) {
    const auto data =
        data_of(R"({"data": {"kind": "task", "task": "copy", "length": 3, "vocab_size": 4, "val_fraction": 0.25}})");
    Generator g(seed);
    std::set<Ids> train, held_out;
    for (int step = 0; step < 200; ++step) {
      const Batch a = data->train_batch(16, g), b = data->eval_batch(16, g);
      for (int64_t r = 0; r < 16; ++r) {
        train.insert(row(a.inputs, r, 5));
        held_out.insert(row(b.inputs, r, 5));
      }
    }
    for (const Ids& sequence : held_out) CHECK(!train.contains(sequence));
    CHECK(train.size() + held_out.size() == 64);  // 4^3 prompts
    CHECK(held_out.size() >= 8);
    CHECK(held_out.size() <= 24);
  }
}

TEST_CASE("tasks: about val_fraction of the prompts are held out") {
  const auto data = data_of(R"({"data": {"kind": "task", "task": "modular_addition", "modulus": 50, "val_fraction": 0.3}})");
  Generator g(4);
  std::set<Ids> held_out;
  for (int step = 0; step < 100; ++step) {
    const Batch batch = data->eval_batch(200, g);
    for (int64_t r = 0; r < 200; ++r) held_out.insert(row(batch.inputs, r, 3));
  }
  CHECK(held_out.size() > 2500 * 0.27);
  CHECK(held_out.size() < 2500 * 0.33);
}

TEST_CASE("tasks: a task too small to hold anything out is refused") {
  CHECK(
      refusal([] {
        data_of(R"({"data": {"kind": "task", "task": "copy", "length": 1, "vocab_size": 2, "val_fraction": 0.001}})");
      }) ==
      "run.json: /data/val_fraction: holds out 0 of the 2 prompts that task copy has here; some must be held out and some not");
}

TEST_CASE("tasks: the generator alone decides the batch") {
  const auto data = data_of(R"({"data": {"kind": "task", "task": "sort"}})");
  Generator a(8), b(8);
  CHECK(data->train_batch(5, a).inputs == data->train_batch(5, b).inputs);
  CHECK(data->train_batch(5, a).inputs == data->train_batch(5, b).inputs);
  CHECK(a.u32() == b.u32());
}

TEST_CASE("data: the ready configs make batches") {
  for (const char* name : {"next_token", "sentence", "own_docs", "text", "shakespeare_char", "shakespeare"}) {
    CAPTURE(name);
    const Config config = load_config(std::string(ONESTEP_SOURCE_DIR "/configs/") + name + ".json");
    const auto data = make_data(config);
    Generator g(config.seed);
    const Batch batch = data->train_batch(config.train.batch_size, g);
    CHECK(batch.inputs.size() == static_cast<size_t>(config.train.batch_size * data->length()));
    CHECK(*std::max_element(batch.inputs.begin(), batch.inputs.end()) < data->vocab_size());
  }
}

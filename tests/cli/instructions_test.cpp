// Fine-tuning on instructions from outside.
#include <doctest/doctest.h>

#include <utility>

#include "tests/cli/ranks.h"
#include "tests/support.h"

using namespace onestep::testing;

namespace {

/// Two answers to be learnt by heart, in conversations of one and of two turns.
std::string dialogues() {
  std::string lines;
  for (int i = 0; i < 6; ++i)
    lines +=
        "{\"prompt\": \"hi\", \"answer\": \"hello there\"}\n{\"question\": \"bye\", \"output\": \"see you\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"bye\"}, {\"role\": \"assistant\", \"content\": \"see you\"}, "
        "{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"hello there\"}]}\n";
  return lines;
}

std::string config_with(const fs::path& data, const std::string& model = "", const std::string& train = "") {
  return R"({"seed": 1, "model": {"kind": "gpt", "d_model": 48, "num_heads": 2, "num_layers": 2, "context_length": 96)" +
         model + R"(}, "data": {"kind": "instructions", "val_fraction": 0, "path": ")" + data.string() +
         R"("}, "optimizer": {"lr": 0.005}, "train": {"batch_size": 2, "eval_batches": 4)" + train + "}}";
}

Arguments train_command(const fs::path& config, const fs::path& run, const Arguments& sets) {
  return set({kProgram, "train", config.string(), "--quiet", "--out", run.string()}, sets);
}

}  // namespace

TEST_CASE("cli: instructions are learnt and chat takes the template of the run") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", data = folder.path() / "data.jsonl";
  write(data, dialogues());
  for (const std::string chat_template : {"", "chatml", "Q {user} A {answer};"}) {
    CAPTURE(chat_template);
    write(folder.path() / "config.json", config_with(data));
    Arguments sets{"train.steps=120"};
    if (!chat_template.empty()) sets.push_back("data.template=" + chat_template);
    const ProcessResult result = run_process(train_command(folder.path() / "config.json", run, sets));
    REQUIRE_MESSAGE(result.status == 0, result.err);
    CHECK(contains(result.out, " predictions on training answers\n"));
    const ProcessResult said = run_process(
        {"sh", "-c", "printf 'bye\\nhi\\n' | \"$0\" chat \"$1\" --temperature 0 --tokens 30", kProgram, run.string()});
    CHECK(said.out == "see you\nhello there\n");
    const ProcessResult eval = run_onestep({"eval", run.string(), "--quiet"});
    CHECK_MESSAGE(contains(eval.out, "accuracy     100.00 % of "), eval.out);
    const ProcessResult samples = run_onestep({"inspect", run.string()});
    CHECK(samples.status == 0);
  }
}

TEST_CASE("cli: another file of conversations is evaluated in full") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", data = folder.path() / "data.jsonl", other = folder.path() / "other.jsonl";
  write(data, dialogues());
  write(folder.path() / "config.json", config_with(data));
  run_alone(train_command(folder.path() / "config.json", run, {"train.steps=3"}));
  write(other, "{\"prompt\": \"hi\", \"answer\": \"bye\"}\n");
  const ProcessResult eval = run_onestep({"eval", run.string(), "--data", other.string(), "--quiet"});
  REQUIRE_MESSAGE(eval.status == 0, eval.err);
  CHECK_MESSAGE(contains(eval.out, " % of 10 predictions on " + other.string()), eval.out);  // " bye\nUser:"
  write(other, "{\"prompt\": \"hi\"}\n");
  const ProcessResult bad = run_onestep({"eval", run.string(), "--data", other.string(), "--quiet"});
  CHECK(bad.status == 2);
  CHECK(contains(bad.err, other.string() + ": line 1: "));
}

TEST_CASE("cli: instructions give the same bits with any number of threads and ranks and after a resume") {
  if (skips_without_ci()) return;
  const TemporaryFolder folder;
  const fs::path data = folder.path() / "data.jsonl", config = folder.path() / "config.json", alone = folder.path() / "alone";
  write(data, dialogues());
  const std::string narrow = R"(, "precision": "bf16", "recompute": true)",
                    adapters = R"(, "lora": {"rank": 2, "dropout": 0.1})";
  struct Case {
    std::string model, training;
  };
  for (const Case& which : {Case{"", ""}, {"", narrow}, {adapters, narrow}}) {
    const std::string &model = which.model, &training = which.training;
    CAPTURE(model);
    CAPTURE(training);
    write(config,
          config_with(data, R"(, "dropout": 0.1)" + model, R"(, "grad_accumulation": 4, "checkpoint_every": 6)" + training));
    run_alone(train_command(config, alone, {"train.steps=12", "train.batch_size=1"}));
    const fs::path threads = folder.path() / "threads", resumed = folder.path() / "resumed";
    run_alone(train_command(config, threads, {"train.steps=12", "train.batch_size=1"}) + Arguments{"--threads", "1"});
    check_same_checkpoint(alone, threads, 12);
    run_alone(train_command(config, resumed, {"train.steps=6", "train.batch_size=1"}));
    run_alone({kProgram, "train", "--resume", resumed.string(), "--quiet", "--set", "train.steps=12"});
    check_same_checkpoint(alone, resumed, 12);
    if (skips()) return;
    for (const int count : {2, 3}) {
      const fs::path shared = folder.path() / ("ranks-" + std::to_string(count));
      run_ranks({ranks(count, train_command(config, shared, {"train.steps=12", "train.batch_size=1"}))});
      check_same_checkpoint(alone, shared, 12);
    }
  }
}

TEST_CASE(
    "cli: an imported model with a tokenizer of its own and an untied head learns conversations, with adapters and without") {
  if (skips_without_ci()) return;
  const TemporaryFolder folder;
  const fs::path first = folder.path() / "first", files = folder.path() / "files", base = folder.path() / "base",
                 data = folder.path() / "data.jsonl", run = folder.path() / "run", again = folder.path() / "again";
  write(data, dialogues());
  write(
      folder.path() / "config.json",
      R"({"seed": 5, "model": {"kind": "gpt", "num_layers": 2, "d_model": 48, "num_heads": 2, "rope": true, "context_length": 96,
            "norm": "rms_norm", "activation": "swiglu", "bias": false, "tie_weights": false}, "train": {"steps": 150}, "optimizer": {"lr": 0.01},
            "data": {"kind": "text", "tokenizer": "bpe", "val_fraction": 0, "path": ")" +
          data.string() + R"(", "tokenizer_path": ")" ONESTEP_SOURCE_DIR R"(/tests/goldens/hf_tokenizers/qwen2"}})");
  run_alone(train_command(folder.path() / "config.json", first, {}));
  run_alone({kProgram, "export", first.string(), files.string(), "--quiet"});
  run_alone({kProgram, "import", files.string(), "--out", base.string(), "--quiet"});
  CHECK(json::parse(read(base / "config.json"))["model"]["tie_weights"] == false);
  const Arguments sets{"train.init_from=" + base.string(),
                       "data.kind=instructions",
                       "data.path=" + data.string(),
                       "data.val_fraction=0",
                       "train.batch_size=2",
                       "train.eval_batches=4",
                       "train.steps=150"};
  const auto chat = [&](const fs::path& with) {
    return run_process(
               {"sh", "-c", "printf 'bye\\nhi\\n' | \"$0\" chat \"$1\" --temperature 0 --tokens 30", kProgram, with.string()})
        .out;
  };
  for (const bool adapters : {false, true}) {
    CAPTURE(adapters);
    const Arguments more =
        adapters ? Arguments{"model.lora.rank=8", "model.lora.targets=[\"*_proj\", \"lm_head\"]", "optimizer.lr=0.02"}
                 : Arguments{"optimizer.lr=0.005"};
    const ProcessResult result = run_process(train_command(base / "config.json", run, sets + more));
    REQUIRE_MESSAGE(result.status == 0, result.err);
    const json config = json::parse(read(run / "config.json"));
    CHECK(config["data"]["template"] == "chatml");  // whose marks are tokens of that tokenizer
    CHECK(config["data"]["tokenizer"] == "bpe");
    CHECK(chat(run) == "see you\nhello there\n");
    // What a conversation comes to: the marks are a token each.
    const ProcessResult ids =
        run_process({"sh", "-c", "printf '<|im_start|>' | \"$0\" tokenizer encode \"$1\"", kProgram, run.string()});
    CHECK(ids.out == "421\n");
  }
  run_alone({kProgram, "export", run.string(), (folder.path() / "adapter").string(), "--adapter", "--quiet"});
  run_alone(
      {kProgram, "import", (folder.path() / "adapter").string(), "--base", base.string(), "--out", again.string(), "--quiet"});
  CHECK(chat(again) == "see you\nhello there\n");
}

// Fine-tuning a classifier from outside: train, eval, classify, the report, and what does not apply to one.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "tests/cli/ranks.h"
#include "tests/support.h"

using namespace onestep::testing;

namespace {

/// Texts of words; label `yes` where the last one is `good`, else `no`.
std::string rows(int count) {
  std::string csv = "text,label\n";
  const std::vector<std::string> words{"one", "step", "good", "bad", "journey", "starts"};
  uint32_t state = 7;
  const auto next = [&](uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int i = 0; i < count; ++i) {
    std::string text = std::to_string(i);
    for (uint32_t n = 1 + next(4); n > 0; --n) text += " " + words[next(6)];
    const bool good = next(2) == 0;
    csv += "\"" + text + (good ? ", good\",yes\n" : ", bad\",no\n");
  }
  return csv;
}

std::string config_of(const fs::path& data, const std::string& train = "") {
  return R"({"seed": 1, "model": {"kind": "gpt", "d_model": 32, "num_heads": 2, "num_layers": 2, "context_length": 12},
    "data": {"kind": "classification", "tokenizer": "word", "val_fraction": 0.25, "path": ")" +
         data.string() + R"("}, "optimizer": {"lr": 0.003}, "train": {"batch_size": 8, "steps": 60)" + train + "}}";
}

Arguments train_command(const fs::path& config, const fs::path& run, const Arguments& sets = {}) {
  return set({kProgram, "train", config.string(), "--quiet", "--out", run.string()}, sets);
}

/// One sentence on stderr with `part` in it, and exit status 2.
void check_refused(const Arguments& arguments, const std::string& part) {
  const ProcessResult result = run_onestep(arguments);
  CHECK(result.status == 2);
  CHECK_MESSAGE(contains(result.err, part), result.err);
}

/// A run that has read the texts of a file and their labels as one text.
void train_on_text(const fs::path& run, const fs::path& data, const Arguments& sets) {
  const fs::path config = run.string() + ".json";
  write(config, R"({"seed": 2, "model": {"kind": "gpt", "d_model": 32, "num_heads": 2, "num_layers": 2, "context_length": 12},
            "data": {"kind": "text", "tokenizer": "word", "path": ")" +
                    data.string() + R"("}, "train": {"eval_batches": 1}})");
  run_alone(train_command(config, run, sets));
}

}  // namespace

TEST_CASE("cli: a classifier is trained and evaluated and gives labels") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", data = folder.path() / "data.csv", config = folder.path() / "config.json";
  const std::string name = run.string();
  write(data, rows(80));
  write(config, config_of(data));
  const ProcessResult trained = run_process(train_command(config, run));
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  CHECK_MESSAGE(contains(trained.out, "val accuracy 100.00 % of 20 predictions on validation texts\nval macro F1 1.0000\n"),
                trained.out);
  const json last = metrics(run).back();
  CHECK(last["val_accuracy"] == 1.0);
  CHECK(last["val_f1"] == 1.0);
  CHECK(json::parse(read(run / "config.json"))["data"]["labels"] == json{"no", "yes"});

  fs::remove(data);  // a run knows its labels
  write(folder.path() / "other.csv", "label,text\nyes,\"one, good\"\nyes,\"step, bad\"\nno,\"one step, bad\"\n");
  const ProcessResult eval = run_onestep({"eval", name, "--quiet", "--data", (folder.path() / "other.csv").string()});
  CHECK_MESSAGE(contains(eval.out, "accuracy     66.67 % of 3 predictions on "), eval.out);
  CHECK_MESSAGE(
      contains(eval.out,
               "macro F1     0.6667\nlabel, predicted:  no  yes\nno                  1    0\nyes                 1    1\n"),
      eval.out);
  CHECK(run_onestep({"classify", name, "--prompt", "one, good", "--prompt", "step, bad"}).out == "yes\nno\n");
  const json line = json::parse(run_onestep({"classify", name, "--json", "--prompt", "one, good"}).out);
  CHECK(line["label"] == "yes");
  CHECK(line["probabilities"]["yes"].get<double>() + line["probabilities"]["no"].get<double>() == doctest::Approx(1));

  check_refused({"generate", name, "--prompt", "one"}, "is a classifier and writes no text");
  check_refused({"chat", name}, ": is a classifier ");
  check_refused({"export", name, (folder.path() / "exported").string()}, "/data/kind: is classification");
  check_refused({"classify", name}, "needs one of --prompt and --prompts");
  check_refused({"classify", name, "--prompt", "#"}, "--prompt: encode: offset 0: ");
  write(folder.path() / "other.csv", "label,text\nyes,one\nmaybe,one\n");
  check_refused({"eval", name, "--quiet", "--data", (folder.path() / "other.csv").string()}, "other.csv: line 3: the label ");
  check_refused({"train", config.string(), "--out", name + "2", "--set", "model.kind=attention"}, "/model/kind: must be gpt");
}

TEST_CASE("cli: a classifier starts from a pretrained run with a head of its own") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base", data = folder.path() / "data.csv", run = folder.path() / "run";
  write(data, rows(80));
  train_on_text(base, data, {"train.steps=20"});
  write(folder.path() / "config.json", config_of(data));
  const ProcessResult trained = run_process(train_command(
      folder.path() / "config.json", run, {"train.init_from=" + base.string(), "optimizer.lr=0", "train.steps=1"}));
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const std::string before = read(base / "checkpoints/step-20/model.safetensors"),
                    after = read(run / "checkpoints/step-1/model.safetensors");
  CHECK(contains(after, "score.weight"));
  CHECK_FALSE(contains(after, "lm_head.weight"));
  const auto ends = [](const std::string& file) { return file.substr(file.find("}}") + 2); };
  CHECK(contains(ends(after), ends(before).substr(4096, 4096)));  // the same bits, elsewhere in the file
  // A run that was killed before its first checkpoint starts from them again.
  fs::remove_all(run / "checkpoints");
  fs::remove(run / "metrics.jsonl");
  run_alone({kProgram, "train", "--resume", run.string(), "--quiet"});
  CHECK(read(run / "checkpoints/step-1/model.safetensors") == after);
  // And the other way round there is no head for tokens.
  check_refused(
      {"train", base.string() + ".json", "--quiet", "--out", run.string() + "2", "--set", "train.init_from=" + run.string()},
      "does not fit the config");
}

TEST_CASE("cli: a classifier with adapters trains these and its head, and merged it says the same") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base", data = folder.path() / "data.csv", run = folder.path() / "run";
  write(data, rows(80));
  train_on_text(base, data, {"train.steps=300", "optimizer.lr=0.003"});
  write(folder.path() / "config.json", config_of(data));
  const ProcessResult trained =
      run_process(train_command(folder.path() / "config.json", run,
                                {"train.init_from=" + base.string(), "model.lora.rank=4", "model.lora.targets=[\"*\"]",
                                 "optimizer.lr=0.01", "train.steps=200"}));
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  CHECK_MESSAGE(contains(trained.out, "val accuracy 100.00 % of 20 predictions on validation texts\n"), trained.out);
  const std::string parameters = read(run / "checkpoints/step-200/model.safetensors");
  for (const char* const own : {"score.weight", "transformer.h.0.attn.c_attn.lora_A.weight"}) CHECK(contains(parameters, own));
  CHECK_FALSE(contains(parameters, "wte"));
  const std::string frozen = read(run / "frozen.safetensors");
  CHECK(contains(frozen, "transformer.wte.weight"));
  CHECK_FALSE(contains(frozen, "score.weight"));
  CHECK(contains(read(run / "checkpoints/step-200/optimizer.safetensors"), "score.weight.exp_avg"));

  // classify merges the adapters, eval does not: the mean of -log p of the labels is its loss.
  write(folder.path() / "texts", "0 one, good\n1 step, bad\n");
  write(folder.path() / "other.csv", "text,label\n\"0 one, good\",yes\n\"1 step, bad\",yes\n");
  const ProcessResult eval = run_onestep({"eval", run.string(), "--quiet", "--data", (folder.path() / "other.csv").string()});
  const ProcessResult labels =
      run_onestep({"classify", run.string(), "--json", "--prompts", (folder.path() / "texts").string()});
  REQUIRE_MESSAGE(labels.status == 0, labels.err);
  std::istringstream lines(labels.out);
  double loss = 0;
  for (std::string line; std::getline(lines, line);)
    loss -= std::log(json::parse(line)["probabilities"]["yes"].get<double>()) / 2;
  const double stated = std::stod(eval.out.substr(eval.out.find("loss") + 4));
  CHECK(loss == doctest::Approx(stated).epsilon(1e-3));
  CHECK(stated > 0.5);  // of the one that is not yes
}

TEST_CASE("cli: a classifier has the same bits with any number of threads and ranks and after a resume") {
  const TemporaryFolder folder;
  const fs::path data = folder.path() / "data.csv", config = folder.path() / "config.json", alone = folder.path() / "alone";
  write(data, rows(30));
  const Arguments sets{"train.steps=8", "train.batch_size=3", "model.dropout=0.1"};
  write(config, config_of(data, R"(, "grad_accumulation": 4, "eval_every": 4, "precision": "bf16", "recompute": true)"));
  run_alone(train_command(config, alone, sets));
  const fs::path threads = folder.path() / "threads", resumed = folder.path() / "resumed", shared = folder.path() / "ranks";
  run_alone(train_command(config, threads, sets) + Arguments{"--threads", "1"});
  check_same_checkpoint(alone, threads, 8);
  run_alone(train_command(config, resumed, {"train.steps=4", sets[1], sets[2]}));
  run_alone({kProgram, "train", "--resume", resumed.string(), "--quiet", "--set", "train.steps=8"});
  check_same_checkpoint(alone, resumed, 8);
  if (skips()) return;
  run_ranks({ranks(3, train_command(config, shared, sets))});
  check_same_checkpoint(alone, shared, 8);
  CHECK(metrics(alone) == metrics(shared));
}

TEST_CASE("cli: the report has a classifier's confusion matrix with its labels") {
  const TemporaryFolder folder;
  const fs::path data = folder.path() / "data.csv", config = folder.path() / "config.json", run = folder.path() / "run";
  write(data, rows(40));
  write(config, config_of(data));
  run_alone(train_command(config, run, {"train.steps=2"}));
  const std::string page = read(run / "report.html");
  const std::string begin = R"("labels":["no","yes"],"confusion":[)";
  const size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  const json counts =
      json::parse(page.substr(at + begin.size() - 1, page.find(']', at + begin.size()) - at - begin.size() + 2));
  REQUIRE(counts.size() == 4);
  CHECK(counts[0].get<int>() + counts[1].get<int>() + counts[2].get<int>() + counts[3].get<int>() == 10);
  CHECK(contains(page, " -> "));  // a sample: its text and its label
}

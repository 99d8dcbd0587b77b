// Reading good configs: defaults, --set, the resolved file, and what is made from the table of keys.
#include "train/config/config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/read_file.h"
#include "optim/schedule.h"
#include "tests/paths.h"
#include "tests/support.h"
#include "train/config/config_fields.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;

namespace {

const std::string kTask = R"({"data": {"kind": "task", "task": "copy"}})";

std::string source_file(const std::string& name) { return read_file(ONESTEP_SOURCE_DIR "/" + name, 1 << 24); }

std::vector<std::string> configs_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ONESTEP_SOURCE_DIR "/" + folder)) {
    if (entry.path().filename() != "schema.json") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("config: what is left out has the default of the structs") {
  const Config config = parse_config(kTask, "run.json");
  Config expected;
  expected.data.kind = DataKind::task;
  expected.data.task = Task::copy;
  CHECK(config == resolve(expected));
  CHECK(config.origin.file == "run.json");
}

TEST_CASE("config: every key is read into its own field") {
  const Config config = parse_config(R"({
    "seed": -5,
    "model": {"kind": "attention", "attention": "causal", "d_model": 6, "context_length": 3, "dropout": 0.25, "qkv_bias": true,
              "rng_dialect": "torch-mkl"},
    "data": {"kind": "tokens", "tokens": [0, 3, 1, 1, 2, 3], "vocab_size": 4, "window_starts": [0, 1], "val_fraction": 0.125,
             "ignore_index": 1},
    "optimizer": {"kind": "adam", "lr": 0.5, "betas": [0.8, 0.95], "eps": 1e-4, "weight_decay": 0.1, "decay": "matrices",
                  "amsgrad": true},
    "schedule": {"kind": "linear", "warmup_steps": 2, "decay_steps": 9, "min_lr": 0.125},
    "train": {"steps": 1e1, "batch_size": 2, "grad_accumulation": 3, "grad_clip": 1, "dtype": "float64", "eval_every": 4,
              "eval_batches": 5, "log_every": 6, "checkpoint_every": 7, "keep_checkpoints": 8, "freeze": ["att.*", "h?"]},
    "distributed": {"reduce": "allreduce", "bucket_mb": 3, "timeout": 4.5}})",
                                     "run.json");
  CHECK(config.seed == -5);
  CHECK(config.model == ModelConfig{.attention = AttentionKind::causal,
                                    .d_model = 6,
                                    .num_heads = 1,
                                    .context_length = 3,
                                    .dropout = 0.25,
                                    .qkv_bias = true,
                                    .rng_dialect = RngDialect::torch_mkl});
  CHECK(config.data.tokens == std::vector<int64_t>{0, 3, 1, 1, 2, 3});
  CHECK(config.data.vocab_size == 4);
  CHECK(config.data.window_starts == std::vector<int64_t>{0, 1});
  CHECK(config.data.val_fraction == 0.125);
  CHECK(config.data.ignore_index == 1);
  CHECK(config.distributed == DistributedConfig{.reduce = Reduce::allreduce, .bucket_mb = 3, .timeout = 4.5});
  CHECK(config.optimizer.kind == OptimizerKind::adam);
  CHECK(config.optimizer.lr == 0.5);
  CHECK(config.optimizer.betas == std::array<double, 2>{0.8, 0.95});
  CHECK(config.optimizer.eps == 1e-4);
  CHECK(config.optimizer.weight_decay == 0.1);
  CHECK(config.optimizer.decay == Decay::matrices);
  CHECK(config.optimizer.amsgrad);
  CHECK(config.schedule ==
        optim::ScheduleConfig{.kind = optim::ScheduleKind::linear, .warmup_steps = 2, .decay_steps = 9, .min_lr = 0.125});
  CHECK(config.train == TrainConfig{.steps = 10,
                                    .batch_size = 2,
                                    .grad_accumulation = 3,
                                    .grad_clip = 1.0,
                                    .dtype = DType::float64,
                                    .init_from = "",
                                    .freeze = {"att.*", "h?"},
                                    .eval_every = 4,
                                    .eval_batches = 5,
                                    .log_every = 6,
                                    .checkpoint_every = 7,
                                    .keep_checkpoints = 8});
}

TEST_CASE("config: keys of the other kinds of data and optimizers are read") {
  const Config text = parse_config(R"({"data": {"kind": "text", "paths": ["a", "b*"], "tokenizer": "word"},
    "optimizer": {"kind": "sgd", "momentum": 0.9, "dampening": 0, "nesterov": true}})",
                                   "run.json");
  CHECK(text.data.paths == std::vector<std::string>{"a", "b*"});
  CHECK(text.data.tokenizer == TokenizerKind::words);
  CHECK(text.optimizer.momentum == 0.9);
  CHECK(text.optimizer.nesterov);
  const Config task = parse_config(R"({"data": {"kind": "task", "task": "modular_addition", "modulus": 13},
    "optimizer": {"kind": "rmsprop", "alpha": 0.9}})",
                                   "run.json");
  CHECK(task.data.modulus == 13);
  CHECK(task.optimizer.alpha == 0.9);
  const Config sort = parse_config(R"({"data": {"kind": "task", "task": "sort", "length": 5}})", "run.json");
  CHECK(sort.data.length == 5);
  CHECK(parse_config(R"({"data": {"kind": "text", "text": "ab"}})", "run.json").data.text == "ab");
}

TEST_CASE("config: defaults that follow from other keys") {
  const std::string tokens =
      R"({"model": {"context_length": 2}, "data": {"kind": "tokens", "tokens": [0, 1, 2, 0, 1], "vocab_size": 3,
    "window_starts": [0, 1, 2]}})";
  CHECK(parse_config(tokens, "run.json").train.batch_size == 3);
  CHECK(parse_config(tokens, "run.json").data.val_fraction == 0);
  CHECK(parse_config(kTask, "run.json").train.batch_size == 12);
  CHECK(parse_config(kTask, "run.json").data.val_fraction == 0.1);
  CHECK(parse_config(kTask, "run.json", {"schedule.kind=cosine", "train.steps=70"}).schedule.decay_steps == 70);
  struct Defaults {
    std::string kind;
    double lr, eps, weight_decay;
  };
  for (const Defaults& d :
       {Defaults{"adamw", 1e-3, 1e-8, 0.01}, Defaults{"adam", 1e-3, 1e-8, 0}, Defaults{"sgd", 1e-3, 1e-8, 0},
        Defaults{"rmsprop", 1e-2, 1e-8, 0}, Defaults{"adagrad", 1e-2, 1e-10, 0}}) {
    CAPTURE(d.kind);
    const OptimizerConfig optimizer = parse_config(kTask, "run.json", {"optimizer.kind=" + d.kind}).optimizer;
    CHECK(optimizer.lr == d.lr);
    CHECK(optimizer.eps == d.eps);
    CHECK(optimizer.weight_decay == d.weight_decay);
  }
}

TEST_CASE("config: comments are skipped everywhere") {
  const Config config = parse_config(R"({"//": "x", "// 2": {"seed": "?"}, "$schema": "s.json", "//seed": 3,
    "data": {"//kind": 1, "kind": "task", "task": "copy", "$schema": 0}})",
                                     "run.json");
  CHECK(config == parse_config(kTask, "run.json"));
}

TEST_CASE("config: --set wins over the file") {
  const auto with = [](const std::vector<std::string>& sets) {
    return parse_config(R"({"model": {"d_model": 32, "num_heads": 4}, "data": {"kind": "task", "task": "copy"}})", "run.json",
                        sets);
  };
  CHECK(with({"model.d_model=48"}).model.d_model == 48);
  CHECK(with({"seed=7", "seed=8"}).seed == 8);
  CHECK(with({"optimizer.betas=[0.5, 0.75]"}).optimizer.betas == std::array<double, 2>{0.5, 0.75});
  CHECK(with({"optimizer.kind=adam"}).optimizer.kind == OptimizerKind::adam);
  CHECK(with({"optimizer.kind=\"adam\""}).optimizer.kind == OptimizerKind::adam);
  CHECK(with({R"(model={"d_model": 8, "dropout": 0.5})"}).model ==
        ModelConfig{ModelKind::attention, AttentionKind::multi_head, 8, 4, 32, 0.5});
  CHECK(with({"model.num_heads=null"}).model.num_heads == ModelConfig().num_heads);
  CHECK(with({"//note=anything"}) == with({}));
  CHECK(with({"data={\"task\": null, \"kind\": \"text\"}", "data.path=a=b"}).data.path == "a=b");
  // A key that takes a string takes any text, also one that would be JSON.
  CHECK(with({"data.kind=text", "data.task=null", "data.path=123"}).data.path == "123");
  CHECK(with({"data.kind=text", "data.task=null", "data.text=[\"x\"]"}).data.text == "[\"x\"]");
  CHECK(with({"data.kind=text", "data.task=null", "data.path=1e400"}).data.path == "1e400");
  for (const auto& [set, pointer] :
       std::vector<std::pair<std::string, std::string>>{{"model.d_model=1e400", "/model/d_model"},
                                                        {"model.d_model=wide", "/model/d_model"},
                                                        {R"(model={"d_model": 8, "d_model": 9})", "/d_model"}})
    testing::expect_refusal(refusal<ConfigError>([&, &set = set] { with({set}); }),
                            std::string("--set ").append(set).append(": ").append(pointer).append(": "));
}

TEST_CASE("config: keys of the former kind are left out where --set chooses another") {
  const std::string file =
      R"({"model": {"num_heads": 8, "dropout": 0.5}, "data": {"kind": "task", "task": "copy", "vocab_size": 9},
    "optimizer": {"betas": [0.5, 0.5], "eps": 1, "lr": 0.25}})";
  const Config sgd = parse_config(file, "run.json", {"optimizer.kind=sgd"});
  CHECK(sgd.optimizer.lr == 0.25);
  CHECK(sgd.optimizer.betas == OptimizerConfig().betas);
  CHECK(sgd.optimizer.eps == parse_config(kTask, "run.json").optimizer.eps);
  const Config causal = parse_config(file, "run.json", {"model.attention=causal"});
  CHECK(causal.model.num_heads == 1);
  CHECK(causal.model.dropout == 0.5);
  const Config text = parse_config(file, "run.json", {"data={\"kind\": \"text\", \"path\": \"x\"}"});
  CHECK(text.data.task == Task::copy);
  CHECK(parse_config(resolved_json(text), "resolved") == text);
}

TEST_CASE("config: a key of another kind may say what every other kind does") {
  const Config config = parse_config(
      R"({"data": {"kind": "task", "task": "copy"},
          "model": {"attention": "simplified", "num_heads": 1, "dropout": 0.0, "qkv_bias": false}})",
      "run.json");
  CHECK(config == parse_config(kTask, "run.json", {"model.attention=simplified"}));
}

TEST_CASE("config: the resolved config reads back to an equal one") {
  std::vector<std::string> names = configs_in("configs"), more = configs_in("tests/configs");
  names.insert(names.end(), more.begin(), more.end());
  REQUIRE(names.size() >= 9);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Config config = load_config(name);
    const std::string resolved = resolved_json(config);
    CHECK(parse_config(resolved, "resolved") == config);
    CHECK(resolved_json(parse_config(resolved, "resolved")) == resolved);
  }
}

TEST_CASE("config: the resolved config writes every key that applies and no other") {
  for (const char* kind : {"sgd", "adam", "adamw", "rmsprop", "adagrad"}) {
    for (const char* attention :
         {"simplified", "self_v1", "self_v2", "causal", "multi_head_wrapper", "multi_head", "einsum", "fused_qkv"}) {
      const Config config =
          parse_config(kTask, "run.json", {std::string("optimizer.kind=") + kind, std::string("model.attention=") + attention});
      const std::string resolved = resolved_json(config);
      for (const Field& field : config_fields()) {
        if (field.section() != "optimizer" && field.section() != "model") continue;
        CAPTURE(field.path);
        CHECK((resolved.find("    \"" + field.key() + "\": ") != std::string::npos) ==
              (holds(field.when, config) && !field.optional));
      }
      CHECK(parse_config(resolved, "resolved") == config);
    }
  }
}

TEST_CASE("config: the resolved text") {
  const Config config = parse_config(
      R"({"model": {"attention": "self_v2", "d_model": 4, "context_length": 2},
          "data": {"kind": "text", "text": "a \"b\"\n\u00e9"},
          "optimizer": {"kind": "sgd", "lr": 1e-9}, "train": {"grad_clip": 0.30000000000000004}})",
      "run.json");
  CHECK(resolved_json(config) == R"({
  "seed": 123,
  "model": {
    "kind": "attention",
    "attention": "self_v2",
    "d_model": 4,
    "context_length": 2,
    "qkv_bias": false,
    "vocab_size": 0,
    "rng_dialect": "torch"
  },
  "data": {
    "kind": "text",
    "text": "a \"b\"\né",
    "tokenizer": "char",
    "val_fraction": 0.1
  },
  "optimizer": {
    "kind": "sgd",
    "lr": 1e-09,
    "weight_decay": 0.0,
    "decay": "all",
    "momentum": 0.0,
    "dampening": 0.0,
    "nesterov": false
  },
  "schedule": {
    "kind": "constant",
    "warmup_steps": 0
  },
  "train": {
    "steps": 1000,
    "batch_size": 12,
    "grad_accumulation": 1,
    "grad_clip": 0.30000000000000004,
    "dtype": "float32",
    "precision": "float32",
    "early_stop_patience": 0,
    "recompute": false,
    "anomaly": true,
    "eval_every": 0,
    "eval_batches": 20,
    "sample_every": 0,
    "histogram_every": 0,
    "log_every": 1,
    "checkpoint_every": 0,
    "tensorboard": false,
    "keep_checkpoints": 2
  },
  "distributed": {
    "reduce": "exact",
    "bucket_mb": 25,
    "timeout": 600.0
  }
}
)");
}

TEST_CASE("config: a GPT's keys have defaults that follow from others") {
  const auto gpt = [](std::vector<std::string> sets) {
    sets.insert(sets.begin(), {"model.kind=gpt", "model.d_model=100"});
    return parse_config(kTask, "run.json", sets);
  };
  CHECK(gpt({}).model.d_ff == 400);
  CHECK(gpt({"model.activation=swiglu"}).model.d_ff == 272);
  CHECK(gpt({"model.d_ff=7"}).model.d_ff == 7);
  CHECK(gpt({}).optimizer.decay == Decay::matrices);
  const Config rms = gpt({"model.norm=rms_norm", "model.tie_weights=false", "model.bias=false", "model.num_layers=3"});
  CHECK(parse_config(resolved_json(rms), "run.json") == rms);
  CHECK(resolved_json(rms).find("qkv_bias") == std::string::npos);
}

TEST_CASE("config: a schedule's steps follow from those of the run") {
  const auto wsd = [](std::vector<std::string> sets) {
    sets.insert(sets.begin(), {"schedule.kind=wsd", "train.steps=200"});
    return parse_config(kTask, "run.json", sets).schedule;
  };
  CHECK(wsd({}).decay_steps == 200);
  CHECK(wsd({}).decay_start == 180);
  CHECK(wsd({"schedule.warmup_steps=190"}).decay_start == 190);
  CHECK(wsd({"schedule.decay_steps=100", "schedule.decay_start=7"}).decay_start == 7);
  CHECK(wsd({"schedule.warmup_steps=300"}).decay_steps == 300);
  CHECK(wsd({"schedule.decay_start=300"}).decay_steps == 300);
  CHECK(parse_config(kTask, "run.json", {"schedule.kind=step", "train.steps=200"}).schedule.decay_steps == 0);
}

TEST_CASE("config: the ready runs may be cut short or made longer with train.steps alone") {
  for (const std::string& file : configs_in("configs")) {
    CAPTURE(file);
    const Config whole = load_config(file), cut = load_config(file, {"train.steps=5"}),
                 longer = load_config(file, {"train.steps=9000"});
    for (int64_t step = 0; step < 5; ++step)
      CHECK(optim::learning_rate(cut.schedule, cut.optimizer.lr, step) ==
            optim::learning_rate(whole.schedule, whole.optimizer.lr, step));
    if (whole.schedule.kind == optim::ScheduleKind::constant) continue;
    CHECK(optim::learning_rate(longer.schedule, longer.optimizer.lr, 8999) ==
          doctest::Approx(longer.schedule.min_lr).epsilon(0.001));
    CHECK(optim::learning_rate(longer.schedule, longer.optimizer.lr, 8000) > 1.1 * longer.schedule.min_lr);
  }
}

TEST_CASE("config: numbers are written with digits that read back to the same bits") {
  for (const double x : {0.1, 1.0 / 3, 1e-8, 5e-324, 1.7976931348623157e308, 123456789.0, 0.30000000000000004, 2e-5, 1e22}) {
    CHECK(std::strtod(to_json(x).c_str(), nullptr) == x);
  }
  CHECK(to_json(0.001) == "0.001");
  CHECK(to_json(1.0) == "1.0");
  CHECK(to_json(1e-8) == "1e-08");
}

TEST_CASE("config: a config made in C++ is checked like one that was read") {
  Config config = parse_config(kTask, "run.json");
  CHECK(refusal<ConfigError>([&] { resolve(config); }) == "");
  config.optimizer.lr = -1;
  testing::expect_refusal(refusal<ConfigError>([&] { resolve(config); }), "run.json: /optimizer/lr: ");
  CHECK(refusal<ConfigError>([] { resolve({}); }) ==
        "config: /model/vocab_size: must be at least 1 where data.kind is none: got 0");
}

TEST_CASE("config: a config made in C++ gets the values that derive from others, as one that was read") {
  Config made;
  made.data.kind = DataKind::task;
  made.data.length = 4;
  made.model.kind = ModelKind::gpt;
  made.optimizer.kind = OptimizerKind::rmsprop;
  made.schedule.kind = optim::ScheduleKind::wsd;
  made.train.steps = 50;
  const Config config = resolve(made);
  CHECK(config == parse_config(R"({"model": {"kind": "gpt"}, "data": {"kind": "task", "task": "copy", "length": 4},
      "optimizer": {"kind": "rmsprop"}, "schedule": {"kind": "wsd"}, "train": {"steps": 50}})",
                               "run.json"));
  CHECK(config == resolve(config));
  CHECK(config.optimizer.lr == 0.01);
  CHECK(config.optimizer.decay == Decay::matrices);
  CHECK(config.schedule.decay_steps == 50);
  CHECK(config.schedule.decay_start == 45);
  CHECK(config.train.batch_size == 12);
  CHECK(config.model.d_ff == 256);
}

TEST_CASE("config: a config made in C++ may not give what would be ignored") {
  Config made;
  made.data.kind = DataKind::task;
  made.model.rope = true;
  CHECK(refusal<ConfigError>([&] { resolve(made); }) ==
        "config: /model/rope: does not apply: got true (only to model.attention = fused_qkv; or "
        "model.kind = gpt)");
}

TEST_CASE("config: only what leaves the run so far as it is may change on resume") {
  const Config started = parse_config(kTask, "run.json", {"schedule.kind=cosine", "schedule.decay_steps=100"});
  const auto refusal = [&](std::vector<std::string> sets) {
    sets.insert(sets.begin(), {"schedule.kind=cosine", "schedule.decay_steps=100"});
    return onestep::testing::refusal<ConfigError>([&] { check_resumable(started, parse_config(kTask, "run.json", sets)); });
  };
  CHECK(refusal({}) == "");
  CHECK(refusal({"train.steps=5000", "train.log_every=7", "train.eval_every=3", "train.eval_batches=2",
                 "train.checkpoint_every=9", "train.keep_checkpoints=5"}) == "");
  CHECK(refusal({"optimizer.kind=adam"}) ==
        "--set optimizer.kind=adam: /optimizer/kind: cannot change when a run continues: it was started with \"adamw\", got "
        "\"adam\" (give the run another folder to start again)");
  CHECK(refusal({"seed=4"}).starts_with("--set seed=4: /seed: "));
  CHECK(refusal({"train.batch_size=13"}).starts_with("--set train.batch_size=13: /train/batch_size: "));
  CHECK(refusal({"model.dropout=0.5"}).starts_with("--set model.dropout=0.5: /model/dropout: "));
}

TEST_CASE("config: schema.json and config.md are what the table of keys says") {
  const bool schema_is_current = source_file("configs/schema.json") == schema_json();
  CHECK_MESSAGE(schema_is_current, "run: onestep schema > configs/schema.json");
  const bool page_is_current = source_file("docs/config.md") == config_markdown();
  CHECK_MESSAGE(page_is_current, "run: onestep schema --markdown > docs/config.md");
}

TEST_CASE("config: every key has a row in help and a default that its own row allows") {
  const std::string help = config_help();
  for (const Field& field : config_fields()) {
    CAPTURE(field.path);
    CHECK(help.find("\n" + field.path + ": " + expected(field) + (field.required.empty() ? "; default: " : "; required")) !=
          std::string::npos);
    CHECK(find_field(field.path) == &field);
    CHECK(!field.doc.empty());
    if (!field.choices.empty() && field.required.empty()) {
      const std::string_view standard = chosen(default_value(field));
      CHECK(std::find(field.choices.begin(), field.choices.end(), standard) != field.choices.end());
    }
    for (const When& when : field.when) CHECK(find_field(when.path) < &field);  // read before
  }
}

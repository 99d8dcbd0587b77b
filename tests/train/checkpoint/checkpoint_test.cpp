// A trainer that resumes from a checkpoint has the same bits, and a damaged checkpoint is never accepted.
#include "train/checkpoint/checkpoint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "autograd/ops.h"
#include "tests/process.h"
#include "tests/support.h"
#include "tests/train/memory_limit.h"
#include "train/checkpoint/safetensors.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::read;
using onestep::testing::TemporaryFolder;
using onestep::testing::write;
namespace fs = std::filesystem;

namespace {

Config config_with(const std::string& section, const std::string& model = "") {
  return parse_config(R"({"seed": 7, "model": {"d_model": 8, "num_heads": 2, "context_length": 6, "dropout": 0.2)" + model +
                          R"(}, "train": {"steps": 40, "batch_size": 3}, )" + section + "}",
                      "test");
}

const std::string kText =
    R"("data": {"kind": "text", "text": "the quick brown fox jumps over the lazy dog and goes on to run"})";
const std::string kTask = R"("data": {"kind": "task", "task": "sort", "vocab_size": 5, "length": 3})";

Config small() { return config_with(kText); }

bool same(const nn::NamedTensors& a, const nn::NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
}

void check_same(const TrainerState& a, const TrainerState& b) {
  CHECK(a.step == b.step);
  CHECK(a.sequences == b.sequences);
  CHECK(a.generator == b.generator);
  CHECK(same(a.model, b.model));
  CHECK(same(a.optimizer, b.optimizer));
}

void take_steps(Trainer& trainer, int64_t steps) {
  while (steps-- > 0) trainer.step();
}

/// A trainer interrupted after 7 steps, saved, loaded into another one and trained on equals the one that never stopped.
void check_resumes(const Config& config) {
  const TemporaryFolder run;
  Trainer whole(config), first(config), second(config);
  take_steps(whole, 12);
  take_steps(first, 7);
  save_checkpoint(run.path(), {first.state(), {}}, 1);
  take_steps(second, 2);  // of what it did before nothing may be left
  const auto found = newest_checkpoint(run.path());
  REQUIRE(found.has_value());
  second.load_state(found->checkpoint.trainer);
  check_same(first.state(), second.state());
  take_steps(second, 5);
  check_same(whole.state(), second.state());
  CHECK(whole.evaluate().loss == second.evaluate().loss);
}

std::string refusal_of(const fs::path& folder) {
  return onestep::testing::refusal<IoError>([&] { load_checkpoint(folder); });
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

constexpr const char* kFiles[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

}  // namespace

TEST_CASE("checkpoint: every optimizer resumes bit for bit") {
  for (const std::string optimizer :
       {R"({"kind": "sgd", "lr": 0.1})", R"({"kind": "sgd", "lr": 0.1, "momentum": 0.9, "dampening": 0.5})",
        R"({"kind": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": true, "weight_decay": 0.1})", R"({"kind": "adam"})",
        R"({"kind": "adam", "amsgrad": true})", R"({"kind": "adamw", "decay": "matrices"})",
        R"({"kind": "adamw", "amsgrad": true})", R"({"kind": "rmsprop"})", R"({"kind": "adagrad"})"}) {
    CAPTURE(optimizer);
    check_resumes(config_with(kText + R"(, "optimizer": )" + optimizer));
  }
}

TEST_CASE("checkpoint: schedules and data and attention of every kind resume bit for bit") {
  for (const std::string schedule :
       {R"({"warmup_steps": 9})", R"({"kind": "linear", "warmup_steps": 3})", R"({"kind": "cosine", "decay_steps": 10})"}) {
    CAPTURE(schedule);
    check_resumes(config_with(kTask + R"(, "schedule": )" + schedule));
  }
  check_resumes(config_with(R"("data": {"kind": "tokens", "tokens": [0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 3], "vocab_size": 4})"));
  check_resumes(config_with(kText, R"(, "rng_dialect": "torch-mkl", "qkv_bias": true)"));
  check_resumes(config_with(kText, R"(, "attention": "multi_head_wrapper")"));
  Config config = small();
  config.train.grad_accumulation = 3;
  config.train.grad_clip = 0.5;
  config.train.dtype = DType::float64;
  check_resumes(config);
}

TEST_CASE("checkpoint: the best and what an interrupt cut short come back") {
  const TemporaryFolder run;
  Trainer trainer(small());
  take_steps(trainer, 2);
  const StepMetrics metrics{.step = 1, .loss = 0.1, .lr = 1e-3, .grad_norm = 1.0 / 3, .tokens_per_second = 5, .seconds = 0.25};
  save_checkpoint(run.path(), {trainer.state(), {1.5, BestEvaluation{1, 2.25}, metrics}}, 2);
  const RunState state = load_checkpoint(run.path() / "checkpoints/step-2").run;
  CHECK(state.seconds == 1.5);
  REQUIRE((state.best && state.unfinished));
  CHECK(state.best->step == 1);
  CHECK(state.best->val_loss == 2.25);
  CHECK(state.unfinished->step == 1);
  CHECK(state.unfinished->loss == 0.1);
  CHECK(state.unfinished->grad_norm == 1.0 / 3);
  CHECK(state.unfinished->seconds == 0.25);
}

TEST_CASE("checkpoint: the newest and the best are kept and leftovers go") {
  const TemporaryFolder run;
  const fs::path parent = run.path() / "checkpoints";
  Trainer trainer(small());
  fs::create_directories(parent / ".step-9.tmp");
  fs::create_directories(parent / ".step-1.old.tmp");
  fs::create_directories(parent / "step-07");  // not ours
  for (int i = 1; i <= 5; ++i) {
    trainer.step();
    save_checkpoint(run.path(), {trainer.state(), {0, BestEvaluation{2, 1.0}}}, 2);
  }
  CHECK(names(parent) == std::vector<std::string>{"step-07", "step-2", "step-4", "step-5"});
  CHECK(find_checkpoint(run.path(), "best").folder == parent / "step-2");
  CHECK(find_checkpoint(run.path(), "last").folder == parent / "step-5");
  CHECK(find_checkpoint(run.path(), "step-4").checkpoint.trainer.step == 4);
  const std::string none =
      (parent / "step-3").string() + ": there is no such checkpoint (there are step-2 and step-4 and step-5)";
  CHECK_THROWS_WITH_AS(find_checkpoint(run.path(), "step-3"), none.c_str(), IoError);
  CHECK_THROWS_WITH_AS(find_checkpoint(run.path(), "step-04"), "--checkpoint: must be last, best or step-N: got step-04",
                       ConfigError);
}

TEST_CASE("checkpoint: every truncation and every flipped bit of every file is refused with its name in bounded memory") {
  const TemporaryFolder run;
  Config config =
      parse_config(R"({"model": {"attention": "simplified", "d_model": 1, "context_length": 2}, "train": {"steps": 9},
      "data": {"kind": "tokens", "tokens": [0, 1, 0, 1], "vocab_size": 2}, "optimizer": {"kind": "sgd", "momentum": 0.5}})",
                   "test");
  Trainer trainer(config);
  trainer.step();
  save_checkpoint(run.path(), {trainer.state(), {}}, 1);
  const fs::path folder = run.path() / "checkpoints/step-1";
  REQUIRE(refusal_of(folder) == "");
  uint64_t largest = 0;
  for (const char* name : kFiles) largest = std::max(largest, uint64_t{fs::file_size(folder / name)});
  const onestep::testing::MemoryLimit limit(onestep::testing::memory_for(largest));
  int64_t accepted = 0, misplaced = 0;
  const auto try_it = [&](const fs::path& path) {
    const std::string message = refusal_of(folder);
    accepted += message.empty();
    misplaced += !message.starts_with(path.string() + ": ");
  };
  for (const char* name : kFiles) {
    const fs::path path = folder / name;
    const std::string bytes = read(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);  // in place: a file a bit takes minutes
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      const auto place = static_cast<std::streamoff>(bit / 8);
      file.seekp(place).put(static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8))).flush();
      try_it(path);
      file.seekp(place).put(bytes[bit / 8]).flush();
    }
    REQUIRE(refusal_of(folder) == "");
    fs::resize_file(path, bytes.size() + 1);
    try_it(path);
    for (size_t length = bytes.size(); length-- > 0;) {
      fs::resize_file(path, length);
      try_it(path);
    }
    fs::remove(path);
    CHECK(refusal_of(folder).starts_with(path.string() + ": "));
    write(path, bytes);
  }
  CHECK(accepted == 0);
  CHECK(misplaced == 0);
  CHECK(refusal_of(folder) == "");
}

TEST_CASE("checkpoint: the tests' limit of memory is one") {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
  const onestep::testing::MemoryLimit limit(onestep::testing::memory_for(0));
  const auto allocate = [](size_t mib) {
    const auto block = std::make_unique<char[]>(mib << 20);
    return block[mib];
  };
  CHECK(allocate(48) == 0);
  CHECK_THROWS_AS(allocate(80), std::bad_alloc);
#endif
}

TEST_CASE("checkpoint: the newest whole one is found behind damaged ones") {
  const TemporaryFolder run;
  const fs::path parent = run.path() / "checkpoints";
  CHECK_FALSE(newest_checkpoint(run.path()).has_value());
  Trainer trainer(small());
  for (int i = 1; i <= 4; ++i) {
    trainer.step();
    save_checkpoint(run.path(), {trainer.state(), {}}, 9);
  }
  fs::remove(parent / "step-4/model.safetensors");
  write(parent / "step-3/state.json", "{}");
  auto found = newest_checkpoint(run.path());
  REQUIRE(found.has_value());
  CHECK(found->folder == parent / "step-2");
  REQUIRE(found->damaged.size() == 2);
  CHECK(found->damaged[0].second.starts_with((parent / "step-4/model.safetensors").string() + ": "));
  CHECK(found->damaged[1].second.starts_with((parent / "step-3/state.json").string() + ": "));
  set_checkpoint_aside(parent / "step-3");
  CHECK(names(parent) == std::vector<std::string>{"step-1", "step-2", "step-3.damaged", "step-4"});
  CHECK_THROWS_AS(find_checkpoint(run.path(), "step-4"), IoError);
  fs::rename(parent / "step-1", parent / "step-5");
  CHECK(refusal_of(parent / "step-5") ==
        (parent / "step-5").string() + ": holds the checkpoint of step 1, says its state.json");
  fs::remove(parent / "step-2/state.json");
  CHECK_THROWS_AS(newest_checkpoint(run.path()), IoError);
}

TEST_CASE("checkpoint: a model that is not finite never replaces a good one") {
  const TemporaryFolder run;
  Trainer trainer(small());
  trainer.step();
  save_checkpoint(run.path(), {trainer.state(), {}}, 1);
  trainer.step();
  Tensor weight = trainer.model().state_dict()[0].second;
  weight.mutable_data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(save_checkpoint(run.path(), {trainer.state(), {}}, 1),
                       "train: diverged at step 1: tok_emb.weight is not finite after it (lower optimizer.lr, or set "
                       "train.grad_clip)",
                       DivergedError);
  CHECK(names(run.path() / "checkpoints") == std::vector<std::string>{"step-1"});
}

TEST_CASE("trainer: a state that does not fit is refused by name") {
  Trainer trainer(small());
  trainer.step();
  const TrainerState good = trainer.state();
  const auto refused = [&](auto change, const std::string& message) {
    TrainerState state = good;
    change(state);
    Trainer other(small());
    try {
      other.load_state(state);
      FAIL("loaded: ", message);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(message) != std::string::npos);
    }
  };
  refused([](TrainerState& s) { s.config["model.dropout"] = "0.5"; },
          "test: /model/dropout: is 0.2, the checkpoint was trained with 0.5 (put it back, or train a new run)");
  refused([](TrainerState& s) { s.data_hash = "1"; }, "the data is not what the run was started with: its hash is ");
  refused([](TrainerState& s) { ++s.sequences; }, "after 1 steps of 3 sequences it claims to have seen 4");
  refused([](TrainerState& s) { s.generator = "?"; }, "Generator::set_state: ");
  refused([](TrainerState& s) { s.model.pop_back(); }, "missing keys head.bias");
  refused([](TrainerState& s) { s.model[0].second = s.model[0].second.to(DType::float64); },
          "model: tok_emb.weight is float64, must be float32");
  refused([](TrainerState& s) { s.optimizer.pop_back(); }, "optimizer: the state head.bias.exp_avg_sq is missing");
  refused([](TrainerState& s) { s.optimizer.emplace_back("x.step", ones(1)); },
          "optimizer: the state x.step belongs to no parameter");
  refused([](TrainerState& s) { s.optimizer[1].second = ones(3); },
          "optimizer: the state tok_emb.weight.exp_avg is float32 [3], must be float32 [");
  refused([](TrainerState& s) { s.optimizer[0].second = ones({}); },
          "optimizer: the state tok_emb.weight.step is float32 [], must be int64 []");
  refused([](TrainerState& s) { s.optimizer[0].second = from_values(std::vector<int64_t>{-1}, {}); },
          "optimizer: the state tok_emb.weight.step is negative: -1");
}

TEST_CASE("trainer: an evaluation stops between two batches and leaves the model in training") {
  Trainer trainer(small());
  int asked = 0;
  CHECK_THROWS_AS(trainer.evaluate([&] { return ++asked == 3; }), InterruptedError);
  CHECK(asked == 3);
  CHECK(trainer.model().is_training());
}

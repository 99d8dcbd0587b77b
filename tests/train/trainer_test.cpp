// What a step is, beyond the goldens' one micro-batch: token weights over micro-batches.
#include "train/trainer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "autograd/autocast.h"

using namespace onestep;
using namespace onestep::train;

namespace {

/// Sequences in which every 3 is padding: the windows have from none to all of their targets left.
Trainer trainer_of(int64_t batch_size, int64_t grad_accumulation,
                   const std::string& optimizer = R"({"kind": "sgd", "lr": 0.1})") {
  return Trainer(parse_config(R"({"model": {"d_model": 8, "context_length": 4}, "train": {"dtype": "float64", "batch_size": )" +
                                  std::to_string(batch_size) + R"(, "grad_accumulation": )" +
                                  std::to_string(grad_accumulation) +
                                  R"(}, "data": {"kind": "tokens", "vocab_size": 7, "ignore_index": 3,
                                  "tokens": [1, 5, 2, 6, 3, 3, 3, 3, 3, 3, 3, 0, 4, 3, 1, 2, 6, 3, 3, 5]}, "optimizer": )" +
                                  optimizer + "}",
                              "run.json"));
}

}  // namespace

// The model's dropout layers point to the generator.
static_assert(!std::is_move_constructible_v<Trainer> && !std::is_move_assignable_v<Trainer>);

TEST_CASE("trainer: micro-batches of uneven token counts make the step of one batch") {
  Trainer whole = trainer_of(8, 1), parts = trainer_of(1, 8);
  for (int step = 0; step < 20; ++step) {
    CAPTURE(step);
    const StepMetrics one = whole.step(), sum = parts.step();
    CHECK(std::abs(one.loss - sum.loss) <= 1e-12);
    CHECK(std::abs(one.grad_norm - sum.grad_norm) <= 1e-12);
  }
  const nn::NamedTensors expected = whole.model().named_parameters(), actual = parts.model().named_parameters();
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto a = expected[i].second.to_vector<double>(), b = actual[i].second.to_vector<double>();
    for (size_t j = 0; j < a.size(); ++j) CHECK(std::abs(a[j] - b[j]) <= 1e-12);
  }
}

TEST_CASE("trainer: recomputed blocks give the bits of kept ones, with dropout, clipping and accumulation") {
  const auto trained = [](const char* recompute) {
    Trainer trainer(parse_config(R"({"model": {"kind": "gpt", "num_layers": 3, "d_model": 32, "num_heads": 4, "dropout": 0.2,
                                 "context_length": 15}, "train": {"batch_size": 4, "grad_accumulation": 2, "grad_clip": 0.5,
                                 "recompute": )" +
                                     std::string(recompute) + R"(}, "data": {"kind": "task", "task": "copy", "length": 8}})",
                                 "run.json"));
    for (int step = 0; step < 5; ++step) trainer.step();
    std::vector<std::vector<float>> all;
    for (const auto& [name, parameter] : trainer.model().named_parameters()) all.push_back(parameter.to_vector<float>());
    return all;
  };
  CHECK(trained("true") == trained("false"));
}

TEST_CASE("trainer: in bf16 parameters, gradients and optimizer stay float32, and a run resumes with its bits") {
  const auto make = [] {
    return std::make_unique<Trainer>(parse_config(R"({"model": {"kind": "gpt", "num_layers": 2, "d_model": 32, "num_heads": 4,
        "context_length": 15, "dropout": 0.1}, "train": {"batch_size": 4, "grad_accumulation": 2, "precision": "bf16"},
        "data": {"kind": "task", "task": "copy", "length": 8}})",
                                                  "run.json"));
  };
  const auto whole = make(), first = make(), second = make();
  for (int step = 0; step < 3; ++step) {
    first->step();
    whole->step();
  }
  const TrainerState state = first->state();
  for (const auto* tensors : {&state.model, &state.optimizer})
    for (const auto& [name, tensor] : *tensors) CHECK(tensor.dtype() != DType::bfloat16);
  for (const auto& [name, parameter] : first->model().named_parameters()) CHECK(parameter.grad().dtype() == DType::float32);
  second->load_state(state);
  for (int step = 0; step < 2; ++step) {
    whole->step();
    second->step();
  }
  const nn::NamedTensors want = whole->model().named_parameters(), got = second->model().named_parameters();
  for (size_t i = 0; i < want.size(); ++i) CHECK(want[i].second.to_vector<float>() == got[i].second.to_vector<float>());
  CHECK(whole->evaluate().loss == second->evaluate().loss);
}

TEST_CASE("trainer: in bf16_amx sums are in the order of AMX, in bf16 they are not, and the order of others is left") {
  const auto trained = [](const std::string& precision) {
    Trainer trainer(parse_config(R"({"model": {"kind": "gpt", "num_layers": 1, "d_model": 40, "num_heads": 4,
        "context_length": 15, "dropout": 0}, "train": {"batch_size": 4, "precision": ")" +
                                     precision + R"("}, "data": {"kind": "task", "task": "copy", "length": 8}})",
                                 "run.json"));
    const Bf16Order before = bf16_order();
    const double loss = trainer.step().loss;
    CHECK(bf16_order() == before);
    std::vector<float> gradients;
    for (const auto& [name, parameter] : trainer.model().named_parameters())
      for (const float g : parameter.grad().to_vector<float>()) gradients.push_back(g);
    return std::pair(loss, gradients);
  };
  const auto amx = trained("bf16_amx"), pairs = trained("bf16");
  CHECK(amx.first == doctest::Approx(pairs.first).epsilon(1e-3));
  CHECK(amx.second != pairs.second);
  const Bf16OrderGuard order(Bf16Order::amx);
  CHECK(trained("bf16").second == pairs.second);
}

TEST_CASE("trainer: a step in which no target counts is drawn again") {
  Trainer trainer = trainer_of(1, 1);
  int64_t drawn_anew = 0;
  for (int step = 0; step < 40; ++step) {
    Generator next = trainer.generator();
    drawn_anew += trainer.data().train_batch(1, next).counted() == 0;
    CHECK(trainer.step().loss > 0);
  }
  CHECK(drawn_anew > 0);
  CHECK(trainer.steps_done() == 40);
}

// The message of a step that diverges.
#include <doctest/doctest.h>

#include <limits>

#include "autograd/ops_math.h"
#include "tests/support.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;

namespace {

/// The message of the first step of a tiny GPT in which all elements of `parameter` are `value`.
std::string divergence(const std::string& parameter, double value, const std::string& more = "") {
  const Config config = parse_config(R"({"model": {"kind": "gpt", "num_layers": 2, "d_model": 8, "num_heads": 2,
                                         "context_length": 16, "dropout": 0.1},
                                         "data": {"kind": "task", "task": "copy"}, "train": {"grad_accumulation": 2)" +
                                         more + "}}",
                                     "run.json");
  Trainer trainer(config);
  for (auto [name, tensor] : trainer.model().named_parameters()) {
    const NoGradGuard no_grad;
    if (name == parameter) fill_(tensor, value);
  }
  return onestep::testing::refusal<DivergedError>([&] { trainer.step(); });
}

}  // namespace

TEST_CASE("anomaly: a diverged step names the op and the module at which numbers stop being finite") {
  CHECK(divergence("", 0) == "");
  CHECK(onestep::testing::contains(divergence("transformer.h.1.mlp.c_fc.weight", 3e38),
                                   "; linear in transformer.h.1.mlp.c_fc: "));
  CHECK(divergence("transformer.wte.weight", std::numeric_limits<double>::quiet_NaN()) ==
        "train: diverged at step 0: loss nan, gradient norm nan; the parameter transformer.wte.weight is not finite after the "
        "step before (lower optimizer.lr, or set train.grad_clip)");
}

TEST_CASE("anomaly: without train.anomaly a diverged step names no op") {
  const std::string sentence = divergence("transformer.h.1.mlp.c_fc.weight", 3e38, R"(, "anomaly": false)");
  CHECK(sentence.starts_with("train: diverged "));
  CHECK_FALSE(onestep::testing::contains(sentence, "transformer"));
}

// What a diverged step says.
#include <doctest/doctest.h>

#include <limits>

#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;

namespace {

/// The message of the first step of a tiny GPT one of whose parameters is all `value`.
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
  try {
    trainer.step();
  } catch (const DivergedError& error) {
    return error.what();
  }
  return "";
}

const std::string kHint = " (lower optimizer.lr, or set train.grad_clip)";

}  // namespace

TEST_CASE("anomaly: a diverged step names the op and the module at which numbers stop being finite") {
  CHECK(divergence("", 0) == "");
  CHECK(divergence("transformer.h.1.mlp.c_fc.weight", 3e38) ==
        "train: diverged at step 0: loss nan, gradient norm nan; linear in transformer.h.1.mlp.c_fc: its result of shape "
        "[12, 15, 32] is not finite" +
            kHint);
  CHECK(divergence("transformer.wte.weight", std::numeric_limits<double>::quiet_NaN()) ==
        "train: diverged at step 0: loss nan, gradient norm nan; the parameter transformer.wte.weight is not finite after the "
        "step before" +
            kHint);
}

TEST_CASE("anomaly: without train.anomaly a diverged step names no op") {
  CHECK(divergence("transformer.h.1.mlp.c_fc.weight", 3e38, R"(, "anomaly": false)") ==
        "train: diverged at step 0: loss nan, gradient norm nan" + kHint);
}

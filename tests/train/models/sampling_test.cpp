// How a token is chosen: the probabilities are those of transformers' logits processors (goldens/sampling.py).
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "tests/goldens.h"
#include "tests/support.h"
#include "train/models/generate.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::golden;
using onestep::testing::numbers;
using onestep::testing::refusal;

TEST_CASE("sampling: probabilities are those of transformers") {
  const nlohmann::json& cases = golden("sampling.json")["cases"];
  REQUIRE(cases.size() == 27);
  for (const nlohmann::json& each : cases) {
    CAPTURE(each["options"].dump());
    SamplingOptions options;
    options.temperature = each["options"].value("temperature", 1.0);
    options.top_k = each["options"].value("top_k", 0);
    options.top_p = each["options"].value("top_p", 1.0);
    options.min_p = each["options"].value("min_p", 0.0);
    options.repetition_penalty = each["options"].value("repetition_penalty", 1.0);
    const Tensor logits = from_values(numbers<float>(each["logits"]), {std::ssize(each["logits"])});
    const Tensor penalized = penalize_repetition(logits, numbers<int64_t>(each["ids"]), options.repetition_penalty);
    const std::vector<float> got = sampling_probabilities(penalized, options).to_vector<float>(),
                             want = numbers<float>(each["probabilities"]);
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      CHECK((got[i] == 0) == (want[i] == 0));
      CHECK(std::abs(got[i] - want[i]) <= 1e-6);
    }
  }
}

TEST_CASE("sampling: a penalty counts a token once and leaves the others alone") {
  const Tensor logits = tensor({2.0, -1.0, 0.0, 4.0});
  const std::vector<int64_t> ids = {1, 0, 0, 1, 2};
  CHECK(equal(penalize_repetition(logits, ids, 2), tensor({1.0, -2.0, 0.0, 4.0})));
  CHECK(equal(penalize_repetition(logits, {}, 2), logits));
  CHECK(equal(penalize_repetition(logits, ids, 1), logits));
}

TEST_CASE("sampling: options outside their range are refused") {
  const auto error = [](const SamplingOptions& options) { return refusal<ConfigError>([&] { check_sampling(options); }); };
  CHECK(error({}) == "");
  CHECK(error({.min_p = -0.1}) == "generate: min_p must be from 0 to 1: got -0.1");
  CHECK(error({.min_p = 1.5}).starts_with("generate: min_p "));
  CHECK(error({.min_p = std::nan("")}).starts_with("generate: min_p "));
  CHECK(error({.repetition_penalty = 0}) == "generate: repetition_penalty must be above 0: got 0");
  CHECK(error({.repetition_penalty = INFINITY}).starts_with("generate: repetition_penalty "));
}

// A section within a section.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support.h"
#include "train/config/config.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;

TEST_CASE("config: adapters are a section within the model's and absent unless it has a rank") {
  const auto gpt = [](std::vector<std::string> sets) {
    sets.insert(sets.begin(), "model.kind=gpt");
    return parse_config(R"({"data": {"kind": "task", "task": "copy"}})", "run.json", sets);
  };
  CHECK(resolved_json(gpt({})).find("lora") == std::string::npos);
  const Config config = gpt({"model.lora.rank=4"});
  CHECK(config.model.lora == LoraConfig{.rank = 4, .alpha = 4.0, .dropout = 0.0, .targets = {"c_attn"}});
  const std::string text = resolved_json(config);
  const std::string lora = R"(,
    "lora": {
      "rank": 4,
      "alpha": 4.0,
      "dropout": 0.0,
      "targets": ["c_attn"]
    }
  },
  "data": {)";
  CHECK(text.find(lora) != std::string::npos);
  CHECK(parse_config(text, "run.json") == config);
  CHECK(parse_config(text, "run.json", {"model.lora=null"}) == gpt({}));
  CHECK(gpt({R"(model.lora={"rank": 4})"}) == config);
  CHECK(gpt({"model.lora.rank=4", "model.rope=true"}).model.lora.targets == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(fixed_values(config).at("model.lora.alpha") == "4.0");
  CHECK_FALSE(fixed_values(gpt({})).contains("model.lora.alpha"));
  const auto refused = [&](const std::vector<std::string>& sets) { return refusal<ConfigError>([&] { gpt(sets); }); };
  CHECK(refused({"model.lora.alpha=4"}) == "--set model.lora.alpha=4: /model/lora/alpha: needs model.lora.rank");
  const std::string unknown = refused({"model.lora.rnk=4"});
  CHECK(unknown.starts_with("--set model.lora.rnk=4: /model/lora/rnk: "));
  CHECK(unknown.ends_with("model.lora.rank?)"));
  CHECK(refused({"model.lora=4"}).starts_with("--set model.lora=4: /model/lora: "));
  CHECK(refused({"model.lora_rank=4"}).starts_with("--set model.lora_rank=4: /model/lora_rank: "));
  CHECK(refusal<ConfigError>([&] { check_resumable(gpt({}), config); }).find("/model/lora/rank: ") != std::string::npos);
}

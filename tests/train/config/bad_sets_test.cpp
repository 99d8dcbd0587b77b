// Arguments of --set that must be refused, and where each is wrong.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/train/config/config_refusal.h"

using namespace onestep::testing;

TEST_CASE("bad --set arguments") {
  struct BadSets {
    std::vector<std::string> sets;
    std::string message;
  };
  const std::vector<BadSets> cases = {
      {{"model.d_model=-4"}, "--set model.d_model=-4: /model/d_model: "},
      {{"model.d_modell=4"}, "--set model.d_modell=4: /model/d_modell: "},
      {{"steps=3"}, "--set steps=3: /steps: "},
      {{"model.num_heads=3"}, "--set model.num_heads=3: /model/num_heads: "},
      {{"model.attention=causal", "model.num_heads=2"}, "--set model.num_heads=2: /model/num_heads: "},
      {{"seed"}, "--set seed: has no = (write --set section.key=value)"},
      {{"=3"}, "--set =3: part of the key is empty (write --set section.key=value)"},
      {{"model.=3"}, "--set model.=3: "},
      {{".seed=3"}, "--set .seed=3: "},
      {{"a..b=3"}, "--set a..b=3: "},
      {{"model=3"}, "--set model=3: /model: "},
      {{"model.d_model.x=3"}, "--set model.d_model.x=3: /model/d_model: "},
      {{"model.attention.x=3"}, "--set model.attention.x=3: /model/attention: "},
      {{"optimizer.lr=nan"}, "--set optimizer.lr=nan: /optimizer/lr: "},
      {{"optimizer.lr=1e999"}, "--set optimizer.lr=1e999: /optimizer/lr: "},
      {{"optimizer.lr="}, "--set optimizer.lr=: /optimizer/lr: "},
      {{"optimizer.betas=[0.9,"}, "--set optimizer.betas=[0.9,: /optimizer/betas: "},
      {{"optimizer.betas=[0.9,2]"}, "--set optimizer.betas=[0.9,2]: /optimizer/betas/1: "},
      {{R"(train={"steps": -1})"}, R"(--set train={"steps": -1}: /train/steps: )"},
      {{"data=null"}, "run.json: /data/kind: "},
      {{"data.task=copi"}, "--set data.task=copi: /data/task: "},
      {{"x=1"}, "--set x=1: /x: "},
      {{R"(model.d_model={"a": 1})"}, R"(--set model.d_model={"a": 1}: /model/d_model: )"},
      {{"train.steps=true"}, "--set train.steps=true: /train/steps: "},
  };
  for (const BadSets& bad : cases) {
    CAPTURE(bad.sets.back());
    expect_refusal(config_refusal("{" + kCopyTask + "}", bad.sets), bad.message);
  }
  CHECK(config_refusal(R"({"data": {"kind": "text", "text": "a"}})", {"data.path=b"}) ==
        "--set data.path=b: /data: needs exactly one of path, paths and text: got path and text (take one out: --set "
        "data.text=null)");
  CHECK(config_refusal(R"({"data": {"kind": "task", "task": "copy"}, "model": {"attention": "causal"}})",
                       {"model.num_heads=2"}) ==
        "--set model.num_heads=2: /model/num_heads: does not apply to model.attention = causal and model.kind = attention "
        "(only to model.attention = "
        "multi_head_wrapper, multi_head, einsum or fused_qkv; or model.kind = gpt)");
  expect_refusal(config_refusal(R"({"data": {"kind": "task", "task": "copy"}, "optimizer": {"betas": [0.9, 0.99]}})",
                                {R"(optimizer={"kind": "sgd", "eps": 1})"}),
                 R"(--set optimizer={"kind": "sgd", "eps": 1}: /optimizer/eps: )");
  expect_refusal(config_refusal(R"({"data": {"kind": "task", "task": "copy"}, "model": {"d_model": 7}})", {"seed=1"}),
                 "run.json: /model/num_heads: ");
  CHECK(config_refusal(R"({"data": {"kind": "task", "task": "copy"}, "model": 3})", {"model.d_model=8"}) ==
        "--set model.d_model=8: /model is not an object");
}

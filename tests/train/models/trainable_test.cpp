// Parameters that are not trained: against a training of all of them, over ranks, and what they cost.
#include "train/models/trainable.h"

#include <doctest/doctest.h>

#include <map>

#include "autograd/node.h"
#include "autograd/ops_math.h"
#include "tests/support.h"
#include "tests/train/distributed/thread_ranks.h"
#include "train/log/histogram_file.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;
using onestep::testing::run_ranks;
using onestep::testing::ThreadCommunicator;

namespace {

Config config_of(const std::string& freeze, const std::string& train = "", const std::string& more = "",
                 const std::string& model = R"("kind": "gpt", "num_layers": 3)") {
  return parse_config(R"({"data": {"kind": "task", "task": "copy", "length": 8}, "model": {"context_length": 15, "d_model": 32,
                         "num_heads": 4, "dropout": 0.1, )" +
                          model + R"(}, "train": {"batch_size": 2, "grad_accumulation": 3)" +
                          (freeze.empty() ? "" : R"(, "freeze": )" + freeze) + train + "}" + more + "}",
                      "run.json");
}

const char* const kLora =
    R"("kind": "gpt", "num_layers": 2, "lora": {"rank": 4, "dropout": 0.2, "targets": ["c_attn", "h.1.*"]})";
const char* const kLoraLlama = R"("kind": "gpt", "num_layers": 2, "rope": true, "num_kv_heads": 2, "lora": {"rank": 4})";
const char* const kBottom = R"(["*.w?e.*", "transformer.h.0.*", "transformer.h.1.ln_*"])";

std::map<std::string, std::vector<float>> values_of(nn::Module& model) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, parameter] : model.named_parameters()) all[name] = parameter.to_vector<float>();
  return all;
}

}  // namespace

TEST_CASE("freeze: the others have the gradient that they have when all are trained and the frozen ones stay") {
  Trainer all(config_of("")), some(config_of(kBottom));
  const std::set<std::string> frozen = frozen_parameters(some.config());
  CHECK(frozen.size() == 2 + 12 + 4);
  const Tensor loss = all.next_loss(), same = some.next_loss();
  CHECK(loss.item() == same.item());
  loss.backward();
  same.backward();
  const nn::NamedTensors want = all.model().named_parameters(), got = some.model().named_parameters();
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string& name = got[i].first;
    const Tensor& parameter = got[i].second;
    CAPTURE(name);
    CHECK(parameter.requires_grad() != frozen.contains(name));
    CHECK(parameter.grad().defined() != frozen.contains(name));
    if (parameter.grad().defined()) CHECK(parameter.grad().to_vector<float>() == want[i].second.grad().to_vector<float>());
  }
  CHECK(all.describe_parameters() == "39,168");
  CHECK(some.describe_parameters() == "25,344 of 39,168");
  Trainer trainer(config_of(kBottom, R"(, "grad_clip": 0.01)", R"(, "optimizer": {"weight_decay": 0.5, "decay": "all"})"));
  const auto before = values_of(trainer.model());
  for (int step = 0; step < 3; ++step) trainer.step();
  for (const auto& entry : values_of(trainer.model())) {
    const std::string& name = entry.first;
    CAPTURE(name);
    CHECK((entry.second == before.at(name)) == frozen.contains(name));
  }
  for (const auto& [name, _] : trainer.state().optimizer) CHECK_FALSE(frozen.contains(name.substr(0, name.rfind('.'))));
}

TEST_CASE("freeze: nothing is recorded of layers below the first that is trained") {
  const auto nodes = [](const std::string& freeze) {
    Trainer trainer(config_of(freeze));
    const int64_t before = Node::alive();
    const Tensor loss = trainer.next_loss();
    return Node::alive() - before;
  };
  const int64_t all = nodes(""), head = nodes(R"(["*.w?e.*", "*.h.*"])"), top = nodes(R"(["*.w?e.*", "*.h.0.*", "*.h.1.*"])");
  CHECK(head < 8);
  CHECK(3 * (top - head) < all);
  CHECK(top > 2 * head);
}

TEST_CASE("freeze: ranks and recomputed blocks give the bits of one process that keeps all") {
  const std::string more = R"(, "distributed": {"bucket_mb": 1})";
  const std::pair<const char*, const char*> models[] = {
      {kBottom, R"("kind": "gpt", "num_layers": 3)"}, {"", kLora}, {"", kLoraLlama}};
  for (const auto& [freeze, model] : models) {
    Trainer alone(config_of(freeze, R"(, "grad_clip": 0.5)", more, model));
    std::vector<double> norms;
    for (int step = 0; step < 3; ++step) norms.push_back(alone.step().grad_norm);
    const auto want = values_of(alone.model());
    for (const char* const train : {R"(, "grad_clip": 0.5)", R"(, "grad_clip": 0.5, "recompute": true)"}) {
      const Config config = config_of(freeze, train, more, model);
      const std::vector<std::string> failures = run_ranks(3, [&](ThreadCommunicator& ranks) {
        Trainer trainer(config, nullptr, true, {std::shared_ptr<void>(), &ranks});
        for (const double norm : norms) ONESTEP_CHECK(Error, trainer.step().grad_norm == norm, "another norm");
        ONESTEP_CHECK(Error, values_of(trainer.model()) == want, "other parameters");
      });
      CHECK(failures == std::vector<std::string>(3));
    }
  }
}

TEST_CASE("freeze: a run resumes with its bits and in bf16 too") {
  for (const char* const train : {"", R"(, "precision": "bf16")", R"(, "precision": "bf16", "recompute": true)"}) {
    for (const Config& config :
         {config_of(kBottom, train), config_of("", train, "", kLora), config_of("", train, "", kLoraLlama)}) {
      Trainer whole(config), first(config), second(config);
      for (int step = 0; step < 2; ++step) {
        whole.step();
        first.step();
      }
      second.load_state(first.state());
      whole.step();
      second.step();
      CHECK(values_of(whole.model()) == values_of(second.model()));
    }
  }
}

TEST_CASE("freeze: every step that diverges says where although a part is frozen") {
  Trainer trainer(config_of(kBottom, "", R"(, "optimizer": {"kind": "sgd", "lr": 1e30})"));
  const std::string message = refusal<DivergedError>([&] {
    for (int step = 0; step < 5; ++step) trainer.step();
  });
  CHECK(message.find("transformer.") != std::string::npos);
}

TEST_CASE("freeze: patterns that name nothing or all are refused") {
  const auto refused = [](const std::string& freeze, const std::string& model = R"("kind": "gpt", "num_layers": 3)") {
    return refusal<ConfigError>([&] { Trainer trainer(config_of(freeze, "", "", model)); });
  };
  CHECK(refused(R"(["*.wpe.*", "transformer.wt.weight"])") ==
        "run.json: /train/freeze/1: no parameter has that name: transformer.wt.weight (did you mean transformer.wte.weight?)");
  CHECK(refused(R"(["transformer.h.3.*"])").starts_with("run.json: /train/freeze/0: "));
  CHECK(refused(R"(["lm_head*"])").starts_with("run.json: /train/freeze/0: "));  // tied: the weight is wte's
  CHECK(refused(R"(["*.weight", "*.bias"])").starts_with("run.json: /train/freeze: "));
  const std::string whole_layer = refused(R"(["tok_emb"])", R"("attention": "multi_head")");
  CHECK(whole_layer.starts_with("run.json: /train/freeze/0: "));
  CHECK(whole_layer.ends_with("tok_emb.weight?)"));
}

TEST_CASE("freeze: histograms have the gradients of what is trained alone") {
  Trainer trainer(config_of(kBottom));
  trainer.step();
  const std::set<std::string> frozen = frozen_parameters(trainer.config());
  const nn::NamedTensors parameters = trainer.model().named_parameters();
  const std::vector<ParameterHistograms> all = trainer.histograms(/*most=*/1 << 20, /*bins=*/4);
  REQUIRE(all.size() == parameters.size());
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    CHECK(all[i].name == parameters[i].first);
    CHECK(all[i].gradients.has_value() != frozen.contains(all[i].name));
    if (all[i].gradients) CHECK(all[i].gradients->low == min(parameters[i].second.grad()).item());
  }
}

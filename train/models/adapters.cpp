#include "train/models/adapters.h"

#include <algorithm>
#include <map>
#include <set>

#include "autograd/operators.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "base/error.h"
#include "base/format.h"
#include "base/suggest.h"
#include "nn/lora.h"

namespace onestep::train {
namespace {

/// What of a model may have an adapter, and by which names.
struct Candidate {
  Adapter adapter;
  std::vector<std::string> names;
};

std::vector<Candidate> candidates(const ModelConfig& model) {
  const ModelConfig m = written_out(model);
  const bool llama = m.kind == ModelKind::gpt && m.rope;
  std::vector<Candidate> list;
  for (const DecoderParameter& parameter : base_parameters(model, model.vocab_size)) {
    if (!parameter.linear) continue;
    const Adapter whole{parameter.module, parameter.block, "", 0, parameter.shape[0], parameter.shape[1]};
    const std::string layer = whole.layer(), parent = layer.substr(0, layer.rfind('.') + 1);
    Candidate& candidate = list.emplace_back(Candidate{whole, {layer}});
    if (!llama) continue;
    if (layer.ends_with("attn.c_proj")) candidate.names.push_back(parent + "o_proj");
    if (!layer.ends_with("attn.c_attn")) continue;
    Adapter part = whole;
    for (const auto& [name, rows] : {std::pair("q_proj", query_width(m)), {"k_proj", key_width(m)}, {"v_proj", key_width(m)}}) {
      part.part = name;
      part.rows = rows;
      list.push_back({part, {parent + name}});
      part.first_row += rows;
    }
  }
  return list;
}

std::string hint(const std::string& target, const std::vector<Candidate>& all) {
  std::set<std::string> known;
  for (const Candidate& candidate : all)
    for (const std::string& name : candidate.names) known.insert(name.substr(name.rfind('.') + 1));
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string meant = nearest(target, names);
  return did_you_mean(meant, " (there are " + join(names, ", ") + ")");
}

}  // namespace

std::vector<Adapter> adapters(const ModelConfig& model, const ConfigOrigin& origin) {
  const std::vector<std::string>& targets = model.lora.targets;
  if (model.lora.rank == 0) return {};
  const std::vector<Candidate> all = candidates(model);
  std::vector<Adapter> chosen;
  std::vector<bool> found(targets.size(), false);
  for (const Candidate& candidate : all) {
    bool wanted = false;
    for (size_t i = 0; i < targets.size(); ++i)
      for (const std::string& name : candidate.names)
        if (nn::is_lora_target(targets[i], name)) wanted = found[i] = true;
    const Adapter& adapter = candidate.adapter;
    const bool whole_has_one = !chosen.empty() && chosen.back().part.empty() && chosen.back().layer() == adapter.layer();
    if (wanted && !whole_has_one) chosen.push_back(adapter);
  }
  for (size_t i = 0; i < targets.size(); ++i)
    ONESTEP_CHECK(ConfigError, found[i], origin.at("/model/lora/targets/" + std::to_string(i)),
                  ": no linear layer has that name: ", targets[i], hint(targets[i], all));
  return chosen;
}

std::vector<DecoderParameter> model_parameters(const ModelConfig& model, int64_t vocab_size, int64_t num_classes) {
  std::vector<DecoderParameter> list = base_parameters(model, vocab_size, num_classes);
  ModelConfig sized = model;
  sized.vocab_size = vocab_size;
  for (const Adapter& adapter : adapters(sized)) {
    const std::string module = adapter.module + (adapter.part.empty() ? "" : '.' + adapter.part);
    list.push_back({module + ".lora_A", adapter.block, "weight", {model.lora.rank, adapter.in}});
    list.push_back({module + ".lora_B", adapter.block, "weight", {adapter.rows, model.lora.rank}});
  }
  return list;
}

bool is_new_parameter(const std::string& name) {
  return name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight") || name == std::string(kClassHead) + ".weight";
}

void add_adapters(nn::Module& net, const ModelConfig& model, Generator& generator) {
  const std::vector<Adapter> all = adapters(model);
  if (all.empty()) return;
  std::map<std::string, nn::Linear*> layers;
  for (nn::Module* const module : net.modules())
    if (auto* const linear = dynamic_cast<nn::Linear*>(module)) layers[net.path_to(*linear)] = linear;
  for (auto& [name, parameter] : net.named_parameters())
    if (!is_new_parameter(name)) Tensor(parameter).requires_grad_(false);
  const nn::LoraOptions options{model.lora.rank, model.lora.alpha, model.lora.dropout};
  for (const Adapter& adapter : all)
    nn::add_lora(*layers.at(adapter.layer()), options, generator,
                 {adapter.part, adapter.first_row, adapter.part.empty() ? -1 : adapter.rows});
}

nn::NamedTensors merged_state(const nn::NamedTensors& state, const ModelConfig& model) {
  const NoGradGuard no_grad;
  std::map<std::string, Tensor> all(state.begin(), state.end());
  const auto take = [&](const std::string& name) {
    const auto found = all.find(name);
    ONESTEP_CHECK(ConfigError, found != all.end(), "model.lora: the parameters lack ", name);
    const Tensor tensor = found->second;
    all.erase(found);
    return tensor;
  };
  const double scaling = model.lora.alpha / static_cast<double>(model.lora.rank);
  std::set<std::string> changed;
  for (const Adapter& adapter : adapters(model)) {
    const Tensor a = take(adapter.name() + ".lora_A.weight"), b = take(adapter.name() + ".lora_B.weight");
    Tensor& weight = all.at(adapter.layer() + ".weight");
    if (changed.insert(adapter.layer()).second) weight = weight.clone();
    narrow(weight, 0, adapter.first_row, b.size(0)).add_(nn::lora_weight(a, b, scaling));
  }
  nn::NamedTensors merged;
  for (const auto& [name, _] : state)
    if (const auto found = all.find(name); found != all.end()) merged.emplace_back(*found);
  return merged;
}

}  // namespace onestep::train

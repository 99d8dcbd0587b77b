#include "train/models/adapter_files.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/anomaly.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json_object.h"
#include "base/json_reader.h"
#include "base/new_files.h"
#include "base/read_file.h"
#include "nn/lora.h"
#include "train/checkpoint/safetensors.h"
#include "train/models/adapters.h"
#include "train/models/pretrained_config.h"
#include "train/models/tensor_names.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kAdapterModel = "adapter_model.safetensors";

/// What the file calls a matrix, A or B, of a layer.
std::string file_key(const std::string& layer, const char* matrix) {
  return std::string("base_model.model.").append(layer).append(".lora_").append(matrix).append(".weight");
}

/// An adapter, and the layers of the file that it is for, with the rows of each.
struct FileAdapter {
  Adapter adapter;
  std::vector<std::string> layers;
  std::vector<int64_t> rows;
};

std::vector<FileAdapter> file_adapters(const ModelConfig& model) {
  const ModelConfig m = written_out(model);
  std::vector<FileAdapter> list;
  for (const Adapter& adapter : adapters(model)) {
    std::vector<std::string> layers = pretrained_modules(model, adapter.module, adapter.block);
    std::vector<int64_t> rows{adapter.rows};
    if (!adapter.part.empty())
      std::erase_if(layers, [&](const std::string& layer) { return !layer.ends_with('.' + adapter.part); });
    else if (layers.size() > 1)
      rows = {query_width(m), key_width(m), key_width(m)};
    list.push_back({adapter, layers, rows});
  }
  return list;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// The shortest targets that name these of all layers: the last parts of their names, or the whole names.
std::vector<std::string> targets_for(const std::set<std::string>& wanted, const std::vector<std::string>& all) {
  std::set<std::string> last;
  for (const std::string& name : wanted) last.insert(last_part(name));
  const auto named = std::count_if(all.begin(), all.end(), [&](const auto& name) { return last.contains(last_part(name)); });
  const std::set<std::string>& targets = named == static_cast<std::ptrdiff_t>(wanted.size()) ? last : wanted;
  return {targets.begin(), targets.end()};
}

/// The layers of the file that may have an adapter.
std::vector<std::string> file_layers(const ModelConfig& model) {
  std::vector<std::string> layers;
  for (const DecoderParameter& parameter : base_parameters(model, 1)) {
    if (!parameter.linear) continue;
    for (std::string& layer : pretrained_modules(model, parameter.module, parameter.block)) layers.push_back(std::move(layer));
  }
  return layers;
}

std::string config_json(const ModelConfig& model, const std::vector<FileAdapter>& all) {
  std::set<std::string> wanted;
  for (const FileAdapter& adapter : all) wanted.insert(adapter.layers.begin(), adapter.layers.end());
  const LoraConfig& lora = model.lora;
  const bool whole = lora.alpha == std::floor(lora.alpha);
  return ordered_json{{"peft_type", "LORA"},
                      {"task_type", "CAUSAL_LM"},
                      {"base_model_name_or_path", nullptr},
                      {"inference_mode", true},
                      {"r", lora.rank},
                      {"lora_alpha", whole ? ordered_json(static_cast<int64_t>(lora.alpha)) : ordered_json(lora.alpha)},
                      {"lora_dropout", lora.dropout},
                      {"target_modules", targets_for(wanted, file_layers(model))},
                      {"fan_in_fan_out", !model.rope},  // GPT-2's layers are Conv1D
                      {"bias", "none"},
                      {"use_rslora", false},
                      {"use_dora", false},
                      {"init_lora_weights", true}}
             .dump(2) +
         "\n";
}

/// An export replaces an earlier one, not the adapters of another kind or a file that only has the name.
void check_replaces_adapters(const fs::path& folder) {
  const fs::path model = folder / "model.safetensors";
  ONESTEP_CHECK(IoError, !fs::exists(model), model.string(),
                ": the adapters would be added to this model (name another folder)");
  const fs::path config = folder / kAdapterConfig;
  if (!fs::exists(config) && !fs::exists(folder / kAdapterModel)) return;
  bool ours = false;
  try {
    const json root = parse_json<IoError>(read_file(config.string(), kMaxJsonBytes), config.string());
    ours = root.is_object() && root.contains("peft_type") && root["peft_type"] == "LORA";
  } catch (const IoError&) {  // it is not
  }
  ONESTEP_CHECK(IoError, ours, (fs::exists(config) ? config : folder / kAdapterModel).string(),
                ": is not that of LoRA adapters, and an export would replace it (name another folder)");
}

/// The numbers of adapter_config.json; refuses what adapters of other kinds have.
LoraConfig read_config(const std::string& path) {
  const json root = parse_json<IoError>(read_file(path, kMaxJsonBytes), path);
  const JsonObject config(root, path + ": ");
  if (config.text("peft_type") != "LORA") config.refuse("peft_type", "LORA");
  const std::vector<std::pair<const char*, json>> usual{{"bias", "none"},
                                                        {"use_rslora", false},
                                                        {"use_dora", false},
                                                        {"lora_bias", false},
                                                        {"rank_pattern", json::object()},
                                                        {"alpha_pattern", json::object()},
                                                        {"modules_to_save", nullptr},
                                                        {"layer_replication", nullptr}};
  for (const auto& [key, value] : usual)
    if (config.has(key) && config[key] != value) config.refuse(key, value.dump());
  const auto number = [&](const char* key, double otherwise, double low, double high) {
    const json* const value = config.find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || value->get<double>() < low || value->get<double>() > high)
      config.refuse(key, "a number from " + json(low).dump() + " to " + json(high).dump());
    return value->get<double>();
  };
  const double rank = number("r", 8, 1, 65536);
  if (rank != std::floor(rank)) config.refuse("r", "a whole number");
  return {static_cast<int64_t>(rank), number("lora_alpha", 8, 1e-6, 1e6), number("lora_dropout", 0, 0, 0.999999), {}};
}

/// The tensors of a file, each of which is asked for once.
class Tensors {
 public:
  explicit Tensors(const fs::path& path) : file_(path.string()) {
    for (const TensorEntry& entry : file_.entries()) left_[entry.name] = &entry;
  }

  bool has(const std::string& name) const { return left_.contains(name); }
  Tensor take(const std::string& name, const Shape& shape) {
    const auto found = left_.find(name);
    ONESTEP_CHECK(IoError, found != left_.end(), file_.path(), ": tensor \"", name, "\": is missing");
    const TensorEntry& entry = *found->second;
    ONESTEP_CHECK(IoError, entry.shape == shape && is_floating(entry.dtype), file_.path(), ": tensor \"", name,
                  "\": must be floats ", shape, " as ", kAdapterConfig, " and the base say: is ", entry.dtype, ' ',
                  entry.shape);
    left_.erase(found);
    const Tensor tensor = file_.read(entry).to(DType::float32);
    ONESTEP_CHECK(IoError, all_finite(tensor), file_.path(), ": tensor \"", name, "\": holds a number that is not finite");
    return tensor;
  }
  void check_empty() const {
    ONESTEP_CHECK(IoError, left_.empty(), file_.path(), ": tensor \"", left_.begin()->first,
                  "\": belongs to no layer of the base");
  }
  const std::string& path() const { return file_.path(); }

 private:
  SafetensorsReader file_;
  std::map<std::string, const TensorEntry*> left_;
};

}  // namespace

void write_adapters(const fs::path& folder, const Pretrained& model, DType dtype, bool quiet) {
  ONESTEP_CHECK(ConfigError, model.model.lora.rank > 0, "export: the model has no adapters (model.lora)");
  const NoGradGuard no_grad;
  pretrained_config_json(model.model, dtype);  // refuses what is none of the families
  const std::vector<FileAdapter> all = file_adapters(model.model);
  const std::map<std::string, Tensor> state(model.state.begin(), model.state.end());
  std::map<std::string, Tensor> tensors;
  for (const auto& [adapter, layers, rows] : all) {
    const Tensor &a = state.at(adapter.name() + ".lora_A.weight"), &b = state.at(adapter.name() + ".lora_B.weight");
    int64_t first = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      tensors[file_key(layers[i], "A")] = a;
      tensors[file_key(layers[i], "B")] = narrow(b, 0, first, rows[i]);
      first += rows[i];
    }
  }
  for (const auto& [name, tensor] : tensors) check_range(name, tensor, dtype);
  check_replaces_adapters(folder);
  NewFiles files(folder);
  files.add(kAdapterConfig, config_json(model.model, all));
  write_safetensors(files.add(kAdapterModel).string(), {tensors.begin(), tensors.end()}, {{"format", "pt"}}, quiet, dtype);
  files.finish();
}

PretrainedAdapters read_adapters(const fs::path& folder, const ModelConfig& base) {
  ONESTEP_CHECK(IoError, fs::is_directory(folder), folder.string(),
                ": is not a folder (needs one with adapter_config.json and adapter_model.safetensors)");
  PretrainedAdapters read{read_config((folder / kAdapterConfig).string()), {}};
  ModelConfig model = base;  // with an adapter wherever there may be one
  model.lora = read.lora;
  model.lora.targets = {"*"};
  if (model.rope) {  // queries, keys and values apart
    model.lora.targets = {"*_proj"};
    if (!model.tie_weights) model.lora.targets.emplace_back("lm_head");
  }
  Tensors tensors(folder / kAdapterModel);
  std::set<std::string> wanted;
  std::vector<std::string> all;
  for (const auto& [adapter, layers, rows] : file_adapters(model)) {
    const std::string layer = adapter.layer(), parent = layer.substr(0, layer.rfind('.') + 1);
    all.push_back(adapter.part.empty() ? layer : parent + adapter.part);
    const std::string a = file_key(layers[0], "A"), b = file_key(layers[0], "B");
    if (!tensors.has(a) && !tensors.has(b)) continue;
    wanted.insert(all.back());
    read.state.emplace_back(adapter.name() + ".lora_A.weight", tensors.take(a, {read.lora.rank, adapter.in}));
    read.state.emplace_back(adapter.name() + ".lora_B.weight", tensors.take(b, {adapter.rows, read.lora.rank}));
  }
  tensors.check_empty();
  ONESTEP_CHECK(IoError, !wanted.empty(), tensors.path(), ": has no adapters");
  read.lora.targets = targets_for(wanted, all);
  return read;
}

}  // namespace onestep::train

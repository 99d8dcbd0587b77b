#include "train/models/pretrained_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/anomaly.h"
#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "autograd/ops_order.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "base/new_files.h"
#include "base/progress_bar.h"
#include "base/utf8.h"
#include "train/checkpoint/safetensors_folder.h"
#include "train/models/pretrained_config.h"
#include "train/models/tensor_names.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"
#include "train/text/pretrained_tokenizer.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfigFile = "config.json";
constexpr const char* kWeightsFile = "model.safetensors";

std::vector<int64_t> sizes(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// The tensors of a folder under the names of the model with its head.
class Weights {
 public:
  Weights(const fs::path& folder, const ModelConfig& model) : folder_(folder), model_(model) {
    const std::string prefix = model.rope ? "model." : "transformer.";
    const auto has_prefix = [&](const auto& item) { return item.first.starts_with(prefix); };
    const bool prefixed = std::any_of(folder_.tensors().begin(), folder_.tensors().end(), has_prefix);
    for (const auto& [name, found] : folder_.tensors())
      if (!is_constant(name)) left_.emplace(prefixed || name == kHead ? name : prefix + name, found);
    for (const FileTensor& tensor : pretrained_tensors(model)) take(tensor);
    const auto head = left_.find(kHead);
    if (model.tie_weights && head != left_.end()) {
      tied_head_ = head->second;
      left_.erase(head);
    }
    ONESTEP_CHECK(IoError, left_.empty(), left_.begin()->second.place(),
                  ": is no part of the model that config.json describes");
  }

  /// All tensors as the parameters of our model, each read once.
  nn::NamedTensors read(bool quiet) const {
    ProgressBar progress("reading " + folder_.path(), folder_.bytes(), "bytes", quiet);
    int64_t done = 0;
    std::map<std::string, Tensor> state;
    nn::NamedTensors list;
    for (const DecoderParameter& parameter : decoder_parameters(model_, model_.vocab_size))
      list.emplace_back(parameter.name(), state[parameter.name()] = empty(parameter.shape));
    for (const auto& [tensor, found] : taken_) {
      const Tensor part = tensor.part_of(state.at(tensor.parameter));
      found.file->for_each_block(*found.entry, [&, source = found](const Tensor& rows, int64_t first) {
        ONESTEP_CHECK(IoError, all_finite(rows), source.place(), ": is not finite");
        copy_(narrow(part, 0, first, rows.size(0)), rows);
        progress.show(done += static_cast<int64_t>(rows.numel() * size_of(rows.dtype())));
      });
    }
    check_tied_head(list.front().second);
    return list;
  }

 private:
  static constexpr const char* kHead = "lm_head.weight";

  /// What old versions saved with the weights: causal masks, frequencies of the rotation.
  static bool is_constant(const std::string& name) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
  }

  /// Checks that the files have a tensor as the model needs it.
  void take(const FileTensor& tensor) {
    const auto found = left_.find(tensor.name);
    ONESTEP_CHECK(IoError, found != left_.end(), folder_.path(), ": tensor \"", tensor.name, "\": is missing");
    const TensorEntry& entry = *found->second.entry;
    const bool known = entry.dtype == DType::float32 || entry.dtype == DType::bfloat16 || entry.dtype == DType::float16;
    const std::string place = found->second.place();
    ONESTEP_CHECK(IoError, known, place, ": must be float32, bfloat16 or float16: is ", entry.dtype);
    ONESTEP_CHECK(IoError, entry.shape == tensor.shape, place, ": must be ", json(sizes(tensor.shape)).dump(),
                  " as config.json says: is ", json(sizes(entry.shape)).dump());
    taken_.emplace_back(tensor, found->second);
    left_.erase(found);
  }

  /// A head that config.json ties may be there if it repeats the embedding.
  void check_tied_head(const Tensor& embedding) const {
    if (tied_head_.file == nullptr) return;
    bool same = tied_head_.entry->shape == embedding.shape();
    if (same)
      tied_head_.file->for_each_block(*tied_head_.entry, [&](const Tensor& rows, int64_t first) {
        same = same && equal(narrow(embedding, 0, first, rows.size(0)), rows.to(DType::float32));
      });
    ONESTEP_CHECK(IoError, same, tied_head_.file->path(), ": tensor \"", kHead,
                  "\": differs from the token embedding, to which config.json ties it");
  }

  SafetensorsFolder folder_;
  const ModelConfig& model_;
  std::map<std::string, SafetensorsFolder::Found> left_;
  std::vector<std::pair<FileTensor, SafetensorsFolder::Found>> taken_;
  SafetensorsFolder::Found tied_head_{};
};

bool is_pretrained_config(const std::string& path) {
  try {
    read_pretrained_config(path);
    return true;
  } catch (const IoError&) {
    return false;
  }
}

/// An export replaces an earlier one: not a run, nor the model of another program.
void check_replaces_export(const fs::path& folder) {
  const bool has_config = fs::exists(folder / kConfigFile);
  const fs::path adapters = folder / "adapter_config.json";
  ONESTEP_CHECK(IoError, !fs::exists(adapters), adapters.string(),
                ": its adapters would be added to the model (name another folder)");
  if (!has_config && !fs::exists(folder / kWeightsFile)) return;
  ONESTEP_CHECK(IoError, has_config && is_pretrained_config((folder / kConfigFile).string()),
                (folder / (has_config ? kConfigFile : kWeightsFile)).string(),
                ": is not that of a GPT-2 or Llama, and an export would replace it (name another folder)");
}

/// The files of a tokenizer, of those that transformers would read.
std::map<std::string, std::string> tokenizer_files(const Tokenizer* tokenizer) {
  if (const auto* const bpe = dynamic_cast<const BpeTokenizer*>(tokenizer))
    return {{"vocab.json", vocab_json_text(bpe->vocabulary())}, {"merges.txt", merges_text(bpe->vocabulary())}};
  if (dynamic_cast<const PretrainedTokenizer*>(tokenizer) != nullptr) return {{"tokenizer.json", tokenizer->to_json()}};
  return {};
}

/// A model must not be taken for one with the tokenizer of an earlier export, which goes with it. One that stands alone is
/// somebody's own: it is neither deleted nor paired.
void replace_tokenizer(const fs::path& folder, const Tokenizer* tokenizer, NewFiles& files) {
  const bool exported = fs::exists(folder / kWeightsFile);
  const std::map<std::string, std::string> written = tokenizer_files(tokenizer);
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer.json"}) {
    if (written.contains(name)) continue;
    ONESTEP_CHECK(IoError, exported || !fs::exists(folder / name), (folder / name).string(),
                  ": would be taken for the tokenizer of the model, which has none of that kind (name another folder)");
    files.remove(name);
  }
  for (const auto& [name, text] : written) files.add(name, text);
}

}  // namespace

void check_range(const std::string& name, const Tensor& tensor, DType dtype) {
  ONESTEP_CHECK(ConfigError, all_finite(tensor.to(dtype)) || !all_finite(tensor), "export: tensor ", quote(name),
                " holds numbers beyond those of ", dtype, " (choose another --dtype)");
}

Pretrained read_pretrained(const fs::path& folder, bool quiet) {
  ONESTEP_CHECK(IoError, fs::is_directory(folder), folder.string(),
                ": is not a folder (needs one with config.json and model.safetensors)");
  const NoGradGuard no_grad;
  const ModelConfig model = read_pretrained_config((folder / kConfigFile).string());
  return {model, Weights(folder, model).read(quiet)};
}

void write_pretrained(const fs::path& folder, const Pretrained& model, const PretrainedOptions& options) {
  const NoGradGuard no_grad;
  const std::string config = pretrained_config_json(model.model, options.dtype);
  const std::map<std::string, Tensor> state(model.state.begin(), model.state.end());
  std::map<std::string, Tensor> tensors;  // sorted by name, as transformers writes them
  for (const FileTensor& tensor : pretrained_tensors(model.model)) tensors[tensor.name] = exported(tensor, state);
  for (const auto& [name, tensor] : tensors) check_range(name, tensor, options.dtype);
  check_replaces_export(folder);
  NewFiles files(folder);
  files.add(kConfigFile, config);  // moved first: a model is never left without its config
  write_safetensors(files.add(kWeightsFile).string(), {tensors.begin(), tensors.end()}, {{"format", "pt"}}, options.quiet,
                    options.dtype);
  replace_tokenizer(folder, options.tokenizer, files);
  files.finish();
}

}  // namespace onestep::train

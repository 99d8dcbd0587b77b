#include "train/memory_need.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/format.h"
#include "train/log/metrics.h"
#include "train/models/adapters.h"
#include "train/models/trainable.h"

namespace onestep::train {
namespace {

// Counts are doubles: a config may ask for more than 64 bits can count.

/// Width of queries, keys and values side by side.
double qkv_width(const ModelConfig& model) {
  const ModelConfig m = written_out(model);
  return static_cast<double>(query_width(m) + 2 * key_width(m));
}

struct Count {
  double all = 0, trained = 0;
};

Count count_parameters(const Config& config, int64_t vocab_size) {
  const std::set<std::string> frozen = frozen_parameters(config);
  Count count;
  for (const DecoderParameter& parameter : model_parameters(config.model, vocab_size, num_classes(config))) {
    const double size = std::accumulate(parameter.shape.begin(), parameter.shape.end(), 1.0, std::multiplies<>());
    count.all += size;
    if (!frozen.contains(parameter.name())) count.trained += size;
  }
  return count;
}

/// Of the masks [T, T] that the chapter's attention keeps.
double mask_bytes(const ModelConfig& m) {
  const auto context = static_cast<double>(m.context_length), heads = static_cast<double>(m.num_heads);
  if (m.kind != ModelKind::attention) return 0;
  if (m.attention == AttentionKind::multi_head_wrapper) return heads * context * context;
  const bool masked =
      m.attention == AttentionKind::causal || m.attention == AttentionKind::multi_head || m.attention == AttentionKind::einsum;
  return masked ? context * context : 0;
}

/// Tensors of the parameters' size that the optimizer keeps.
int optimizer_slots(const OptimizerConfig& o) {
  if (o.kind == OptimizerKind::sgd) return o.momentum != 0 ? 1 : 0;
  if (o.kind == OptimizerKind::adam || o.kind == OptimizerKind::adamw) return o.amsgrad ? 3 : 2;
  return 1;
}

/// Elements a token that one attention layer of the chapter keeps: its projections and, where they are formed, weights.
double attention_activations(const ModelConfig& m, double length) {
  const auto d = static_cast<double>(m.d_model);
  const bool forms_weights = m.attention == AttentionKind::simplified || m.attention == AttentionKind::self_v1 ||
                             m.attention == AttentionKind::self_v2;
  return forms_weights ? 4 * d + 3 * length : 8 * d;
}

/// Elements a token that a block keeps: what its two norms, four projections, attention and activation had or gave.
double block_activations(const ModelConfig& m) {
  const auto d = static_cast<double>(m.d_model), ff = static_cast<double>(m.d_ff);
  const std::vector<Adapter> adapted = adapters(m);
  const bool trains_mlp = m.lora.rank == 0 || std::any_of(adapted.begin(), adapted.end(), [](const Adapter& adapter) {
                            return adapter.module.find(".mlp.") != std::string::npos;
                          });
  // A linear layer keeps its input for the gradient of its weight alone.
  const double kept_inputs = trains_mlp ? d + ff : 0;
  return 5 * d + static_cast<double>(query_width(written_out(m))) + 2 * qkv_width(m) +
         (m.activation == Activation::swiglu ? 3 : 1) * ff + kept_inputs;
}

/// Bytes a token: a byte for each decision of dropout.
double dropout_bytes(const ModelConfig& m, double length) {
  if (m.dropout == 0) return 0;
  const double weights = static_cast<double>(m.num_heads) * length;
  if (m.kind == ModelKind::attention) return weights;
  return static_cast<double>(m.num_layers) * (weights + 2 * static_cast<double>(m.d_model));
}

std::string mebibytes(double bytes) { return grouped(bytes / (1 << 20)) + " MiB"; }

}  // namespace

MemoryNeed memory_need(const Config& config, int64_t vocab_size, int64_t length) {
  const ModelConfig& m = config.model;
  vocab_size = std::max(vocab_size, m.vocab_size);
  const int64_t classes = num_classes(config);
  const auto outputs = static_cast<double>(classes > 0 ? classes : vocab_size), row = static_cast<double>(length),
             d = static_cast<double>(m.d_model), tokens = static_cast<double>(config.train.batch_size) * row;
  const auto element = static_cast<double>(size_of(config.train.dtype));
  const Count count = count_parameters(config, vocab_size);
  const double depth = static_cast<double>(m.num_layers), logits = outputs;
  double layers = m.kind == ModelKind::attention ? attention_activations(m, row) : depth * block_activations(m) + 2 * d;
  layers += logits;
  // Of recomputed blocks one is there at a time, when the logits are gone.
  if (config.train.recompute) layers = (depth + 2) * d + std::max(block_activations(m), logits);
  MemoryNeed need;
  need.parameters = static_cast<int64_t>(std::min(count.all, 9e18));
  need.trained = static_cast<int64_t>(std::min(count.trained, 9e18));
  need.mask_bytes = mask_bytes(m);
  need.parameter_bytes = count.all * element;
  need.gradient_bytes = count.trained * element;
  need.optimizer_bytes = need.gradient_bytes * optimizer_slots(config.optimizer);
  need.activation_bytes = tokens * ((layers + 2 * d) * element + dropout_bytes(m, row));
  return need;
}

std::string check_memory(const Config& config, const MemoryNeed& need, int64_t available) {
  const auto left = static_cast<double>(available);
  if (need.total() <= 0.9 * left) return "";
  std::ostringstream text;
  text << "training needs about " << mebibytes(need.total()) << " (parameters " << mebibytes(need.parameter_bytes)
       << ", gradients " << mebibytes(need.gradient_bytes) << ", optimizer " << mebibytes(need.optimizer_bytes)
       << ", activations " << mebibytes(need.activation_bytes);
  if (need.mask_bytes > 0) text << ", masks " << mebibytes(need.mask_bytes);
  text << "), there are " << mebibytes(left) << " left (a smaller model, batch_size or context_length needs less)";
  ONESTEP_CHECK(ConfigError, need.total() <= 1.25 * left, config.origin.file, ": ", text.str());
  return config.origin.file + ": " + text.str();
}

}  // namespace onestep::train

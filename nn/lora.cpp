#include "nn/lora.h"

#include <algorithm>
#include <cmath>

#include "autograd/creation.h"
#include "autograd/operators.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "base/glob.h"
#include "nn/init.h"

namespace onestep::nn {
namespace {

/// A Linear whose values are drawn again.
Linear undrawn(int64_t in, int64_t out, Generator& generator) {
  const init::SkipInit skip;
  return Linear(in, out, /*bias=*/false, generator);
}

/// Adds the products of all adapters to the weights, or takes them away.
void change_weights(Module& model, bool merged, double factor) {
  const NoGradGuard no_grad;
  for (Module* const module : model.modules()) {
    auto* const linear = dynamic_cast<Linear*>(module);
    if (!linear || !linear->lora || linear->lora->merged == merged) continue;
    for (const Lora::Part& part : linear->lora->parts)
      narrow(linear->weight, 0, part.rows.first, part.rows.count).add_(part.adapter->weight() * factor);
    linear->lora->merged = merged;
  }
}

}  // namespace

LoraAdapter::LoraAdapter(int64_t in, int64_t out, const LoraOptions& options, Generator& generator)
    : lora_A(undrawn(in, options.rank, generator)),
      lora_B(undrawn(options.rank, out, generator)),
      dropout(options.dropout, generator),
      scaling(options.alpha / static_cast<double>(options.rank)) {
  ONESTEP_CHECK(ConfigError, options.rank > 0 && options.alpha > 0, "lora: rank and alpha must be above 0: got ", options.rank,
                " and ", options.alpha);
  init::kaiming_uniform_(lora_A.weight, std::sqrt(5.0), generator);
  init::zeros_(lora_B.weight);
}

Tensor LoraAdapter::forward(const Tensor& x) const {
  const Tensor narrowed = lora_A(dropout(x));                     // [..., rank]
  return lora_B(scaling == 1.0 ? narrowed : narrowed * scaling);  // [..., out]
}

void LoraAdapter::visit(Visitor& visitor) {
  visitor.child("lora_A", lora_A);
  visitor.child("lora_B", lora_B);
  visitor.child("lora_dropout", dropout);
}

Tensor LoraAdapter::weight() const { return lora_weight(lora_A.weight, lora_B.weight, scaling); }

Tensor lora_weight(const Tensor& a, const Tensor& b, double scaling) { return matmul(b, a) * scaling; }

Tensor Lora::add_to(Tensor y, const Tensor& x) const {
  if (merged) return y;
  std::vector<Tensor> moved;  // side by side, zeros where there is no adapter
  int64_t next = 0;
  const auto fill_to = [&](int64_t row) {
    Shape shape = y.shape();
    shape[shape.rank() - 1] = row - next;
    if (row > next) moved.push_back(zeros(shape, y.dtype()));
  };
  for (const Part& part : parts) {
    fill_to(part.rows.first);
    moved.push_back((*part.adapter)(x));
    next = part.rows.first + part.rows.count;
  }
  fill_to(y.size(-1));
  return add_(y, moved.size() == 1 ? moved[0] : cat(moved, -1));
}

LoraAdapter& add_lora(Linear& layer, const LoraOptions& options, Generator& generator, const LoraRows& given) {
  ONESTEP_CHECK(ConfigError, !layer.packed, "lora: the layer is packed (add adapters before pack_weights)");
  LoraRows rows = given;
  const int64_t out = layer.weight.size(0);
  if (rows.count < 0) rows.count = out - rows.first;
  ONESTEP_CHECK(IndexError, rows.first >= 0 && rows.count > 0 && rows.first + rows.count <= out,
                "lora: the layer has rows 0 to ", out - 1, ": got ", rows.count, " from ", rows.first);
  if (!layer.lora) layer.lora = std::make_shared<Lora>();
  std::vector<Lora::Part>& parts = layer.lora->parts;
  const auto after = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.rows.first >= rows.first; });
  const bool free = (after == parts.end() || rows.first + rows.count <= after->rows.first) &&
                    (after == parts.begin() || std::prev(after)->rows.first + std::prev(after)->rows.count <= rows.first);
  ONESTEP_CHECK(ConfigError, free, "lora: rows ", rows.first, " to ", rows.first + rows.count - 1, " have an adapter already");
  layer.weight.requires_grad_(false);
  if (layer.bias.defined()) layer.bias.requires_grad_(false);
  auto adapter = std::make_unique<LoraAdapter>(layer.weight.size(1), rows.count, options, generator);
  return *parts.insert(after, {rows, std::move(adapter)})->adapter;
}

bool is_lora_target(const std::string& target, const std::string& name) {
  return matches_glob(target, name) || matches_glob("*." + target, name);
}

std::vector<std::string> add_lora(Module& model, const LoraOptions& options, const std::vector<std::string>& targets,
                                  Generator& generator) {
  std::vector<std::pair<std::string, Linear*>> layers;
  std::vector<bool> found(targets.size(), false);
  for (Module* const module : model.modules()) {
    auto* const linear = dynamic_cast<Linear*>(module);
    if (!linear) continue;
    const std::string name = model.path_to(*linear);
    bool wanted = false;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!is_lora_target(targets[i], name)) continue;
      wanted = found[i] = true;
    }
    if (wanted) layers.emplace_back(name, linear);
  }
  for (size_t i = 0; i < targets.size(); ++i)
    ONESTEP_CHECK(ConfigError, found[i], "lora: no Linear of ", model.name(), " has the name ", targets[i]);
  for (Tensor& parameter : model.parameters()) parameter.requires_grad_(false);
  std::vector<std::string> names;
  for (const auto& [name, linear] : layers) {
    add_lora(*linear, options, generator);
    names.push_back(name);
  }
  return names;
}

void merge_lora(Module& model) { change_weights(model, true, 1.0); }

void unmerge_lora(Module& model) { change_weights(model, false, -1.0); }

}  // namespace onestep::nn

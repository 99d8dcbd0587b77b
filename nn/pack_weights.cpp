#include "nn/pack_weights.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "autograd/memory.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/lora.h"

namespace onestep::nn {

namespace {

/// Not all of the model is to be held twice; but after each release a huge page that is partly in use is one of small pages,
/// and the next weight continues in it.
constexpr int64_t kMostFreed = int64_t{64} << 20;

/// Layers that share one weight.
struct Sharing {
  std::vector<Linear*> linears;
  std::vector<Embedding*> embeddings;
};

/// `layer` with the packed weight, without the float32 one.
template <class L>
void take_packed(L& layer, const std::shared_ptr<const PackedWeight>& packed) {
  layer.packed = packed;
  layer.weight = {};
}

/// Merges the adapters of a model and takes them out of it.
void drop_adapters(Module& model) {
  merge_lora(model);
  std::vector<Linear*> adapted;  // first, since adapters are modules themselves
  for (Module* const module : model.modules())
    if (auto* const linear = dynamic_cast<Linear*>(module); linear && linear->lora) adapted.push_back(linear);
  for (Linear* const linear : adapted) linear->lora = nullptr;
}

}  // namespace

void pack_weights(Module& model, WeightFormat format) {
  if (format == WeightFormat::float32) return;
  drop_adapters(model);
  std::map<const Tensor::Impl*, Sharing> weights;
  for (Module* const module : model.modules()) {
    if (auto* const linear = dynamic_cast<Linear*>(module); linear && !linear->packed)
      weights[&linear->weight.impl()].linears.push_back(linear);
    if (auto* const embedding = dynamic_cast<Embedding*>(module); embedding && !embedding->packed)
      weights[&embedding->weight.impl()].embeddings.push_back(embedding);
  }
  int64_t freed = 0;  // bytes that the system has not got back yet
  for (auto& [_, layers] : weights) {
    if (layers.linears.empty()) continue;
    freed += layers.linears[0]->weight.numel() * size_of(DType::float32);
    const auto packed = std::make_shared<const PackedWeight>(layers.linears[0]->weight, format);
    for (Linear* const linear : layers.linears) take_packed(*linear, packed);
    for (Embedding* const embedding : layers.embeddings) take_packed(*embedding, packed);
    if (freed >= kMostFreed) {
      memory::release_cached();
      freed = 0;
    }
  }
  memory::release_cached();
}

int64_t weight_bytes(Module& model) {
  int64_t bytes = 0;
  for (const Tensor& parameter : model.parameters()) bytes += parameter.numel() * size_of(parameter.dtype());
  std::set<const PackedWeight*> counted;
  for (Module* const module : model.modules()) {
    const auto* const linear = dynamic_cast<Linear*>(module);
    if (linear && linear->packed && counted.insert(linear->packed.get()).second) bytes += linear->packed->bytes();
  }
  return bytes;
}

}  // namespace onestep::nn

#pragma once
#include "autograd/packed_weight.h"
#include "nn/module.h"

namespace onestep::nn {

/// Keeps the weight of every Linear of a model, also where an Embedding shares it, in fewer bytes and releases the float32 one:
/// for inference alone. It is a parameter no more; adapters are merged into it. Other parameters, and all with
/// WeightFormat::float32, stay as they are. Throws DTypeError unless the weights are float32.
void pack_weights(Module& model, WeightFormat format);

/// Bytes of the parameters of a model, packed or not.
int64_t weight_bytes(Module& model);

}  // namespace onestep::nn

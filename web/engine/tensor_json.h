#pragma once
// Numbers and tensors as JSON and as text.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "autograd/tensor.h"

namespace onestep::web {

/// A number, or "inf", "-inf" or "nan", which JSON has no numbers for.
nlohmann::json number_or_text(double value);

/// All elements in nested arrays, as Tensor::tolist of PyTorch.
nlohmann::json nested(const Tensor& tensor);

/// The number with four decimals, as PyTorch prints it.
std::string four_decimals(double value);

}  // namespace onestep::web

#include "nn/linear.h"

#include <cmath>
#include <sstream>

#include "autograd/ops_math.h"
#include "nn/init.h"
#include "nn/lora.h"

namespace onestep::nn {

Linear::Linear(int64_t in_features, int64_t out_features, bool with_bias, Generator& generator) {
  ONESTEP_CHECK(ShapeError, in_features >= 0 && out_features >= 0,
                "Linear: features cannot be negative: in_features=", in_features, ", out_features=", out_features);
  weight = empty({out_features, in_features}).requires_grad_();
  init::kaiming_uniform_(weight, std::sqrt(5.0), generator);
  if (!with_bias) return;
  bias = empty({out_features}).requires_grad_();
  const double bound = in_features > 0 ? 1.0 / std::sqrt(static_cast<double>(in_features)) : 0.0;
  init::uniform_(bias, -bound, bound, generator);
}

Tensor Linear::forward(const Tensor& x) const {
  if (packed) return packed->linear(x, bias);
  return lora ? lora->add_to(linear(x, weight, bias), x) : linear(x, weight, bias);
}

std::string Linear::extra_repr() const {
  const Shape& shape = packed ? packed->shape() : weight.shape();
  std::ostringstream text;
  text << "in_features=" << shape[1] << ", out_features=" << shape[0] << ", bias=" << python_repr(bias.defined());
  return text.str();
}

void Linear::visit(Visitor& visitor) {
  visitor.parameter("weight", weight);
  visitor.parameter("bias", bias);
  if (!lora) return;
  for (const Lora::Part& part : lora->parts)
    part.rows.name.empty() ? part.adapter->visit(visitor) : visitor.child(part.rows.name, *part.adapter);
}

}  // namespace onestep::nn

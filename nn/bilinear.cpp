#include "nn/bilinear.h"

#include <cmath>
#include <sstream>

#include "autograd/operators.h"
#include "nn/init.h"

namespace onestep::nn {

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool with_bias, Generator& generator) {
  ONESTEP_CHECK(ShapeError, in1_features > 0 && in2_features > 0 && out_features > 0,
                "Bilinear: features must be positive: in1_features=", in1_features, ", in2_features=", in2_features,
                ", out_features=", out_features);
  const double bound = 1.0 / std::sqrt(static_cast<double>(in1_features));
  weight = empty({out_features, in1_features, in2_features}).requires_grad_();
  init::uniform_(weight, -bound, bound, generator);
  if (!with_bias) return;
  bias = empty({out_features}).requires_grad_();
  init::uniform_(bias, -bound, bound, generator);
}

Tensor Bilinear::forward(const Tensor& a, const Tensor& b) const {
  const Tensor y = einsum("...i,oij,...j->...o", {a, weight, b});
  return bias.defined() ? y + bias : y;
}

std::string Bilinear::extra_repr() const {
  std::ostringstream text;
  text << "in1_features=" << weight.size(1) << ", in2_features=" << weight.size(2) << ", out_features=" << weight.size(0)
       << ", bias=" << python_repr(bias.defined());
  return text.str();
}

void Bilinear::visit(Visitor& visitor) {
  visitor.parameter("weight", weight);
  visitor.parameter("bias", bias);
}

}  // namespace onestep::nn

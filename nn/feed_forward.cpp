#include "nn/feed_forward.h"

#include "autograd/operators.h"
#include "nn/activation.h"

namespace onestep::nn {

FeedForward::FeedForward(int64_t d_model, int64_t expansion, std::string_view activation, Generator& generator) {
  layers.emplace_back<Linear>(d_model, expansion * d_model, true, generator);
  layers.append(make_activation(activation));
  layers.emplace_back<Linear>(expansion * d_model, d_model, true, generator);
}

SwiGLU::SwiGLU(int64_t d_model, int64_t d_ff, bool bias, Generator& generator)
    : gate_proj(d_model, d_ff, bias, generator),
      up_proj(d_model, d_ff, bias, generator),
      down_proj(d_ff, d_model, bias, generator) {}

void SwiGLU::visit(Visitor& visitor) {
  visitor.child("gate_proj", gate_proj);
  visitor.child("up_proj", up_proj);
  visitor.child("down_proj", down_proj);
}

}  // namespace onestep::nn

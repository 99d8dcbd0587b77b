#include "nn/feed_forward.h"

#include "nn/activation.h"
#include "nn/linear.h"

namespace onestep::nn {

FeedForward::FeedForward(int64_t d_model, int64_t expansion, std::string_view activation, Generator& generator) {
  layers.emplace_back<Linear>(d_model, expansion * d_model, true, generator);
  layers.append(make_activation(activation));
  layers.emplace_back<Linear>(expansion * d_model, d_model, true, generator);
}

}  // namespace onestep::nn

#pragma once
// Initial values of parameters, drawn as PyTorch draws them (torch.nn.init). All work in place and are not recorded.
#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep::nn::init {

/// Uniform in [from, to).
void uniform_(Tensor& tensor, double from = 0.0, double to = 1.0, Generator& generator = default_generator());
/// Normal with the given mean and standard deviation.
void normal_(Tensor& tensor, double mean = 0.0, double std = 1.0, Generator& generator = default_generator());

/// While one lives, uniform_ and normal_ on its thread only advance the generator past the numbers that they would draw and
/// leave the values as they are: for tensors that are initialised again afterwards (torch.nn.utils.skip_init, but with the
/// generator state of a full initialisation).
class SkipInit {
 public:
  SkipInit();
  ~SkipInit();
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;
};

/// Zero everywhere.
void zeros_(Tensor& tensor);
/// Uniform within +-sqrt(3) gain / sqrt(fan_in), gain = sqrt(2 / (1 + a^2)), for a weight [out, in]: fan_in = in (He et al.
/// 2015; torch.nn.init.kaiming_uniform_ for a leaky ReLU of negative slope a). Throws ShapeError below rank 2.
void kaiming_uniform_(Tensor& weight, double a = 0.0, Generator& generator = default_generator());
/// Uniform within +-gain sqrt(6 / (fan_in + fan_out)), for a weight [out, in, ...]: fan_in = in * ..., fan_out = out * ...
/// (Glorot and Bengio 2010; torch.nn.init.xavier_uniform_). Throws ShapeError below rank 2.
void xavier_uniform_(Tensor& weight, double gain = 1.0, Generator& generator = default_generator());
/// Normal with standard deviation gain sqrt(2 / (fan_in + fan_out)) (torch.nn.init.xavier_normal_).
void xavier_normal_(Tensor& weight, double gain = 1.0, Generator& generator = default_generator());

}  // namespace onestep::nn::init

#include "nn/init.h"

#include <cmath>
#include <span>

#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "autograd/random/generator.h"
#include "autograd/random/random_fill.h"
#include "autograd/tensor.h"

namespace onestep::nn::init {
namespace {

thread_local int skips = 0;  // SkipInit alive

/// Advances the generator past `numbers` uniforms of this dtype: one 32-bit output each in float32, two in float64.
void advance(int64_t numbers, DType dtype, Generator& generator) {
  generator.discard(static_cast<uint64_t>(numbers) * (dtype == DType::float64 ? 2 : 1));
}

/// Calls `fill` with the elements of a contiguous floating tensor, in memory order.
template <class F>
void fill_values(const char* op, Tensor& tensor, F fill) {
  ONESTEP_CHECK(ShapeError, tensor.is_contiguous(), op, ": needs a contiguous tensor: strides are ", tensor.strides());
  NoGradGuard no_grad;
  dispatch_random(tensor.dtype(), op,
                  [&]<class T>() { fill(std::span<T>(tensor.mutable_data<T>(), static_cast<size_t>(tensor.numel()))); });
}

/// gain sqrt(2 / (fan_in + fan_out)) for a weight [out, in, ...]
double xavier_std(const char* op, const Tensor& weight, double gain) {
  ONESTEP_CHECK(ShapeError, weight.dim() >= 2, op, ": needs a weight [out, in, ...]: got ", weight.shape());
  int64_t receptive = 1;
  for (int i = 2; i < weight.dim(); ++i) receptive *= weight.size(i);
  return gain * std::sqrt(2.0 / static_cast<double>((weight.size(0) + weight.size(1)) * receptive));
}

}  // namespace

SkipInit::SkipInit() { ++skips; }
SkipInit::~SkipInit() { --skips; }

void uniform_(Tensor& tensor, double from, double to, Generator& generator) {
  if (skips > 0) return advance(tensor.numel(), tensor.dtype(), generator);
  fill_values("uniform_", tensor, [&]<class T>(std::span<T> values) { fill_uniform<T>(values, from, to, generator); });
}

void normal_(Tensor& tensor, double mean, double std, Generator& generator) {
  const int64_t n = tensor.numel();
  const int64_t last_block = n % 16 > 0 ? 16 - (is_narrow(tensor.dtype()) ? n % 16 : 0) : 0;
  if (skips > 0 && n >= 16) return advance(n + last_block, tensor.dtype(), generator);  // as fill_normal draws
  fill_values("normal_", tensor, [&]<class T>(std::span<T> values) { fill_normal<T>(values, mean, std, generator); });
}

void zeros_(Tensor& tensor) {
  NoGradGuard no_grad;
  fill_(tensor, 0);
}

void kaiming_uniform_(Tensor& weight, double a, Generator& generator) {
  ONESTEP_CHECK(ShapeError, weight.dim() >= 2, "kaiming_uniform_: needs a weight [out, in, ...]: got ", weight.shape());
  if (weight.numel() == 0) return;
  const int64_t fan_in = weight.numel() / weight.size(0);
  const double std = std::sqrt(2.0 / (1.0 + a * a)) / std::sqrt(static_cast<double>(fan_in));
  const double bound = std::sqrt(3.0) * std;
  uniform_(weight, -bound, bound, generator);
}

void xavier_uniform_(Tensor& weight, double gain, Generator& generator) {
  const double bound = std::sqrt(3.0) * xavier_std("xavier_uniform_", weight, gain);
  uniform_(weight, -bound, bound, generator);
}

void xavier_normal_(Tensor& weight, double gain, Generator& generator) {
  normal_(weight, 0.0, xavier_std("xavier_normal_", weight, gain), generator);
}

}  // namespace onestep::nn::init

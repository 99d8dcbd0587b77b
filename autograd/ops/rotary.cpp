// Rotary position embedding (Su et al. 2021). A rotation's gradient is the rotation back.
#include <cmath>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "autograd/memory.h"
#include "autograd/ops/common.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

constexpr const char* kOp = "rotary_embedding";
constexpr double kTurn = 6.283185307179586;

/// theta^(-1/n) for theta >= 1 by bisection: products and comparisons only, so that every machine gets the same bits.
double inverse_root(double theta, int64_t n) {
  double low = 0, high = 1;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    double power = 1;
    for (int64_t k = 0; k < n && power * theta > 1; ++k) power *= middle;
    (power * theta > 1 ? high : low) = middle;
  }
  return high;
}

/// How a rotary embedding turns.
struct Rotation {
  int64_t first_position;
  double theta;
  RotaryScaling scaling;
  int sign;  // 1, or -1 to turn back
};

/// cos and sin of position theta^(-2i/d) for i < d/2: [T, d/2] each, angles in double and brought near 0 before they are
/// rounded.
template <class T>
struct Turns {
  Turns(int64_t tokens, int64_t half, const Rotation& r) : cos(static_cast<size_t>(tokens * half)), sin(cos.size()) {
    const double ratio = inverse_root(r.theta, half);
    double unscaled = 1;
    for (int64_t i = 0; i < half; ++i, unscaled *= ratio) {
      const double frequency = scaled_frequency(unscaled, r.scaling);
      for (int64_t t = 0; t < tokens; ++t) {
        const double angle = static_cast<double>(r.first_position + t) * frequency;
        cos[static_cast<size_t>(t * half + i)] = static_cast<T>(angle - kTurn * std::nearbyint(angle / kTurn));
      }
    }
    const auto n = static_cast<int64_t>(cos.size());
    kernels::sin(cos.data(), sin.data(), n);
    kernels::cos(cos.data(), cos.data(), n);
  }
  std::vector<T, memory::Allocator<T>> cos, sin;
};

/// x turned; not recorded.
Tensor turned_values(const Tensor& x, const Rotation& r) {
  const Tensor from = ops::contiguous_values(x);
  Tensor y = empty(x.shape(), x.dtype());
  const int64_t tokens = x.size(-2), half = x.size(-1) / 2;
  if (y.numel() == 0) return y;
  dispatch_floating(x.dtype(), kOp, [&]<class T>() {
    const Turns<T> turns(tokens, half, r);
    const T* const in = from.data<T>();
    T* const out = y.mutable_data<T>();
    kernels::parallel_for(y.numel() / (2 * half), static_cast<double>(half), [&, in, out](int64_t row, int64_t end) {
      for (; row < end; ++row) {
        const T *a = in + row * 2 * half, *b = a + half;
        const T *cos = turns.cos.data() + row % tokens * half, *sin = turns.sin.data() + row % tokens * half;
        T *c = out + row * 2 * half, *d = c + half;
        for (int64_t i = 0; i < half; ++i) {
          const T s = r.sign > 0 ? sin[i] : -sin[i];
          c[i] = a[i] * cos[i] - b[i] * s;
          d[i] = b[i] * cos[i] + a[i] * s;
        }
      }
    });
  });
  return y;
}

/// x turned, and its gradient turned back.
Tensor turned(const Tensor& x, const Rotation& r) {
  const Rotation back{r.first_position, r.theta, r.scaling, -r.sign};
  return record(kOp, turned_values(x, r), {x}, {}, [=](const Backward& b) -> Grads { return {turned(b.grad(), back)}; });
}

}  // namespace

double scaled_frequency(double frequency, const RotaryScaling& s) {
  if (s.kind == RotaryScaling::Kind::none) return frequency;
  if (s.kind == RotaryScaling::Kind::linear) return frequency / s.factor;
  const double turns = static_cast<double>(s.original_context) * frequency / kTurn;  // within the original context
  if (turns < s.low_freq_factor) return frequency / s.factor;
  if (turns > s.high_freq_factor) return frequency;
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - kept) * frequency / s.factor + kept * frequency;
}

Tensor rotary_embedding(const Tensor& x, int64_t first_position, double theta, const RotaryScaling& s) {
  ops::check_floating(kOp, x);
  ONESTEP_CHECK(ShapeError, x.dim() >= 2 && x.size(-1) % 2 == 0, kOp,
                ": needs [..., tokens, features] with an even number of features: got ", x.shape());
  ONESTEP_CHECK(ConfigError, first_position >= 0, kOp, ": first_position cannot be negative: got ", first_position);
  ONESTEP_CHECK(ConfigError, first_position <= INT64_MAX - x.size(-2), kOp, ": first_position is too large for ", x.size(-2),
                " tokens: got ", first_position);
  ONESTEP_CHECK(ConfigError, theta >= 1 && std::isfinite(theta), kOp, ": theta must be at least 1: got ", theta);
  const bool scales = s.kind != RotaryScaling::Kind::none, by_wave = s.kind == RotaryScaling::Kind::llama3;
  ONESTEP_CHECK(ConfigError, !scales || (s.factor >= 1 && std::isfinite(s.factor)), kOp,
                ": the factor of scaling must be at least 1: got ", s.factor);
  ONESTEP_CHECK(ConfigError,
                !by_wave || (s.low_freq_factor > 0 && s.low_freq_factor < s.high_freq_factor && s.original_context > 0), kOp,
                ": llama3 scaling needs 0 < low_freq_factor < high_freq_factor and original_context > 0: got ",
                s.low_freq_factor, ", ", s.high_freq_factor, " and ", s.original_context);
  if (is_narrow(x.dtype())) return to(rotary_embedding(ops::wide(x), first_position, theta, s), x.dtype());
  return turned(x, {first_position, theta, s, 1});
}

}  // namespace onestep

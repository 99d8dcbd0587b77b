// Activations: each is one formula for its values and one for its gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/operators.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {

namespace formulas = portable::formulas;
using ops::function_of_input;
using ops::number_like;
using ops::select_if;
using ops::Vectorized;

namespace {

// What the formulas mean by these names where they are applied to numbers.
using formulas::exp;
template <std::floating_point T>
ONESTEP_FORMULA T sigmoid(T x) {
  return 1 / (1 + exp(-x));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// scale x where x > 0, else scale alpha (exp(input_scale x) - 1).
Tensor scaled_elu(const char* op, const Tensor& x, double alpha, double scale, double input_scale) {
  const auto values = [=]<class T>(T v) {
    const T y = static_cast<T>(scale * alpha) * formulas::expm1(v * static_cast<T>(input_scale));
    return v <= 0 ? y : static_cast<T>(scale) * v;
  };
  return function_of_input(op, x, Vectorized{values}, [=](auto dy, auto v) {
    // A large exp(v) would make NaN of the 0 it is multiplied by. The second derivative at 0 is 0, as in PyTorch.
    const auto negative = select_if(v < 0, v, 0.0);
    const auto slope = number_like(v, scale * alpha * input_scale), factor = number_like(v, input_scale);
    return select_if(v <= 0, dy * slope * exp(negative * factor), dy * number_like(v, scale));
  });
}

/// As function_of_input; integers, which get no gradient, by the same row function.
template <class Row, class Grad>
Tensor piecewise(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  if (x.is_floating()) return function_of_input(op, x, row, grad);
  ONESTEP_CHECK(DTypeError, x.dtype() != DType::boolean, op, ": a bool tensor (convert with x.to(DType::int64))");
  return ops::map(op, x, row);
}

/// x between the bounds, which get no gradient.
Tensor bounded(const char* op, const Tensor& x, double low, double high) {
  const auto values = [=]<class T>(T v) {
    const T least = static_cast<T>(low), most = static_cast<T>(high);
    return v < least ? least : v > most ? most : v;
  };
  return piecewise(op, x, Vectorized{values}, [=](auto dy, auto v) {  // as PyTorch dy at NaN
    return select_if(v <= number_like(v, low), 0.0, select_if(v >= number_like(v, high), 0.0, dy));
  });
}

}  // namespace

Tensor softplus(const Tensor& x, double beta, double threshold) {
  const auto values = [=]<class T>(T v) {
    const T scale = static_cast<T>(beta), y = formulas::softplus(v * scale) / scale;
    return v * scale > static_cast<T>(threshold) ? v : y;
  };
  return function_of_input("softplus", x, Vectorized{values}, [=](auto dy, auto v) {
    const auto scaled = v * number_like(v, beta);
    return select_if(scaled > number_like(v, threshold), dy, dy * sigmoid(scaled));
  });
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  const auto values = [=]<class T>(T v) { return v > 0 ? v : v * static_cast<T>(negative_slope); };
  return function_of_input("leaky_relu", x, Vectorized{values},
                           [=](auto dy, auto v) { return select_if(v > 0, dy, dy * number_like(v, negative_slope)); });
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  ops::check_floating("prelu", x);
  ops::check_same_dtype("prelu", x, weight);
  const int64_t places = x.dim() > 1 ? x.shape()[1] : 1;
  ONESTEP_CHECK(ShapeError, weight.dim() <= 1 && (weight.numel() == 1 || weight.numel() == places), "prelu: weight ",
                weight.shape(), " does not fit an input of shape ", x.shape(), " (needs 1 or ", places, " numbers)");
  Shape shape = Shape::filled(x.dim(), 1);
  if (x.dim() > 1) shape[1] = weight.numel();
  const Tensor slope = reshape(weight, shape);
  const auto values = []<class T>(T v, T w) {
    const T scaled = ops::times(v, w);
    return v > 0 ? v : scaled;
  };
  return record("prelu", ops::zip("prelu", x, slope, Vectorized{values}), {x, slope}, {x, slope},
                [](const Backward& b) -> Grads {
                  const Tensor &dy = b.grad(), positive = gt(b.saved(0), 0);
                  return {ops::grad_of(b, 0, [&] { return where(positive, dy, dy * b.saved(1)); }),
                          ops::grad_of(b, 1, [&] { return dy * masked_fill(b.saved(0), positive, 0); })};
                });  // dx = dy or dy w, dw = dy x where x <= 0
}

Tensor elu(const Tensor& x, double alpha) { return scaled_elu("elu", x, alpha, 1, 1); }
Tensor selu(const Tensor& x) {
  return scaled_elu("selu", x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}
Tensor celu(const Tensor& x, double alpha) {
  ONESTEP_CHECK(ConfigError, alpha != 0, "celu: alpha must not be 0");
  return scaled_elu("celu", x, alpha, 1, 1 / alpha);
}

Tensor hardtanh(const Tensor& x, double min_value, double max_value) {
  ONESTEP_CHECK(ConfigError, min_value <= max_value, "hardtanh: min_value ", min_value, " is above max_value ", max_value);
  return bounded("hardtanh", x, min_value, max_value);
}
Tensor relu6(const Tensor& x) { return bounded("relu6", x, 0, 6); }

Tensor hardsigmoid(const Tensor& x) {
  const auto values = []<class T>(T v) { return v <= -3 ? T(0) : v >= 3 ? T(1) : (v + 3) / 6; };
  return function_of_input("hardsigmoid", x, Vectorized{values},
                           [](auto dy, auto v) { return select_if((v > -3) & (v < 3), dy / 6, 0.0); });
}
Tensor hardswish(const Tensor& x) {
  const auto values = []<class T>(T v) { return v * (v <= -3 ? T(0) : v >= 3 ? T(6) : v + 3) / 6; };
  return function_of_input("hardswish", x, Vectorized{values}, [](auto dy, auto v) {
    return select_if(v <= -3, 0.0, select_if(v < 3, dy * (v / 3 + number_like(v, 0.5)), dy));
  });
}

Tensor mish(const Tensor& x) {  // tanh(log(1 + e)) = w / (w + 2) with w = e (e + 2) and e = exp(x), which is 1 above 40
  const auto values = []<class T>(T v) {
    const T e = exp(v < 40 ? v : 40), w = e * (e + 2);
    return v * (w / (w + 2));
  };
  return function_of_input("mish", x, Vectorized{values}, [](auto dy, auto v) {
    // As PyTorch NaN at infinity, where e is infinite.
    const auto u = select_if((v > 40) & (v < kInfinity), 40.0, v), e = exp(u), w = e * (e + 2);
    return dy * (w / (w + 2) + u * (4 * (e / (w + 2)) * ((e + 1) / (w + 2))));
  });
}

Tensor logsigmoid(const Tensor& x) {
  const auto values = [](auto v) { return -formulas::softplus(-v); };
  return function_of_input("logsigmoid", x, Vectorized{values}, [](auto dy, auto v) { return dy * sigmoid(-v); });
}

Tensor softsign(const Tensor& x) { return div(x, 1 + abs(x)); }

namespace {
constexpr auto kTanh = [](auto... p) { kernels::tanh(p...); };
}  // namespace

Tensor tanhshrink(const Tensor& input) {
  const auto values = [](auto v, auto t) { return formulas::tanhshrink(v, t); };
  const Tensor x = ops::as_floating(input);
  const Tensor y = ops::zip_floating("tanhshrink", x, x, ops::KernelThenFormula{kTanh, values});
  return record("tanhshrink", y, {x}, {x}, [](const Backward& b) -> Grads {
    const auto slope = [](auto dy, auto t) { return dy * (t * t); };
    if (b.recording()) return {slope(b.grad(), tanh(b.saved(0)))};
    return {ops::zip_floating("tanhshrink", b.grad(), b.saved(0), ops::KernelThenFormula{kTanh, slope})};
  });
}
Tensor hardshrink(const Tensor& x, double lambd) {
  const auto values = [=]<class T>(T v) { return v >= static_cast<T>(-lambd) && v <= static_cast<T>(lambd) ? T(0) : v; };
  return function_of_input("hardshrink", x, Vectorized{values}, [=](auto dy, auto v) {
    return select_if((v >= number_like(v, -lambd)) & (v <= number_like(v, lambd)), 0.0, dy);
  });
}
Tensor softshrink(const Tensor& x, double lambd) {
  ONESTEP_CHECK(ConfigError, lambd >= 0, "softshrink: lambd must be at least 0: got ", lambd);
  const auto values = [=]<class T>(T v) {
    const T most = static_cast<T>(lambd);
    return v > most ? v - most : v < -most ? v + most : v * T(0);  // NaN stays NaN
  };
  return function_of_input("softshrink", x, Vectorized{values}, [=](auto dy, auto v) {
    return select_if((v >= number_like(v, -lambd)) & (v <= number_like(v, lambd)), 0.0, dy);
  });
}
Tensor threshold(const Tensor& x, double threshold, double value) {
  const auto values = [=]<class T>(T v) { return v <= static_cast<T>(threshold) ? static_cast<T>(value) : v; };
  return piecewise("threshold", x, Vectorized{values},
                   [=](auto dy, auto v) { return select_if(v <= number_like(v, threshold), 0.0, dy); });
}

namespace {

/// Calls f(first, second, place, n) for pieces of the halves of a contiguous x along a dim: n elements from `first` on and n
/// from `second` on, whose result is at `place`.
template <class F>
void for_each_half(const ops::Blocks& b, const F& f) {
  constexpr int64_t piece = 1024;
  const int64_t half = b.reduced / 2 * b.inner, pieces = (half + piece - 1) / piece;
  kernels::parallel_for(b.outer * pieces, 4.0 * static_cast<double>(std::min(piece, half)), [=](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t block = i / pieces, at = i % pieces * piece, first = 2 * block * half + at;
      f(first, first + half, block * half + at, std::min(piece, half - at));
    }
  });
}

/// da = dy s, db = da a (1 - s), s being in db.
template <class T>
ONESTEP_EACH_ISA void glu_gradient(const T* a, const T* dy, T* da, T* db, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T s = db[i], d = dy[i] * s;
    da[i] = d;
    db[i] = d * a[i] * (1 - s);
  }
}

Grads glu_grads(const Backward& b, int dim) {
  const Tensor &x = b.saved(0), &dy = b.grad();
  if (b.recording()) {
    const int64_t half = x.size(dim) / 2;
    const Tensor a = narrow(x, dim, 0, half), s = sigmoid(narrow(x, dim, half, half)), da = dy * s;
    return {cat({da, da * a * (1.0 - s)}, dim)};
  }
  const Tensor from = ops::contiguous_values(x), given = ops::contiguous_values(dy);
  Tensor dx = empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), "glu", [&]<class T>() {
    const T *const values = from.data<T>(), *const d = given.data<T>();
    T* const to = dx.mutable_data<T>();
    for_each_half(ops::blocks_of(x.shape(), dim, dim), [=](int64_t first, int64_t second, int64_t place, int64_t n) {
      kernels::sigmoid(values + second, to + second, n);
      glu_gradient(values + first, d + place, to + first, to + second, n);
    });
  });
  return {dx};
}

}  // namespace

Tensor glu(const Tensor& x, int64_t dim) {
  ops::check_floating("glu", x);
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "glu: a rank-0 tensor has no halves");
  const int d = normalize_dim("glu", dim, x.dim());
  Shape shape = x.shape();
  ONESTEP_CHECK(ShapeError, shape[d] % 2 == 0, "glu: needs an even size: dim ", dim, " of shape ", x.shape());
  if (is_narrow(x.dtype())) return to(glu(ops::wide(x), dim), x.dtype());
  shape[d] /= 2;
  const Tensor from = ops::contiguous_values(x);
  Tensor y = empty(shape, x.dtype());
  dispatch_floating(x.dtype(), "glu", [&]<class T>() {
    const T* const values = from.data<T>();
    T* const to = y.mutable_data<T>();
    for_each_half(ops::blocks_of(x.shape(), d, d), [=](int64_t first, int64_t second, int64_t place, int64_t n) {
      kernels::sigmoid(values + second, to + place, n);
      kernels::mul(values + first, 1, to + place, 1, to + place, n);
    });
  });
  return record("glu", y, {x}, {x}, [d](const Backward& b) { return glu_grads(b, d); });
}

}  // namespace onestep

// Draws by parameters, and the gradients of what is drawn by its quantile.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/creation.h"
#include "autograd/gamma_formulas.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/incomplete_gamma.h"
#include "autograd/ops_draws.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/random/rejection.h"

namespace onestep {
namespace {

/// As PyTorch never 0, so that proportions of draws are none of 0 / 0.
template <class T>
T positive_gamma(T alpha, Generator& g) {
  return std::max(std::numeric_limits<T>::min(), draw_gamma(alpha, g));
}

/// Throws unless all of x are finite and at least 0.
void check_parameters(const char* op, const char* name, const Tensor& x) {
  dispatch_floating(x.dtype(), op, [&]<class T>() {
    const T* const v = x.data<T>();
    const T* const bad = std::find_if(v, v + x.numel(), [](T each) { return !(each >= 0 && std::isfinite(each)); });
    ONESTEP_CHECK(ConfigError, bad == v + x.numel(), op, ": ", name, " must be finite and at least 0: got ", *bad);
  });
}

}  // namespace

Tensor standard_gamma(const Tensor& alpha, Generator& generator) {
  constexpr const char* op = "standard_gamma";
  const Tensor x = ops::contiguous_values(ops::widened(alpha));
  check_parameters(op, "alpha", x);
  Tensor y = empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), op, [&]<class T>() {
    std::transform(x.data<T>(), x.data<T>() + x.numel(), y.mutable_data<T>(),
                   [&](T a) { return positive_gamma(a, generator); });
  });
  y = to(y, alpha.dtype());
  return record(op, y, {alpha}, {alpha, y}, [](const Backward& b) -> Grads {
    const Tensor slope =
        ops::zip(op, b.saved(0).values(), b.saved(1).values(), ops::Loop{[](auto a, auto v) {
                   return static_cast<decltype(a)>(ops::gamma_slope(static_cast<double>(a), static_cast<double>(v)));
                 }});
    return {mul(b.grad(), b.recording() ? ops::without_derivative(op, slope, b.saved(0)) : slope)};
  });
}

Tensor sample_dirichlet(const Tensor& alpha, Generator& generator) {
  constexpr const char* op = "sample_dirichlet";
  ONESTEP_CHECK(ShapeError, alpha.dim() > 0, op, ": alpha needs a last dim of categories");
  const Tensor x = ops::contiguous_values(ops::widened(alpha));
  check_parameters(op, "alpha", x);
  Tensor gammas = empty(x.shape(), DType::float64);
  dispatch_floating(x.dtype(), op, [&]<class T>() {
    std::transform(x.data<T>(), x.data<T>() + x.numel(), gammas.mutable_data<double>(),
                   [&](T a) { return positive_gamma(static_cast<double>(a), generator); });
  });
  Tensor y = to(div(gammas, sum(gammas, {-1}, true)), x.dtype());
  dispatch_floating(x.dtype(), op, [&]<class T>() {
    const T least = std::numeric_limits<T>::min(), most = std::nextafter(T(1), T(0));
    T* const v = y.mutable_data<T>();
    std::transform(v, v + y.numel(), v, [=](T each) { return std::min(std::max(each, least), most); });
  });
  y = to(y, alpha.dtype());
  return record(op, y, {alpha}, {alpha, y}, [](const Backward& b) -> Grads {
    const Tensor a = ops::widened(b.saved(0).values()), v = ops::widened(b.saved(1).values()), total = sum(a, {-1}, true);
    Tensor slope = empty(a.shape(), a.dtype());
    const Tensor each = contiguous(a), drawn = contiguous(v), sums = contiguous(expand(total, a.shape()));
    dispatch_floating(a.dtype(), op, [&]<class T>() {
      const T *const pa = each.data<T>(), *const pv = drawn.data<T>(), *const ps = sums.data<T>();
      T* const out = slope.mutable_data<T>();
      kernels::parallel_for(slope.numel(), 1000, [=](int64_t i, int64_t end) {
        for (; i < end; ++i)
          out[i] = static_cast<T>(
              ops::dirichlet_slope(static_cast<double>(pa[i]), static_cast<double>(ps[i]), static_cast<double>(pv[i])));
      });
    });
    const Tensor& dy = b.grad();
    slope = to(slope, dy.dtype());
    return {mul(b.recording() ? ops::without_derivative(op, slope, b.saved(0)) : slope,
                sub(dy, sum(mul(b.saved(1), dy), {-1}, true)))};
  });
}

Tensor poisson(const Tensor& rate, Generator& generator) {
  const Tensor x = ops::contiguous_values(ops::widened(rate));
  check_parameters("poisson", "rate", x);
  Tensor y = empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), "poisson", [&]<class T>() {
    std::transform(x.data<T>(), x.data<T>() + x.numel(), y.mutable_data<T>(),
                   [&](T r) { return static_cast<T>(draw_poisson(static_cast<double>(r), generator)); });
  });
  return to(y, rate.dtype());
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator& generator) {
  ops::check_same_dtype("binomial", count, prob);
  const Shape shape = broadcast_shapes("binomial", count.shape(), prob.shape());
  const auto each_of = [&](const Tensor& x) { return contiguous(expand(ops::widened(x.values()), shape)); };
  const Tensor n = each_of(count), p = each_of(prob);
  check_parameters("binomial", "count", n);
  Tensor y = empty(shape, n.dtype());
  dispatch_floating(n.dtype(), "binomial", [&]<class T>() {
    std::transform(n.data<T>(), n.data<T>() + n.numel(), p.data<T>(), y.mutable_data<T>(),
                   [&](T each, T probability) { return draw_binomial(each, probability, generator); });
  });
  return to(y, count.dtype());
}

}  // namespace onestep

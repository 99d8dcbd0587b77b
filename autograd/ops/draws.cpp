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

/// Throws unless all of x are finite and at least 0.
void check_parameters(const char* op, const char* name, const Tensor& x) {
  dispatch_floating(x.dtype(), op, [&]<class T>() {
    const T* const v = x.data<T>();
    const T* const bad = std::find_if(v, v + x.numel(), [](T each) { return !(each >= 0 && std::isfinite(each)); });
    ONESTEP_CHECK(ConfigError, bad == v + x.numel(), op, ": ", name, " must be finite and at least 0: got ", *bad);
  });
}

/// A draw by each of `parameters`, in its dtype: draw(parameters, y, n).
template <class F>
Tensor drawn_by(const char* op, const char* name, const Tensor& parameters, const F& draw) {
  const Tensor x = ops::contiguous_values(ops::widened(parameters));
  check_parameters(op, name, x);
  Tensor y = empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), op, [&]<class T>() { draw(x.data<T>(), y.mutable_data<T>(), x.numel()); });
  return to(y, parameters.dtype());
}

/// As PyTorch's never 0, so that proportions of draws are none of 0 / 0.
Tensor gamma_drawn_by(const char* op, const Tensor& alpha, Generator& g) {
  return drawn_by(op, "alpha", alpha, [&]<class T>(const T* a, T* y, int64_t n) {
    draw_gamma(a, y, n, g);
    std::transform(y, y + n, y, [](T v) { return std::max(std::numeric_limits<T>::min(), v); });
  });
}

}  // namespace

Tensor standard_gamma(const Tensor& alpha, Generator& generator) {
  constexpr const char* op = "standard_gamma";
  const Tensor y = gamma_drawn_by(op, alpha, generator);
  return record(op, y, {alpha}, {alpha, y}, [](const Backward& b) -> Grads {
    const Tensor slope = ops::zip_floating(op, b.saved(0).values(), b.saved(1).values(), ops::InDouble<ops::GammaSlope>{});
    return {mul(b.grad(), ops::slope_in(b, op, slope, b.saved(0)))};
  });
}

Tensor sample_dirichlet(const Tensor& alpha, Generator& generator) {
  constexpr const char* op = "sample_dirichlet";
  ONESTEP_CHECK(ShapeError, alpha.dim() > 0, op, ": alpha needs a last dim of categories");
  ops::check_floating(op, alpha);
  const Tensor gammas = gamma_drawn_by(op, to(alpha.values(), DType::float64), generator);
  Tensor y = to(div(gammas, sum(gammas, {-1}, true)), compute_type(alpha.dtype()));
  dispatch_floating(y.dtype(), op, [&]<class T>() { y = clamp(y, std::numeric_limits<T>::min(), std::nextafter(T(1), T(0))); });
  y = to(y, alpha.dtype());
  return record(op, y, {alpha}, {alpha, y}, [](const Backward& b) -> Grads {
    const Tensor a = ops::widened(b.saved(0).values()), v = ops::widened(b.saved(1).values()), total = sum(a, {-1}, true);
    Tensor slope = empty(a.shape(), a.dtype());
    const Tensor each = contiguous(a), drawn = contiguous(v), sums = contiguous(expand(total, a.shape()));
    dispatch_floating(a.dtype(), op, [&]<class T>() {
      const T *const pa = each.data<T>(), *const pv = drawn.data<T>(), *const ps = sums.data<T>();
      T* const out = slope.mutable_data<T>();
      kernels::parallel_for(slope.numel(), 1000, [=](int64_t i, int64_t end) {
        vector_loop([](double shape, double sum, double x) { return ops::dirichlet_slope<T>(shape, sum, x); }, out + i, end - i,
                    pa + i, ps + i, pv + i);
      });
    });
    const Tensor& dy = b.grad();
    return {mul(ops::slope_in(b, op, to(slope, dy.dtype()), b.saved(0)), sub(dy, sum(mul(b.saved(1), dy), {-1}, true)))};
  });
}

Tensor poisson(const Tensor& rate, Generator& generator) {
  return drawn_by("poisson", "rate", rate, [&]<class T>(const T* r, T* y, int64_t m) { draw_poisson(r, y, m, generator); });
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator& generator) {
  ops::check_same_dtype("binomial", count, prob);
  const Shape shape = broadcast_shapes("binomial", count.shape(), prob.shape());
  const auto each_of = [&](const Tensor& x) { return contiguous(expand(ops::widened(x.values()), shape)); };
  const Tensor n = each_of(count), p = each_of(prob);
  check_parameters("binomial", "count", n);
  Tensor y = empty(shape, n.dtype());
  dispatch_floating(n.dtype(), "binomial",
                    [&]<class T>() { draw_binomial(n.data<T>(), p.data<T>(), y.mutable_data<T>(), n.numel(), generator); });
  return to(y, count.dtype());
}

}  // namespace onestep

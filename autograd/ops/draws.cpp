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

/// A draw by each of `parameters`, in its dtype.
template <class F>
Tensor drawn_by(const char* op, const char* name, const Tensor& parameters, const F& draw) {
  const Tensor x = ops::contiguous_values(ops::widened(parameters));
  check_parameters(op, name, x);
  Tensor y = empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), op, [&]<class T>() {
    std::transform(x.data<T>(), x.data<T>() + x.numel(), y.mutable_data<T>(), [&](T v) { return static_cast<T>(draw(v)); });
  });
  return to(y, parameters.dtype());
}

}  // namespace

Tensor standard_gamma(const Tensor& alpha, Generator& generator) {
  constexpr const char* op = "standard_gamma";
  const Tensor y = drawn_by(op, "alpha", alpha, [&](auto a) { return positive_gamma(a, generator); });
  return record(op, y, {alpha}, {alpha, y}, [](const Backward& b) -> Grads {
    const Tensor slope = ops::in_double(op, b.saved(0).values(), b.saved(1).values(), ops::gamma_slope);
    return {mul(b.grad(), ops::slope_in(b, op, slope, b.saved(0)))};
  });
}

Tensor sample_dirichlet(const Tensor& alpha, Generator& generator) {
  constexpr const char* op = "sample_dirichlet";
  ONESTEP_CHECK(ShapeError, alpha.dim() > 0, op, ": alpha needs a last dim of categories");
  ops::check_floating(op, alpha);
  const auto draw = [&](auto a) { return positive_gamma(a, generator); };
  const Tensor gammas = drawn_by(op, "alpha", to(alpha.values(), DType::float64), draw);
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
        for (; i < end; ++i)
          out[i] = static_cast<T>(
              ops::dirichlet_slope(static_cast<double>(pa[i]), static_cast<double>(ps[i]), static_cast<double>(pv[i])));
      });
    });
    const Tensor& dy = b.grad();
    return {mul(ops::slope_in(b, op, to(slope, dy.dtype()), b.saved(0)), sub(dy, sum(mul(b.saved(1), dy), {-1}, true)))};
  });
}

Tensor poisson(const Tensor& rate, Generator& generator) {
  return drawn_by("poisson", "rate", rate, [&](auto r) { return draw_poisson(static_cast<double>(r), generator); });
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

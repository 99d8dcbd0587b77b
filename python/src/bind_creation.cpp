// New tensors: filled, counted, random.
#include <algorithm>
#include <numeric>
#include <vector>

#include "autograd/creation.h"
#include "autograd/random/random_fill.h"
#include "python/src/op.h"

namespace onestep::python {
namespace {

using T = const Tensor&;
using D = std::optional<DType>;

#define OPTIONS "dtype? dtype=None, any layout=None, any device=None, bool requires_grad=False, bool pin_memory=False"
#define FACTORY ", *, " OPTIONS ")"
#define LIKE ", *, " OPTIONS ", any memory_format=None)"
#define RANDOM ", *, Generator? generator=None, " OPTIONS ")"
#define RANDOM_LIKE ", *, Generator? generator=None, " OPTIONS ", any memory_format=None)"

Tensor leaf(Tensor x, PyObject* device, bool requires_grad) {
  if (device && device != Py_None) check_device(device);
  if (requires_grad) x.requires_grad_();
  return x;
}

/// NAME(*size) and NAME_like(x).
#define ONESTEP_BIND(NAME)                                                                                          \
  function(                                                                                                         \
      #NAME "(int[] size" FACTORY, +[](Shape size, D dtype, PyObject*, PyObject* device, bool grad, bool) {         \
        return leaf(onestep::NAME(size, dtype.value_or(default_dtype())), device, grad);                            \
      });                                                                                                           \
  function(                                                                                                         \
      #NAME "_like(Tensor input" LIKE, +[](T x, D dtype, PyObject*, PyObject* device, bool grad, bool, PyObject*) { \
        return leaf(onestep::NAME(x.shape(), dtype.value_or(x.dtype())), device, grad);                             \
      });                                                                                                           \
  method(                                                                                                           \
      "new_" #NAME "(Tensor input, int[] size" FACTORY,                                                             \
      +[](T x, Shape size, D dtype, PyObject*, PyObject* device, bool grad, bool) {                                 \
        return leaf(onestep::NAME(size, dtype.value_or(x.dtype())), device, grad);                                  \
      });
#define ONESTEP_BIND_RANDOM(NAME)                                                                                        \
  function(                                                                                                              \
      #NAME "(int[] size" RANDOM, +[](Shape size, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool) { \
        return leaf(onestep::NAME(size, g, dtype.value_or(default_dtype())), device, grad);                              \
      });                                                                                                                \
  function(                                                                                                              \
      #NAME "_like(Tensor input" RANDOM_LIKE,                                                                            \
      +[](T x, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool, PyObject*) {                         \
        return leaf(NAME##_into(empty_in_order_of(x, dtype.value_or(x.dtype())), g), device, grad);                      \
      });

/// Of start, end and step of a range: int64 where all are integers.
DType counted_dtype(Scalar a, Scalar b, Scalar c) {
  return implied_dtype(promote_types(DType::int64, promote_types(a.dtype, promote_types(b.dtype, c.dtype))));
}

Tensor integers(int64_t low, int64_t high, const Shape& size, Generator& g, D dtype) {
  const Tensor drawn = randint(low, high, size, g);
  return dtype ? to(drawn, *dtype) : drawn;
}

/// The dims of x by falling strides, in which order PyTorch fills it.
Shape memory_order(T x) {
  std::vector<int64_t> order(static_cast<size_t>(x.dim()));
  std::iota(order.begin(), order.end(), 0);
  const auto stride = [&](int64_t d) { return x.strides()[static_cast<int>(d)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
  return order;
}
Tensor in_memory_order(T x) { return x.is_contiguous() ? x : permute(x, memory_order(x)); }

/// Without elements yet, in the memory order of x (torch.empty_like).
Tensor empty_in_order_of(T x, DType dtype) {
  if (x.is_contiguous()) return empty(x.shape(), dtype);
  const Shape order = memory_order(x);
  Shape inverse = order;
  for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  return permute(empty(in_memory_order(x).shape(), dtype), inverse);
}

/// Fills x, in its dtype, from `fill(values)`: at once where it is contiguous, else a few elements at a time, as PyTorch draws
/// for what has strides.
template <class F>
Tensor drawn_into(T x, const char* op, F fill) {
  constexpr size_t kFew = 8;
  const bool at_once = x.is_contiguous();
  const Tensor target = in_memory_order(x);
  Tensor rows = at_once ? x : empty(target.shape(), x.dtype());
  dispatch_random(x.dtype(), op, [&]<class E>() {
    const std::span<E> all(rows.mutable_data<E>(), static_cast<size_t>(x.numel()));
    const size_t step = at_once ? std::max<size_t>(all.size(), 1) : kFew;
    for (size_t i = 0; i < all.size(); i += step) fill(all.subspan(i, std::min(step, all.size() - i)));
  });
  if (!at_once) copy_(target, rows);
  return x;
}

/// Writes what `draw(shape)` gives for x in its memory order.
template <class F>
Tensor copied_into(T x, const F& draw) {
  const Tensor target = in_memory_order(x);
  copy_(target, draw(target.shape()));
  return x;
}

Tensor bernoulli_of(T p, Generator& g) {
  if (is_half(p.dtype())) return to(bernoulli_of(to(p.detach(), DType::float32), g), p.dtype());
  Tensor result = empty(p.shape(), p.dtype());
  const Tensor rows = contiguous(p.detach());
  std::unique_ptr<bool[]> hits(new bool[static_cast<size_t>(p.numel())]);
  dispatch_floating(p.dtype(), "bernoulli", [&]<class E>() {
    const auto count = static_cast<size_t>(p.numel());
    fill_bernoulli(std::span<bool>(hits.get(), count), std::span<const E>(rows.data<E>(), count), g);
    E* out = result.mutable_data<E>();
    for (size_t i = 0; i < count; ++i) out[i] = hits[i] ? E(1) : E(0);
  });
  return result;
}

Tensor bernoulli_into(T x, double p, Generator& g) {
  return copied_into(x, [&](const Shape& shape) {
    Tensor hits = empty(shape, DType::boolean);
    fill_bernoulli(std::span<bool>(hits.mutable_data<bool>(), static_cast<size_t>(x.numel())), p, g);
    return hits;
  });
}
Tensor rand_into(T x, Generator& g) {
  return drawn_into(x, "rand_like", [&](auto out) { fill_uniform(out, 0, 1, g); });
}
Tensor randn_into(T x, Generator& g) {
  return drawn_into(x, "randn_like", [&](auto out) { fill_normal(out, 0, 1, g); });
}

/// Whole numbers of the dtype's range.
Tensor random_into(T x, Generator& g) {
  return copied_into(x, [&](const Shape& shape) {
    Tensor drawn = empty(shape, x.dtype());
    const auto fill = [&]<class E>() { fill_random(std::span<E>(drawn.mutable_data<E>(), static_cast<size_t>(x.numel())), g); };
    if (x.dtype() == DType::int32)
      fill.template operator()<int32_t>();
    else if (x.dtype() == DType::uint8)
      fill.template operator()<uint8_t>();
    else
      dispatch(x.dtype(), fill);
    return drawn;
  });
}

/// mean + std z in this dtype, without a gradient, as in PyTorch.
template <class Mean, class Std>
Tensor normal_of(const Mean& mean, const Std& std, const Shape& shape, DType dtype, Generator& g) {
  const NoGradGuard no_grad;
  return to(add(mul(randn(shape, g, dtype), std), mean), dtype);
}

}  // namespace

void bind_creation() {
  ONESTEP_BIND(zeros)
  ONESTEP_BIND(ones)
  ONESTEP_BIND(empty)
  function(
      "full(int[] size, Scalar fill_value" FACTORY,
      +[](Shape size, Scalar value, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(full(size, value, dtype.value_or(implied_dtype(value.dtype))), device, grad);
      });
  function(
      "scalar_tensor(Scalar s" FACTORY, +[](Scalar value, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(full(Shape{}, value, dtype.value_or(default_dtype())), device, grad);
      });
  function(
      "full_like(Tensor input, Scalar fill_value" LIKE,
      +[](T x, Scalar value, D dtype, PyObject*, PyObject* device, bool grad, bool, PyObject*) {
        return leaf(full(x.shape(), value, dtype.value_or(x.dtype())), device, grad);
      });
  method(
      "new_full(Tensor input, int[] size, Scalar fill_value" FACTORY,
      +[](T x, Shape size, Scalar value, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(full(size, value, dtype.value_or(x.dtype())), device, grad);
      });
  function(
      "arange(Scalar end" FACTORY, +[](Scalar end, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(arange(0, end, 1, dtype.value_or(counted_dtype(0, end, 1))), device, grad);
      });
  function(
      "arange(Scalar start, Scalar end, Scalar step=1" FACTORY,
      +[](Scalar start, Scalar end, Scalar step, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(arange(start, end, step, dtype.value_or(counted_dtype(start, end, step))), device, grad);
      });
  function(
      "linspace(float start, float end, int steps" FACTORY,
      +[](double start, double end, int64_t steps, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(linspace(start, end, steps, dtype.value_or(default_dtype())), device, grad);
      });
  function(
      "logspace(float start, float end, int steps, float base=10.0" FACTORY,
      +[](double start, double end, int64_t steps, double base, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(logspace(start, end, steps, base, dtype.value_or(default_dtype())), device, grad);
      });
  function(
      "eye(int n, int? m=None" FACTORY,
      +[](int64_t n, std::optional<int64_t> m, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(eye(n, m.value_or(n), dtype.value_or(default_dtype())), device, grad);
      });
  function(
      "tril_indices(int row, int col, int offset=0, *, dtype? dtype=None, any device=None)",
      +[](int64_t rows, int64_t cols, int64_t offset, D dtype, PyObject*) {
        return tril_indices(rows, cols, offset, dtype.value_or(DType::int64));
      });
  function(
      "triu_indices(int row, int col, int offset=0, *, dtype? dtype=None, any device=None)",
      +[](int64_t rows, int64_t cols, int64_t offset, D dtype, PyObject*) {
        return triu_indices(rows, cols, offset, dtype.value_or(DType::int64));
      });
}

void bind_random() {
  ONESTEP_BIND_RANDOM(rand)
  ONESTEP_BIND_RANDOM(randn)
  function(
      "randint(int high, int[] size" RANDOM,
      +[](int64_t high, Shape size, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(integers(0, high, size, g, dtype), device, grad);
      });
  function(
      "randint(int low, int high, int[] size" RANDOM,
      +[](int64_t low, int64_t high, Shape size, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        return leaf(integers(low, high, size, g, dtype), device, grad);
      });
  function(
      "randint_like(Tensor input, int high" RANDOM_LIKE,
      +[](T x, int64_t high, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool, PyObject*) {
        return leaf(integers(0, high, x.shape(), g, dtype.value_or(x.dtype())), device, grad);
      });
  function(
      "randint_like(Tensor input, int low, int high" RANDOM_LIKE,
      +[](T x, int64_t low, int64_t high, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool, PyObject*) {
        return leaf(integers(low, high, x.shape(), g, dtype.value_or(x.dtype())), device, grad);
      });
  function(
      "randperm(int n" RANDOM, +[](int64_t n, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        const Tensor order = randperm(n, g);
        return leaf(dtype ? to(order, *dtype) : order, device, grad);
      });
  both(
      "multinomial(Tensor input, int num_samples, bool replacement=False, *, Generator? generator=None)",
      +[](T weights, int64_t count, bool replacement, Generator& g) {
        return onestep::multinomial(weights, count, replacement, g);
      });
  function("_standard_gamma(Tensor input, Generator? generator=None)", standard_gamma);
  function("_sample_dirichlet(Tensor input, Generator? generator=None)", sample_dirichlet);
  function("poisson(Tensor input, Generator? generator=None)", poisson);
  function("binomial(Tensor count, Tensor prob, Generator? generator=None)", binomial);
  both("bernoulli(Tensor input, *, Generator? generator=None)", bernoulli_of);
  both(
      "bernoulli(Tensor input, float p, *, Generator? generator=None)",
      +[](T x, double p, Generator& g) { return bernoulli_into(empty_in_order_of(x, x.dtype()), p, g); });
  method("bernoulli_(Tensor input, float p=0.5, *, Generator? generator=None)", bernoulli_into);
  method(
      "bernoulli_(Tensor input, Tensor p, *, Generator? generator=None)",
      +[](T x, T p, Generator& g) { return copy_(x, bernoulli_of(expand(p, x.shape()), g)); });
  method(
      "normal_(Tensor input, float mean=0, float std=1, *, Generator? generator=None)",
      +[](T x, double mean, double std, Generator& g) {
        return drawn_into(x, "normal_", [&](auto out) { fill_normal(out, mean, std, g); });
      });
  method(
      "uniform_(Tensor input, float from=0, float to=1, *, Generator? generator=None)",
      +[](T x, double from, double to, Generator& g) {
        return drawn_into(x, "uniform_", [&](auto out) { fill_uniform(out, from, to, g); });
      });
  method(
      "exponential_(Tensor input, float lambd=1, *, Generator? generator=None)", +[](T x, double rate, Generator& g) {
        return copied_into(x, [&](const Shape& shape) {
          Tensor drawn = empty(shape, compute_type(x.dtype()));  // halves are rounded when they are written
          dispatch_floating(drawn.dtype(), "exponential_", [&]<class E>() {
            fill_exponential(std::span<E>(drawn.mutable_data<E>(), static_cast<size_t>(x.numel())), rate, g);
          });
          return drawn;
        });
      });
  method("random_(Tensor input, *, Generator? generator=None)", random_into);
  method(
      "random_(Tensor input, int to, *, Generator? generator=None)", +[](T x, int64_t to, Generator& g) {
        return copied_into(x, [&](const Shape& shape) { return randint(0, to, shape, g); });
      });
  method(
      "random_(Tensor input, int from, int? to=None, *, Generator? generator=None)",
      +[](T x, int64_t from, std::optional<int64_t> to, Generator& g) {
        return copied_into(x, [&](const Shape& shape) { return randint(to ? from : 0, to.value_or(from), shape, g); });
      });
  function(
      "normal(Tensor mean, Tensor std, *, Generator? generator=None)", +[](T mean, T std, Generator& g) {
        return normal_of(mean, std, broadcast_shapes("normal", mean.shape(), std.shape()), mean.dtype(), g);
      });
  function(
      "normal(Tensor mean, float std=1, *, Generator? generator=None)",
      +[](T mean, double std, Generator& g) { return normal_of(mean, std, mean.shape(), mean.dtype(), g); });
  function(
      "normal(float mean, Tensor std, *, Generator? generator=None)",
      +[](double mean, T std, Generator& g) { return normal_of(mean, std, std.shape(), std.dtype(), g); });
  function(
      "normal(float mean, float std, int[] size" RANDOM,
      +[](double mean, double std, Shape size, Generator& g, D dtype, PyObject*, PyObject* device, bool grad, bool) {
        Tensor x = empty(size, dtype.value_or(default_dtype()));
        return leaf(drawn_into(x, "normal", [&](auto out) { fill_normal(out, mean, std, g); }), device, grad);
      });
}
#undef ONESTEP_BIND

}  // namespace onestep::python

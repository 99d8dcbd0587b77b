// Conversion between dtypes and the ops that write into their first operand.
#include "autograd/ops/elementwise.h"

namespace onestep {
namespace {

/// `source` as it can be read while x is written: a copy when both share memory in different arrangements.
Tensor readable_beside(const Tensor& x, const Tensor& source) {
  if (!source.shares_storage(x)) return source;
  const bool same = source.offset() == x.offset() && source.strides() == x.strides() && source.shape() == x.shape();
  if (same) return source;
  Tensor copy = empty(source.shape(), source.dtype());
  ops::copy_values(copy, source);
  return copy;
}

/// f(element) for every element, to be changed, x of any strides.
template <class T, class F>
void update(Tensor& x, const F& f) {
  T* to = x.mutable_data<T>();
  ops::for_each_row<1>(x.shape(), {x.strides()}, [&](const auto& at, int64_t n, const auto& steps) {
    T* row = to + at[0];
    kernels::parallel_for(n, ops::kLoopCost, [=, step = steps[0]](int64_t i, int64_t end) {
      for (; i < end; ++i) f(row[i * step]);
    });
  });
}

/// Refuses an in-place result that x's dtype cannot hold: a float in an int64, a number in a bool.
void check_result_dtype(const char* op, const Tensor& x, DType result) {
  const bool fits = x.is_floating() || result == x.dtype() || result == DType::boolean;
  ONESTEP_CHECK(DTypeError, fits, op, ": a result of dtype ", result, " does not fit a tensor of dtype ", x.dtype(),
                " (use the op without trailing _)");
}

}  // namespace

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty(x.shape(), dtype);
  ops::copy_values(y, x);
  if (!is_floating(dtype)) return y;
  return record("to", y, {x}, {}, [from = x.dtype()](const Backward& b) -> Grads { return {to(b.grad(), from)}; });
}

Tensor& copy_(Tensor& x, const Tensor& source) {
  x.check_writable("copy_");
  if (x.is_floating() && grad_enabled()) detail::check_history("copy_", source);
  const Tensor values = ops::expand_values("copy_", source, x.shape());
  if (detail::should_record({x, source}) && x.is_floating()) {
    const Tensor result =
        record("copy_", to(values, x.dtype()), {x, source}, {}, [dtype = source.dtype()](const Backward& b) -> Grads {
          return {b.needs(0) ? zeros_like(b.grad()) : Tensor(),
                  b.needs(1) ? to(ops::sum_to(b.grad(), b.input_shape(1)), dtype) : Tensor()};
        });
    return assign_in_place("copy_", x, result);
  }
  ops::copy_values(x, readable_beside(x, values));
  return x;
}

Tensor& fill_(Tensor& x, Scalar value) {
  x.check_writable("fill_");
  ops::check_fits("fill_", value, x.dtype());
  if (detail::should_record({x})) {
    const Tensor result =
        record("fill_", full_like(x, value), {x}, {}, [](const Backward& b) -> Grads { return {zeros_like(b.grad())}; });
    return assign_in_place("fill_", x, result);
  }
  dispatch(x.dtype(), [&]<class T>() { update<T>(x, [v = ops::element<T>(value)](T& element) { element = v; }); });
  return x;
}

Tensor& add_(Tensor& x, const Tensor& y) {
  x.check_writable("add_");
  if (grad_enabled()) detail::check_history("add_", y);
  check_result_dtype("add_", x, ops::promote(x, y));
  const Tensor addend = to(y, x.dtype());
  const Tensor values = ops::expand_values("add_", addend, x.shape());
  if (detail::should_record({x, addend})) return assign_in_place("add_", x, add(x, addend));
  const Tensor other = readable_beside(x, values);
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = other.data<T>();
    T* to = x.mutable_data<T>();
    ops::for_each_row<2>(x.shape(), {x.strides(), other.strides()}, [=](const auto& at, int64_t n, const auto& steps) {
      T* row = to + at[0];
      const T* source = from + at[1];
      if constexpr (std::is_floating_point_v<T>) {
        if (steps[0] == 1 && steps[1] <= 1) return kernels::add(row, 1, source, steps[1], row, n);
      }
      for (int64_t i = 0; i < n; ++i) row[i * steps[0]] = ops::plus(row[i * steps[0]], source[i * steps[1]]);
    });
  });
  return x;
}

Tensor& mul_(Tensor& x, Scalar factor) {
  x.check_writable("mul_");
  check_result_dtype("mul_", x, ops::promote(x, factor));
  if (detail::should_record({x})) return assign_in_place("mul_", x, mul(x, factor));
  dispatch(x.dtype(),
           [&]<class T>() { update<T>(x, [v = ops::element<T>(factor)](T& element) { element = ops::times(element, v); }); });
  return x;
}

}  // namespace onestep

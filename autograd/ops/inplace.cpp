// Conversion between dtypes and the ops that write into their first operand.
#include "autograd/ops/elementwise.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {

using ops::as_operand;
using ops::check_result_dtype;

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

/// x = f(x, y) row by row, y of x's shape and dtype. `kernel` takes rows of x that lie together.
template <class K, class F>
void write_rows(Tensor& x, const Tensor& y, const K& kernel, const F& f) {
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = y.data<T>();
    T* to = x.mutable_data<T>();
    ops::for_each_row<2>(x.shape(), {x.strides(), y.strides()}, [=](const auto& at, int64_t n, const auto& steps) {
      T* row = to + at[0];
      const T* source = from + at[1];
      if constexpr (std::is_floating_point_v<T>) {
        if (steps[0] == 1 && steps[1] <= 1) return kernel(row, 1, source, steps[1], row, n);
      }
      kernels::parallel_for(n, ops::kLoopCost, [=](int64_t i, int64_t end) {
        for (; i < end; ++i) row[i * steps[0]] = static_cast<T>(f(row[i * steps[0]], source[i * steps[1]]));
      });
    });
  });
}

using BinaryOp = Tensor (*)(const Tensor&, const Tensor&);

/// x = op(x, y) in place: by way of the graph where it is recorded, else by `write`, which takes y in x's shape and dtype.
Tensor in_place(const char* name, Tensor x, const Tensor& y, BinaryOp op, void (*write)(Tensor&, const Tensor&)) {
  x.check_writable(name);
  const bool as_it_is = is_half(x.dtype()) && (y.is_floating() || (x.dim() > 0 && y.dim() == 0));  // rounded once, in the end
  const Tensor operand = as_it_is ? y : to(y, x.dtype());
  const Tensor values = ops::expand_values(name, operand, x.shape());
  if (detail::should_record({x, operand}) || is_narrow(x.dtype()))  // the gradient of y may need x as it was
    return assign_in_place(name, x, to(op(operand.requires_grad() ? ops::as_it_was(x) : x, operand), x.dtype()));
  write(x, readable_beside(x, values));
  return x;
}

}  // namespace

void ops::check_result_dtype(const char* op, const Tensor& x, DType result) {
  const bool fits = x.is_floating() || result == DType::boolean || (x.dtype() != DType::boolean && !is_floating(result));
  ONESTEP_CHECK(DTypeError, fits, op, ": a result of dtype ", result, " does not fit a tensor of dtype ", x.dtype(),
                " (use the op without trailing _)");
}

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty(x.shape(), dtype);
  ops::copy_values(y, x);
  if (!is_floating(dtype)) return y;
  return record("to", y, {x}, {}, [from = x.dtype()](const Backward& b) -> Grads { return {to(b.grad(), from)}; });
}

namespace {

/// Whether both are the same elements in the same memory.
bool same_elements(const Tensor& a, const Tensor& b) {
  return a.shares_storage(b) && a.dtype() == b.dtype() && a.offset() == b.offset() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

}  // namespace

Tensor copy_(const Tensor& target, const Tensor& source) {
  for (int d = 0; same_elements(target, source) && d < target.dim(); ++d)  // nothing to write, even where it was expanded
    if (target.strides()[d] == 0 && target.shape()[d] > 1)
      return copy_(narrow(target, d, 0, 1), narrow(source, d, 0, 1)), target;
  Tensor x = target;
  x.check_writable("copy_");
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

Tensor fill_(const Tensor& target, Scalar value) {
  for (int d = 0; d < target.dim(); ++d)  // elements that are the same memory are filled once
    if (target.strides()[d] == 0 && target.shape()[d] > 1) {
      ONESTEP_CHECK(GradError, !detail::should_record({target}) || !target.is_leaf(),
                    "fill_: a leaf that requires grad cannot be changed in place while recording (wrap the change in "
                    "NoGradGuard)");
      return fill_(narrow(target, d, 0, 1), value), target;
    }
  Tensor x = target;
  x.check_writable("fill_");
  ops::check_fits("fill_", value, x.dtype());
  if (detail::should_record({x})) {
    const Tensor result =
        record("fill_", full_like(x, value), {x}, {}, [](const Backward& b) -> Grads { return {zeros_like(b.grad())}; });
    return assign_in_place("fill_", x, result);
  }
  dispatch_size(x.dtype(), [&]<class T>() {
    T* to = ops::mutable_units<T>(x);
    const T bits = ops::element_bits<T>(value, x.dtype());
    ops::for_each_row<1>(x.shape(), {x.strides()}, [&](const auto& at, int64_t n, const auto& steps) {
      T* row = to + at[0];
      kernels::parallel_for(n, ops::kLoopCost, [=, step = steps[0]](int64_t i, int64_t end) {
        for (; i < end; ++i) row[i * step] = bits;
      });
    });
  });
  return x;
}

namespace {

/// Halves are multiplied and divided by a number as it is, which is not rounded to one of them.
Tensor assign_result(const char* name, Tensor x, const Tensor& result) {
  x.check_writable(name);
  return assign_in_place(name, x, result);
}

}  // namespace

Tensor add_(const Tensor& x, const Tensor& y) {
  check_result_dtype("add_", x, result_type(x, y));
  return in_place("add_", x, y, add, [](Tensor& to, const Tensor& from) {
    write_rows(
        to, from, [](auto... p) { kernels::add(p...); }, [](auto a, auto b) { return ops::plus(a, b); });
  });
}

Tensor sub_(const Tensor& x, const Tensor& y) {
  check_result_dtype("sub_", x, result_type(x, y));
  ONESTEP_CHECK(DTypeError, x.dtype() != DType::boolean, "sub_: a bool tensor (use logical_xor)");
  return in_place("sub_", x, y, sub, [](Tensor& to, const Tensor& from) {
    write_rows(
        to, from, [](auto... p) { kernels::sub(p...); }, [](auto a, auto b) { return ops::minus(a, b); });
  });
}

Tensor mul_(const Tensor& x, const Tensor& y) {
  check_result_dtype("mul_", x, result_type(x, y));
  return in_place("mul_", x, y, mul, [](Tensor& to, const Tensor& from) {
    write_rows(
        to, from, [](auto... p) { kernels::mul(p...); }, [](auto a, auto b) { return ops::times(a, b); });
  });
}

Tensor div_(const Tensor& x, const Tensor& y) {
  check_result_dtype("div_", x, ops::floating(result_type(x, y)));
  return in_place("div_", x, y, div, [](Tensor& to, const Tensor& from) {
    write_rows(
        to, from, [](auto... p) { kernels::div(p...); }, [](auto a, auto b) { return a / b; });
  });
}

Tensor add_(const Tensor& x, Scalar y) { return add_(x, as_operand(x, y)); }
Tensor sub_(const Tensor& x, Scalar y) { return sub_(x, as_operand(x, y)); }
Tensor mul_(const Tensor& x, Scalar y) {
  return is_half(x.dtype()) ? assign_result("mul_", x, mul(x, y)) : mul_(x, as_operand(x, y));
}
Tensor div_(const Tensor& x, Scalar y) {
  return is_half(x.dtype()) ? assign_result("div_", x, div(x, y)) : div_(x, as_operand(x, y));
}

}  // namespace onestep

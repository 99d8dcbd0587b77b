// Choosing elements by a mask or by their place in a matrix.
#include "autograd/ops/elementwise.h"
#include "autograd/ops/scatter.h"
#include "autograd/ops/write_expanded.h"

namespace onestep {
namespace {

void check_mask(const char* op, const Tensor& mask) {
  ONESTEP_CHECK(DTypeError, mask.dtype() == DType::boolean, op, ": the mask must be bool: got ", mask.dtype(),
                " (compare it with something, e.g. ne(mask, 0))");
}

template <class T>
void choose_row(const bool* test, int64_t test_step, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  if (test_step == 0 && n > 0) {  // all of one
    const T* const from = *test ? a : b;
    const int64_t step = *test ? a_step : b_step;
    if (from == y && step == 1) return;
    return kernels::parallel_for(n, ops::kLoopCost, [=](int64_t i, int64_t end) {
      if (step == 1)
        std::copy_n(from + i, end - i, y + i);
      else if (step == 0)
        std::fill_n(y + i, end - i, *from);
      else
        for (; i < end; ++i) y[i] = from[i * step];
    });
  }
  kernels::parallel_for(n, ops::kLoopCost, [=](int64_t i, int64_t end) {
    if (test_step == 1 && a_step == 1 && b_step == 1)
      for (; i < end; ++i) y[i] = ops::select_value(test[i], a[i], b[i]);
    else if (test_step == 1 && a_step == 0 && b_step == 1)
      for (const T number = *a; i < end; ++i) y[i] = ops::select_value(test[i], number, b[i]);
    else
      for (; i < end; ++i) y[i] = ops::select_value(test[i * test_step], a[i * a_step], b[i * b_step]);
  });
}

/// y = condition ? a : b elementwise, all of one dtype; y contiguous and of the shape to which the others broadcast. It may be
/// b.
void choose(Tensor& y, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const Shape& shape = y.shape();
  dispatch_size(y.dtype(), [&]<class T>() {
    const bool* test = condition.data<bool>();
    const T *left = ops::units<T>(a), *right = ops::units<T>(b);
    T* to = ops::mutable_units<T>(y);
    const std::array<Shape, 4> strides = {ops::broadcast_strides(condition, shape), ops::broadcast_strides(a, shape),
                                          ops::broadcast_strides(b, shape), y.strides()};
    ops::for_each_row<4>(shape, strides, [=](const auto& at, int64_t n, const auto& steps) {
      choose_row(test + at[0], steps[0], left + at[1], steps[1], right + at[2], steps[2], to + at[3], n);
    });
  });
}

/// x with the elements set to 0 whose column - row lies outside [low, high].
Tensor keep_band(const char* op, const Tensor& x, int64_t low, int64_t high) {
  ONESTEP_CHECK(ShapeError, x.dim() >= 2, op, ": needs a matrix or a batch of them: got shape ", x.shape());
  const Tensor from = ops::contiguous_values(x);
  Tensor y = empty(x.shape(), x.dtype());
  const int64_t rows = x.size(-2), cols = x.size(-1);
  dispatch_size(x.dtype(), [&]<class T>() {
    const T* source = ops::units<T>(from);
    T* target = ops::mutable_units<T>(y);
    const int64_t all_rows = cols == 0 ? 0 : x.numel() / cols;
    kernels::parallel_for(all_rows, ops::kLoopCost * static_cast<double>(cols), [=](int64_t r, int64_t end) {
      for (; r < end; ++r) {
        const int64_t row = r % rows;
        for (int64_t c = 0; c < cols; ++c)
          target[r * cols + c] = low <= c - row && c - row <= high ? source[r * cols + c] : T(0);
      }
    });
  });
  return y;
}

/// Where `mask`, seen in `shape`, is true: places of the flattened shape.
Tensor places_of(const char* op, const Tensor& mask, const Shape& shape) {
  const NoGradGuard no_grad;
  return flatten(nonzero(flatten(contiguous(ops::expand_values(op, mask, shape)))));
}

Tensor flat(const Tensor& x) { return reshape(x, {-1}); }

constexpr int64_t kFar = int64_t{1} << 62;

/// The number as a tensor in the dtype in which it meets x.
Tensor chosen_beside(const Tensor& x, Scalar number) {
  if (const DType dtype = result_type(x, number); !is_floating(dtype)) ops::check_fits("where", number, dtype);
  return ops::as_operand(x, number);
}

}  // namespace

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  const Tensor condition = mask.dtype() == DType::uint8 ? to(mask, DType::boolean) : mask;  // as PyTorch's old masks
  check_mask("where", condition);
  const DType dtype = result_type(a, b);
  const Tensor x = to(a, dtype), y = to(b, dtype);
  const Shape shape = broadcast_shapes("where", condition.shape(), broadcast_shapes("where", x.shape(), y.shape()));
  Tensor chosen = empty(shape, dtype);
  choose(chosen, condition, x, y);
  return record("where", chosen, {x, y}, {condition}, [](const Backward& back) -> Grads {
    const Tensor &c = back.saved(0), &dy = back.grad(), none = zeros({}, dy.dtype());
    return {ops::grad_of(back, 0, [&] { return where(c, dy, none); }),
            ops::grad_of(back, 1, [&] { return where(c, none, dy); })};
  });
}

Tensor where(const Tensor& condition, const Tensor& a, Scalar b) { return where(condition, a, chosen_beside(a, b)); }
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) { return where(condition, chosen_beside(b, a), b); }
Tensor where(const Tensor& condition, Scalar a, Scalar b) { return where(condition, full({}, a), b); }

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  check_mask("masked_fill", mask);
  ops::check_fits("masked_fill", value, x.dtype());
  Tensor y = empty(broadcast_shapes("masked_fill", x.shape(), mask.shape()), x.dtype());
  choose(y, mask, full({}, value, x.dtype()), x);
  return record("masked_fill", y, {x}, {mask}, [](const Backward& back) -> Grads {
    return {ops::sum_to(masked_fill(back.grad(), back.saved(0), 0), back.input_shape(0))};  // dx = mask ? 0 : dy
  });
}

namespace {

/// masked_fill_ of x, recorded: `result` is what it comes to.
Tensor written(Tensor x, const Tensor& result, const Tensor& mask, Scalar value) {
  ops::unrepeated(x).check_writable("masked_fill_");  // elements may share memory
  return ops::write_recorded("masked_fill_", x, result, [&] { masked_fill_(x, mask, value); });
}

}  // namespace

Tensor masked_fill_(const Tensor& target, const Tensor& mask, Scalar value) {
  Tensor x = target;
  check_mask("masked_fill_", mask);
  ops::check_fits("masked_fill_", value, x.dtype());
  const Tensor seen = ops::expand_values("masked_fill_", mask, x.shape());
  if (detail::should_record({x})) return written(x, masked_fill(x, mask, value), mask, value);
  for (int d = 0; d < x.dim(); ++d)  // elements that are the same memory are written once
    if (x.strides()[d] == 0 && x.shape()[d] > 1)
      return masked_fill_(narrow(x, d, 0, 1), any(contiguous(seen), d, /*keepdim=*/true), value), target;
  if (x.shares_storage(mask)) return masked_fill_(x, clone(mask), value);
  if (!x.is_contiguous()) return index_put_(x, {contiguous(seen)}, value);
  choose(x, seen, full({}, value, x.dtype()), x);
  return x;
}

namespace {

/// The value of a rank-0 tensor as a number, and as an element of x.
struct FillValue {
  FillValue(const char* op, const Tensor& x, const Tensor& value) {
    ONESTEP_CHECK(ShapeError, value.dim() == 0, op, ": the value must be a number or a rank-0 tensor: got shape ",
                  value.shape());
    number = value.is_floating() ? Scalar(value.item()) : Scalar(value.item<int64_t>());
    ops::check_fits(op, number, x.dtype());
    element = to(value, x.dtype());
  }
  Scalar number = 0;
  Tensor element;
};

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  check_mask("masked_fill", mask);
  return where(mask, FillValue("masked_fill", x, value).element, x);
}

Tensor masked_fill_(const Tensor& x, const Tensor& mask, const Tensor& value) {
  const FillValue fill("masked_fill_", x, value);
  if (!detail::should_record({x, fill.element})) return masked_fill_(x, mask, fill.number);
  check_mask("masked_fill_", mask);
  const Tensor seen = ops::expand_values("masked_fill_", mask, x.shape());
  return written(x, where(seen, fill.element, x), mask, fill.number);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_mask("masked_select", mask);
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  return index_select(flat(expand(x, shape)), 0, places_of("masked_select", mask, shape));
}

namespace {

/// The first elements of source, one a place that is true in `mask`.
Tensor as_many(const char* op, const Tensor& x, const Tensor& source, const Tensor& places) {
  ops::check_same_dtype(op, x, source);
  ONESTEP_CHECK(ShapeError, places.numel() <= source.numel(), op, ": ", places.numel(), " elements of the mask are true, but ",
                "source has only ", source.numel());
  return narrow(flat(source), 0, 0, places.numel());
}

}  // namespace

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  check_mask("masked_scatter", mask);
  const Shape shape = broadcast_shapes("masked_scatter", x.shape(), mask.shape());
  const Tensor places = places_of("masked_scatter", mask, shape);
  const Tensor values = as_many("masked_scatter", x, source, places);
  return reshape(index_copy(flat(expand(x, shape)), 0, places, values), shape);
}

Tensor masked_scatter_(const Tensor& x, const Tensor& mask, const Tensor& source) {
  constexpr auto op = "masked_scatter_";
  check_mask(op, mask);
  const Tensor places = places_of(op, mask, x.shape());
  return ops::write_in_place(
      op, x, as_many(op, x, source, places),
      [&](const Tensor& y, const Tensor& s) { return reshape(index_copy(flat(y), 0, places, s), y.shape()); },
      [&](Tensor& y, const Tensor& s) {
        const NoGradGuard no_grad;
        if (y.is_contiguous())
          index_copy_(view(y, y.numel()), 0, places, s);
        else  // the other elements stay unwritten: in an overlapping view they may be the same memory
          index_put_(y, {ops::expand_values(op, mask, y.shape())}, s);
      });
}

Tensor tril(const Tensor& x, int64_t diagonal) {
  return record("tril", keep_band("tril", x, -kFar, diagonal), {x}, {},
                [diagonal](const Backward& b) -> Grads { return {tril(b.grad(), diagonal)}; });
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  return record("triu", keep_band("triu", x, diagonal, kFar), {x}, {},
                [diagonal](const Backward& b) -> Grads { return {triu(b.grad(), diagonal)}; });
}

}  // namespace onestep

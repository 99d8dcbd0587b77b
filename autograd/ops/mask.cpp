// Choosing elements by a mask or by their place in a matrix.
#include "autograd/ops/elementwise.h"

namespace onestep {
namespace {

void check_mask(const char* op, const Tensor& mask) {
  ONESTEP_CHECK(DTypeError, mask.dtype() == DType::boolean, op, ": the mask must be bool: got ", mask.dtype(),
                " (compare it with something, e.g. ne(mask, 0))");
}

template <class T>
void choose_row(const bool* test, int64_t test_step, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
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

constexpr int64_t kFar = int64_t{1} << 62;

}  // namespace

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  const Tensor condition = mask.dtype() == DType::uint8 ? to(mask, DType::boolean) : mask;  // as PyTorch's old masks
  check_mask("where", condition);
  const DType dtype = ops::promote(a, b);
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

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  check_mask("masked_fill", mask);
  ops::check_fits("masked_fill", value, x.dtype());
  Tensor y = empty(broadcast_shapes("masked_fill", x.shape(), mask.shape()), x.dtype());
  choose(y, mask, full({}, value, x.dtype()), x);
  return record("masked_fill", y, {x}, {mask}, [](const Backward& back) -> Grads {
    return {ops::sum_to(masked_fill(back.grad(), back.saved(0), 0), back.input_shape(0))};  // dx = mask ? 0 : dy
  });
}

Tensor masked_fill_(const Tensor& target, const Tensor& mask, Scalar value) {
  Tensor x = target;
  check_mask("masked_fill_", mask);
  x.check_writable("masked_fill_");
  ops::check_fits("masked_fill_", value, x.dtype());
  const Tensor seen = ops::expand_values("masked_fill_", mask, x.shape());
  if (detail::should_record({x})) return assign_in_place("masked_fill_", x, masked_fill(x, mask, value));
  if (!x.is_contiguous() || x.shares_storage(mask)) return copy_(x, masked_fill(x, mask, value));
  choose(x, seen, full({}, value, x.dtype()), x);
  return x;
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

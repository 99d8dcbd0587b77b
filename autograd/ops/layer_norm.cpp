// Layer normalisation (Ba, Kiros and Hinton 2016).
#include <algorithm>
#include <optional>

#include "autograd/kernels/kernels.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/normalize.h"
#include "autograd/ops/pieces.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

void check_layer_norm(const Tensor& x, const Shape& normalized, const Tensor& weight, const Tensor& bias) {
  ops::check_floating("layer_norm", x);
  bool fits = normalized.rank() > 0 && normalized.rank() <= x.dim();
  for (int i = 0; fits && i < normalized.rank(); ++i) fits = normalized[i] == x.shape()[x.dim() - normalized.rank() + i];
  ONESTEP_CHECK(ShapeError, fits, "layer_norm: normalized_shape ", normalized, " is not the end of shape ", x.shape());
  for (const Tensor* parameter : {&weight, &bias}) {
    if (!parameter->defined()) continue;
    ops::check_parameter_dtype("layer_norm", x, *parameter);
    ONESTEP_CHECK(ShapeError, parameter->shape() == normalized, "layer_norm: ", parameter == &weight ? "weight" : "bias",
                  " of shape ", parameter->shape(), " for normalized_shape ", normalized);
  }
}

Grads recorded_grads(const Backward& b, const Shape& normalized, double eps) {
  const Tensor x = ops::wide(b.saved(0)), weight = ops::wide(b.saved(1)), dy = ops::wide(b.grad());
  Shape dims;
  for (int i = x.dim() - normalized.rank(); i < x.dim(); ++i) dims.push_back(i);
  const ops::Standardized s(x, dims, eps);
  return {b.needs(0) ? s.grad(weight.defined() ? dy * weight : dy) : Tensor(), ops::grad_of(b, 1, [&] { return dy * s.h; }),
          ops::grad_of(b, 2, [&] { return dy; })};
}

/// With h = (x - mean) rstd and g = dy weight: dx = rstd (g - avg(g) - h avg(g h)), dweight = sum(dy h), dbias = sum(dy). The
/// sums are added up as by kernels::sum_rows: groups of kSumRows rows from zero, and the groups in order.
Grads layer_norm_grads(const Backward& b, const Shape& normalized) {
  const Tensor x = ops::contiguous_values(b.saved(0)), weight = ops::rows_or_undefined(ops::wide(b.saved(1))),
               dy = ops::contiguous_values(b.grad());
  const Tensor &mean = b.saved(2), &rstd = b.saved(3);
  const bool sums = b.needs(1) || b.needs(2), narrow = is_narrow(x.dtype()) || is_narrow(dy.dtype());
  const int64_t rows = mean.numel(), cols = normalized.numel(), width = 2 * cols;
  const int64_t at_once = narrow ? std::min(ops::piece_rows(cols), kernels::kSumRows) : kernels::kSumRows;
  const int64_t each = sums ? kernels::kSumRows : at_once, groups = (rows + each - 1) / each;
  Tensor dx = b.needs(0) ? empty(x.shape(), x.dtype()) : Tensor();
  // Of each group a row for dweight and one for dbias; the first group's become the sums.
  Tensor parts = zeros({sums ? std::max(groups, int64_t{1}) : 0, 2, cols}, mean.dtype());
  dispatch_floating(mean.dtype(), "layer_norm", [&, to = dx.defined() ? dx.mutable_data_ptr() : nullptr]<class T>() {
    T* const total = parts.mutable_data<T>();
    const auto piece = [&](const ops::Piece& p, T* part) {
      const int64_t r = p.first / cols;
      std::optional<ops::WrittenPiece<T>> out;
      if (to) out.emplace(to, x.dtype(), p);
      kernels::layer_norm_grad(ops::ReadPiece<T>(x, p).data(), ops::data_or_null<T>(weight), mean.data<T>() + r,
                               rstd.data<T>() + r, ops::ReadPiece<T>(dy, p).data(), out ? out->data() : nullptr,
                               b.needs(1) ? part : nullptr, b.needs(2) ? part + cols : nullptr, p.rows, cols);
    };
    kernels::parallel_for(groups, 6 * kernels::kCheap * static_cast<double>(each * cols), [&](int64_t g, int64_t last) {
      for (; g < last; ++g) {
        const int64_t end = std::min(rows, (g + 1) * each);
        for (int64_t r = g * each; r < end; r += at_once)
          piece({r * cols, std::min(at_once, end - r), cols, cols}, total + g * width);
      }
    });
    for (int64_t g = 1; sums && g < groups; ++g) kernels::add(total, 1, total + g * width, 1, total, width);
  });
  const auto sum = [&](size_t input, int64_t row) {
    return b.needs(input) ? reshape(clone(select(select(parts, 0, 0), 0, row)), normalized) : Tensor();
  };
  return {dx, sum(1, 0), sum(2, 1)};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  check_layer_norm(x, normalized_shape, weight, bias);
  const int64_t cols = normalized_shape.numel(), rows = cols > 0 ? x.numel() / cols : 0;
  const DType dtype = x.dtype(), wide = compute_type(dtype);
  const auto given = [](const Tensor& t) { return t.defined() ? ops::widened(ops::contiguous_values(t)) : t; };
  const Tensor values = ops::contiguous_values(x), w = given(weight), shift = given(bias);
  Tensor y = empty(x.shape(), dtype), mean = empty(rows, wide), rstd = empty(rows, wide);
  dispatch_floating(wide, "layer_norm", [&, to = y.mutable_data_ptr()]<class T>() {
    T *const means = mean.mutable_data<T>(), *const rstds = rstd.mutable_data<T>();
    ops::for_row_pieces(dtype, rows, cols, ops::piece_rows(cols), 1.0, [&](const ops::Piece& p) {
      const int64_t r = cols > 0 ? p.first / cols : 0;
      kernels::layer_norm_rows(ops::ReadPiece<T>(values, p).data(), ops::data_or_null<T>(w), ops::data_or_null<T>(shift),
                               static_cast<T>(eps), ops::WrittenPiece<T>(to, dtype, p).data(), means + r, rstds + r, p.rows,
                               cols);
    });
  });
  return record("layer_norm", y, {x, weight, bias}, {x, x.requires_grad() ? weight : Tensor(), mean, rstd},
                [normalized_shape, eps](const Backward& b) {
                  Grads grads =
                      b.recording() ? recorded_grads(b, normalized_shape, eps) : layer_norm_grads(b, normalized_shape);
                  for (size_t i = 0; i < grads.size(); ++i)
                    if (grads[i].defined()) grads[i] = to(grads[i], b.input_dtype(i));
                  return grads;
                });
}

}  // namespace onestep

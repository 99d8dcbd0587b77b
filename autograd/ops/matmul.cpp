// Matrix products. gemm reads the operands where they lie, by their strides: a transposed matrix or a head-split view
// [B, H, T, d] with row stride C costs no copy.
#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matrices.h"
#include "autograd/ops_shape.h"
#include "autograd/vector_loop.h"

namespace onestep {

using ops::GemmOperand, ops::Matrices, ops::Offsets, ops::transposed;

namespace {

/// [..., m, k] with evenly spaced rows as one matrix [rows, k]; none if the rows are spaced otherwise.
std::optional<Matrices> stacked(const Matrices& x) {
  const int leading = x.shape.rank() - 1;
  const ops::MergedDims<1> merged(x.shape.first(leading), {x.strides.first(leading)});
  if (merged.sizes.rank() > 1) return {};
  return Matrices(x.values, {merged.sizes[0], x.shape.back()}, {merged.strides[0][0], x.strides.back()});
}

/// [..., k] -> [rows, k]
Matrices as_rows(const Tensor& x) {
  const int64_t k = x.shape().back(), rows = x.numel() / std::max<int64_t>(k, 1);
  if (!x.is_contiguous()) return reshape(x, {rows, k});
  return {x, {rows, k}, {k, 1}};
}

/// What gemm_batched computes, for integers.
void multiply_integers(const GemmOperand& a, const Offsets& a_starts, const GemmOperand& b, const Offsets& b_starts, int64_t m,
                       int64_t n, int64_t k, int64_t* y) {
  const int64_t row_a = a.trans ? 1 : a.ld, step_a = a.trans ? a.ld : 1;
  const int64_t step_b = b.trans ? 1 : b.ld, col_b = b.trans ? b.ld : 1;
  for (size_t i = 0; i < a_starts.size(); ++i) {
    const int64_t* left = a.matrices->values.data<int64_t>() + a_starts[i];
    const int64_t* right = b.matrices->values.data<int64_t>() + b_starts[i];
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        uint64_t total = 0;  // wraps around as in PyTorch
        for (int64_t p = 0; p < k; ++p) {
          total += static_cast<uint64_t>(left[r * row_a + p * step_a]) * static_cast<uint64_t>(right[p * step_b + c * col_b]);
        }
        *y++ = static_cast<int64_t>(total);
      }
    }
  }
}

/// Where the matrices of an operand start; one of another rank than the batch is a single one.
Offsets starts_of(const GemmOperand& operand, const Shape& batch) {
  return batch.empty() ? Offsets(1) : ops::batch_starts(operand.matrices->shape, operand.matrices->strides, batch);
}

/// The numbers of a product's operand.
template <class E>
kernels::Source<E> source(const Tensor& x) {
  if constexpr (std::is_same_v<E, BFloat16>)
    return {x.data<BFloat16>(), true};
  else
    return x.data<E>();
}

/// The values of [..., m, k] x [..., k, n] -> [..., m, n], as they are summed: in float32 where they are bfloat16, but for one
/// product that is `rounded`. Many equally spaced rows against one right side are one product. `vector`: b is one, and float32
/// results are dot products. The epilogue is that of the result as rows [batch m, n]; float16 and vectors take none.
Tensor sums(const char* op, const Matrices& a, const Matrices& b, bool rounded, bool vector,
            const kernels::Epilogue& epilogue) {
  const DType from = a.values.dtype(), dtype = compute_type(from);
  if (is_narrow(from) && from != DType::bfloat16)
    return ops::rounded(sums(op, ops::widened(a.view()), ops::widened(b.view()), false, vector, {}), from);
  Shape batch = broadcast_shapes("matmul: batch dims", ops::batch_dims(a.shape), ops::batch_dims(b.shape));
  const int64_t k = a.shape.back(), n = b.shape.back();
  int64_t m = a.shape[a.shape.rank() - 2];
  Shape shape = batch;
  shape.push_back(m);
  shape.push_back(n);
  const auto finished = [&](Tensor y) {
    const int64_t all = y.numel() / std::max<int64_t>(n, 1);
    dispatch(dtype, [&]<class T>() {
      kernels::parallel_for(
          epilogue ? all : 0, 0.2 * static_cast<double>(n),
          [&, to = y.mutable_data<T>()](int64_t i, int64_t end) { epilogue(to + i * n, n, i, end - i, 0, n); });
    });
    return y;
  };
  if (shape.numel() == 0 || k == 0) return finished(zeros(shape, dtype));

  std::optional<Matrices> rows;
  if (batch.numel() > 1 && ops::batch_dims(b.shape).numel() == 1) rows = stacked(a);
  if (rows) {
    m = rows->shape[0];
    batch = Shape();
  }
  const GemmOperand lhs(rows ? *rows : a), rhs(b);
  if (rounded && batch.numel() == 1 && n > 1) {
    Tensor y = empty(shape, from);
    kernels::gemm(lhs.trans, rhs.trans, m, n, k, source<BFloat16>(lhs.matrices->values), lhs.ld,
                  source<BFloat16>(rhs.matrices->values), rhs.ld, y.mutable_data<BFloat16>(), epilogue);
    return y;
  }
  Tensor y = empty(shape, dtype);
  if (dtype == DType::int64) {
    multiply_integers(lhs, starts_of(lhs, batch), rhs, starts_of(rhs, batch), m, n, k, y.mutable_data<int64_t>());
    return finished(y);
  }
  if (vector && from == DType::float32) {
    const Tensor elements = ops::contiguous_values(b.view());
    kernels::gemv(batch.numel(), lhs.trans, m, k, lhs.matrices->values.data<float>(), lhs.ld, starts_of(lhs, batch).data(),
                  elements.data<float>(), y.mutable_data<float>());
    return y;
  }
  const auto multiply = [&]<class E>() {
    auto* const to = y.mutable_data<kernels::Number<E>>();
    const auto from_a = source<E>(lhs.matrices->values), from_b = source<E>(rhs.matrices->values);
    if (batch.numel() == 1)
      return kernels::gemm(lhs.trans, rhs.trans, m, n, k, from_a, lhs.ld, from_b, rhs.ld, to, n, false, epilogue);
    const Offsets a_starts = starts_of(lhs, batch), b_starts = starts_of(rhs, batch);
    Offsets y_starts(a_starts.size());
    for (size_t i = 0; i < y_starts.size(); ++i) y_starts[i] = static_cast<int64_t>(i) * m * n;
    kernels::gemm_batched(batch.numel(), lhs.trans, rhs.trans, m, n, k, from_a, lhs.ld, a_starts.data(), from_b, rhs.ld,
                          b_starts.data(), to, n, y_starts.data(), false);
  };
  if (from == DType::bfloat16)
    multiply.operator()<BFloat16>();
  else
    dispatch_floating(dtype, op, multiply);
  return batch.numel() == 1 ? y : finished(y);
}

/// The same as numbers of `dtype`.
Tensor product(const char* op, const Matrices& a, const Matrices& b, DType dtype, bool vector = false,
               const kernels::Epilogue& epilogue = {}) {
  const bool rounded = a.values.dtype() == DType::bfloat16 && dtype == DType::bfloat16;
  return ops::rounded(sums(op, a, b, rounded, vector, epilogue), dtype);
}

/// Saved operand `i` in its place in the graph, also where it was rounded or copied for the product.
Tensor operand(const Backward& b, size_t i) {
  const Tensor& x = b.saved(i);
  if (x.requires_grad()) return x;
  const Tensor placed = b.input(i, x);
  return placed.requires_grad() ? b.input(i, ops::rounded(x, placed.node()->dtype)) : placed;
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  if (ops::operand_dtype(a) != ops::operand_dtype(b)) ops::check_same_dtype(op, a, b);
  ONESTEP_CHECK(DTypeError, a.dtype() != DType::boolean || a.numel() == 0 || b.numel() == 0, op,
                ": does not take bool (convert with to())");  // but where nothing is multiplied
}

/// a b of dtypes that may differ, for a gradient of input `i`.
Tensor recorded_product(const Backward& g, size_t i, const Tensor& a, const Tensor& b) {
  const DType dtype = promote_types(a.dtype(), b.dtype());
  return to(matmul(to(a, dtype), to(b, dtype)), g.input_dtype(i));
}

/// dx = dy W, dW = dy^T x, db = dy in ops that are recorded.
Grads recorded_linear_grads(const Backward& b) {
  const Tensor& dy = b.grad();
  return {ops::grad_of(b, 0, [&] { return recorded_product(b, 0, dy, operand(b, 1)); }),
          ops::grad_of(b, 1, [&] { return recorded_product(b, 1, t(flatten(dy, 0, -2)), flatten(operand(b, 0), 0, -2)); }),
          ops::grad_of(b, 2, [&] { return to(dy, b.input_dtype(2)); })};
}

/// da = dy b^T, db = a^T dy in ops that are recorded.
Grads recorded_grads(const Backward& g) {
  const Tensor& dy = g.grad();
  const auto da = [&] { return recorded_product(g, 0, dy, transpose(operand(g, 1), -2, -1)); };
  const auto db = [&] {
    if (g.input_shape(1).rank() == 2) return recorded_product(g, 1, t(flatten(operand(g, 0), 0, -2)), flatten(dy, 0, -2));
    return recorded_product(g, 1, transpose(operand(g, 0), -2, -1), dy);
  };
  return {ops::grad_of(g, 0, da), ops::grad_of(g, 1, db)};
}

/// b as it is saved for the gradient of one matrix a, columns behind columns: a copy where they do not lie so, as in PyTorch,
/// which may be written to later.
Tensor folded(const Tensor& b) {
  const Tensor columns = transpose(b.values(), -2, -1);
  return transpose(reshape(flatten(columns, 0, -2), columns.shape()), -2, -1);
}

/// a as it is saved for the gradient of b: a copy of the rows against one matrix where they are not evenly spaced, as in
/// PyTorch.
Tensor saved_rows(const Tensor& a, const Tensor& b) {
  return a.dim() > 2 && b.dim() == 2 && detail::should_record({b}) && !stacked(a) ? ops::contiguous_values(a) : a;
}

/// matmul of a and b with the values of `left` and `right`, which may be rounded.
Tensor recorded_matmul(const Tensor& a, const Tensor& b, const Tensor& left, const Tensor& right, bool vector) {
  const bool fold = a.dim() == 2 && b.dim() > 2 && detail::should_record({a}) && &right.impl() == &b.impl();
  const Tensor saved_right = fold ? folded(b) : a.requires_grad() ? right : Tensor();
  return record("matmul", product("matmul", left, right, left.dtype(), vector), {a, b},
                {b.requires_grad() ? saved_rows(left, b) : Tensor(), saved_right},
                [](const Backward& g) -> Grads {  // da = dy b^T, db = a^T dy, summed over repeated batch dims
                  if (g.recording()) return recorded_grads(g);
                  const auto summed = [&](const Matrices& x, const Matrices& y, size_t i) {
                    const Tensor z = sums("matmul", x, y, false, false, {});
                    return ops::rounded(ops::sum_to(z, g.input_shape(i)), g.input_dtype(i));
                  };
                  Tensor da, db;
                  if (g.needs(0)) da = summed(g.grad(), transposed(g.saved(1)), 0);
                  if (g.needs(1) && g.input_shape(1).rank() == 2)
                    db = product("matmul", transposed(as_rows(g.saved(0))), as_rows(g.grad()), g.input_dtype(1));
                  else if (g.needs(1))
                    db = summed(transposed(g.saved(0)), g.grad(), 1);
                  return {da, db};
                });
}

/// matmul of two matrices or batches of these; `vector`: b is a vector [k, 1].
Tensor multiply(const Tensor& a, const Tensor& b, bool vector) {
  if (!autocast_enabled()) return recorded_matmul(a, b, a, b, vector);
  return recorded_matmul(a, b, ops::rounded_operand(a), ops::rounded_operand(b), vector);
}

}  // namespace

void ops::check_linear_shapes(const Tensor& x, const Shape& weight, const Tensor& bias) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0 && x.shape().back() == weight[1], "linear: input ", x.shape(), " does not fit weight ",
                weight, " (the last dim of the input must be ", weight[1], ")");
  ONESTEP_CHECK(ShapeError, !bias.defined() || bias.shape() == Shape{weight[0]}, "linear: bias ", bias.shape(),
                " does not fit weight ", weight, " (needs [", weight[0], "])");
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_operands("matmul", a, b);
  ONESTEP_CHECK(ShapeError, a.dim() > 0 && b.dim() > 0, "matmul: needs at least one dim on both sides: ", a.shape(), " x ",
                b.shape(), " (use mul for numbers)");
  const int64_t k = a.shape().back(), rows = b.shape()[b.dim() > 1 ? b.dim() - 2 : 0];
  ONESTEP_CHECK(ShapeError, k == rows, "matmul: inner dimensions differ: ", a.shape(), " x ", b.shape(),
                b.dim() > 1 && b.shape().back() == k ? " (transpose the right side?)" : "");
  if (a.dim() == 1 && b.dim() == 1) return dot(ops::autocast_operand(a), ops::autocast_operand(b));
  if (a.dim() == 1) return clone(squeeze(matmul(unsqueeze(a, 0), b), -2));  // a result of its own, no view of one
  if (b.dim() == 1) return clone(squeeze(multiply(a, unsqueeze(b, 1), /*vector=*/true), -1));
  return multiply(a, b, /*vector=*/false);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  ops::check_same_dtype("dot", a, b);
  check_operands("dot", a, b);
  ONESTEP_CHECK(ShapeError, a.dim() == 1 && b.dim() == 1, "dot: needs two vectors: ", a.shape(), " and ", b.shape(),
                " (use matmul for matrices)");
  ONESTEP_CHECK(ShapeError, a.shape() == b.shape(), "dot: sizes differ: ", a.shape(), " and ", b.shape());
  if (is_narrow(a.dtype())) return to(dot(ops::wide(a), ops::wide(b)), a.dtype());
  const Tensor left = ops::contiguous_values(a), right = ops::contiguous_values(b);
  Tensor y = empty({}, a.dtype());
  if (a.dtype() == DType::int64) {
    const Matrices row(left, {1, a.numel()}, {a.numel(), 1}), column(right, {a.numel(), 1}, {1, 1});
    multiply_integers(GemmOperand(row), {0}, GemmOperand(column), {0}, 1, 1, a.numel(), y.mutable_data<int64_t>());
    return y;
  }
  dispatch_floating(a.dtype(), "dot",
                    [&]<class T>() { *y.mutable_data<T>() = kernels::dot(left.data<T>(), right.data<T>(), a.numel()); });
  return record("dot", y, {a, b}, {b.requires_grad() ? a : Tensor(), a.requires_grad() ? b : Tensor()},
                [](const Backward& g) -> Grads {  // da = dy b, db = dy a
                  return {g.needs(0) ? mul(g.saved(1), g.grad()) : Tensor(), g.needs(1) ? mul(g.saved(0), g.grad()) : Tensor()};
                });
}

namespace {

/// y[i, j] += b[j] for rows that are `ld` apart.
template <class T>
ONESTEP_EACH_ISA void add_to_rows(T* y, int64_t ld, int64_t rows, int64_t cols, const T* b) {
  for (; rows > 0; --rows, y += ld) {
#pragma GCC ivdep
    for (int64_t j = 0; j < cols; ++j) y[j] = ops::plus(y[j], b[j]);
  }
}

/// Adds the contiguous `bias`, if there is one, to every row of a product of its dtype, after the sums: the same bits as
/// add(matmul(x, t(weight)), bias).
kernels::Epilogue add_bias(const Tensor& bias) {
  if (!bias.defined()) return {};
  return dispatch(bias.dtype(), [&]<class T>() -> kernels::Epilogue {
    return {bias.data<T>(), [](const void* b, void* c, int64_t ldc, int64_t, int64_t rows, int64_t col, int64_t cols) {
              add_to_rows(static_cast<T*>(c), ldc, rows, cols, static_cast<const T*>(b) + col);
            }};
  });
}

/// Sum over all rows: [..., n] -> [n]
Tensor sum_of_rows(const Tensor& x) {
  const Tensor rows = ops::contiguous_values(x);
  const int64_t n = x.shape().back();
  Tensor y = empty(n, x.dtype());
  dispatch_floating(x.dtype(), "linear", [&]<class T>() {
    kernels::sum_rows(rows.data<T>(), y.mutable_data<T>(), x.numel() / std::max<int64_t>(n, 1), n, n);
  });
  return y;
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_operands("linear", x, weight);
  ONESTEP_CHECK(ShapeError, weight.dim() == 2, "linear: weight must be [out, in]: got ", weight.shape());
  if (bias.defined() && ops::operand_dtype(x) != ops::operand_dtype(bias)) ops::check_same_dtype("linear", x, bias);
  ops::check_linear_shapes(x, weight.shape(), bias);
}

/// linear of x and weight with the values of `left` and `right`, which may be rounded.
Tensor recorded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& left, const Tensor& right) {
  const Tensor added = bias.defined() ? ops::contiguous_values(ops::widened(bias)) : bias;
  return record("linear", product("linear", left, transposed(right), left.dtype(), /*vector=*/false, add_bias(added)),
                {x, weight, bias}, {weight.requires_grad() ? left : Tensor(), x.requires_grad() ? right : Tensor()},
                [](const Backward& b) -> Grads {  // dx = dy W, dW = dy^T x over all rows, db = sum of the rows of dy
                  const Tensor& dy = b.grad();
                  if (b.recording()) return recorded_linear_grads(b);
                  Tensor dx, dw, db;
                  if (b.needs(0)) dx = product("linear", dy, b.saved(1), b.input_dtype(0));
                  if (b.needs(1)) dw = product("linear", transposed(as_rows(dy)), as_rows(b.saved(0)), b.input_dtype(1));
                  if (b.needs(2)) db = ops::rounded(sum_of_rows(ops::widened(dy)), b.input_dtype(2));
                  return {dx, dw, db};
                });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_linear(x, weight, bias);
  if (is_narrow(x.dtype()) && x.dtype() != DType::bfloat16)
    return to(linear(ops::wide(x), ops::wide(weight), ops::wide(bias)), x.dtype());
  if (x.dim() == 1) return clone(squeeze(linear(unsqueeze(x, 0), weight, bias), 0));  // no view of what nobody sees
  if (!autocast_enabled()) return recorded_linear(x, weight, bias, x, weight);
  return recorded_linear(x, weight, bias, ops::rounded_operand(x), ops::rounded_operand(weight));
}

}  // namespace onestep

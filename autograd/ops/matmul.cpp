// Matrix products. gemm reads the operands where they lie, by their strides: a transposed matrix or a head-split view
// [B, H, T, d] with row stride C costs no copy.
#include <algorithm>
#include <utility>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/matrices.h"

namespace onestep {

using ops::batch_starts, ops::Matrices, ops::Offsets;

namespace {

/// [..., m, k] with evenly spaced rows as one matrix [rows, k]; undefined if the rows are spaced otherwise.
Tensor stacked(const Tensor& x) {
  Shape leading = x.shape(), strides = x.strides();
  leading.erase(x.dim() - 1);
  strides.erase(x.dim() - 1);
  const ops::MergedDims<1> merged(leading, {strides});
  if (merged.sizes.rank() > 1) return {};
  return ops::view_of(x, {merged.sizes[0], x.shape().back()}, {merged.strides[0][0], x.strides().back()}, x.offset());
}

/// [..., m, k] -> [..., k, m], a view without graph
Tensor transposed(const Tensor& x) {
  Shape shape = x.shape(), strides = x.strides();
  const int last = x.dim() - 1;
  std::swap(shape[last - 1], shape[last]);
  std::swap(strides[last - 1], strides[last]);
  return ops::view_of(x, shape, strides, x.offset());
}

/// [..., k] -> [rows, k]
Tensor as_rows(const Tensor& x) {
  const int64_t k = x.shape().back(), rows = x.numel() / std::max<int64_t>(k, 1);
  return x.is_contiguous() ? ops::view_of(x, {rows, k}, {k, 1}, x.offset()) : reshape(x, {rows, k});
}

/// What gemm_batched computes, for integers.
void multiply_integers(const Matrices& a, const Offsets& a_starts, const Matrices& b, const Offsets& b_starts, int64_t m,
                       int64_t n, int64_t k, int64_t* y) {
  const int64_t row_a = a.trans ? 1 : a.ld, step_a = a.trans ? a.ld : 1;
  const int64_t step_b = b.trans ? 1 : b.ld, col_b = b.trans ? b.ld : 1;
  for (size_t i = 0; i < a_starts.size(); ++i) {
    const int64_t* left = a.values.data<int64_t>() + a_starts[i];
    const int64_t* right = b.values.data<int64_t>() + b_starts[i];
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

/// The values of [..., m, k] x [..., k, n] -> [..., m, n]. Many equally spaced rows against one right side are one product.
Tensor product(const char* op, const Tensor& a, const Tensor& b) {
  if (is_narrow(a.dtype())) return ops::rounded(product(op, ops::widened(a), ops::widened(b)), a.dtype());
  Shape batch = broadcast_shapes("matmul: batch dims", ops::batch_dims(a.shape()), ops::batch_dims(b.shape()));
  const int64_t k = a.shape().back(), n = b.shape().back();
  int64_t m = a.size(-2);
  Shape shape = batch;
  shape.push_back(m);
  shape.push_back(n);
  if (shape.numel() == 0 || k == 0) return zeros(shape, a.dtype());

  Tensor left = a;
  if (batch.numel() > 1 && ops::batch_dims(b.shape()).numel() == 1) {
    if (const Tensor rows = stacked(a); rows.defined()) {
      left = rows;
      m = rows.shape()[0];
      batch = Shape();
    }
  }
  const Matrices lhs = ops::matrices(left), rhs = ops::matrices(b);
  const Offsets a_starts = batch_starts(lhs.values, batch);
  const Offsets b_starts = batch.empty() ? Offsets(1) : batch_starts(rhs.values, batch);
  Tensor y = empty(shape, a.dtype());
  if (a.dtype() == DType::int64) {
    multiply_integers(lhs, a_starts, rhs, b_starts, m, n, k, y.mutable_data<int64_t>());
    return y;
  }
  dispatch_floating(a.dtype(), op, [&]<class T>() {
    Offsets y_starts(a_starts.size());
    for (size_t i = 0; i < y_starts.size(); ++i) y_starts[i] = static_cast<int64_t>(i) * m * n;
    const T *pa = lhs.values.data<T>(), *pb = rhs.values.data<T>();
    if (y_starts.size() == 1)
      kernels::gemm(lhs.trans, rhs.trans, m, n, k, pa + a_starts[0], lhs.ld, pb + b_starts[0], rhs.ld, y.mutable_data<T>(), n,
                    false);
    else
      kernels::gemm_batched(batch.numel(), lhs.trans, rhs.trans, m, n, k, pa, lhs.ld, a_starts.data(), pb, rhs.ld,
                            b_starts.data(), y.mutable_data<T>(), n, y_starts.data(), false);
  });
  return y;
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  ops::check_same_dtype(op, a, b);
  ONESTEP_CHECK(DTypeError, a.dtype() != DType::boolean || a.numel() == 0 || b.numel() == 0, op,
                ": does not take bool (convert with to())");  // but where nothing is multiplied
}

/// da = dy b^T, db = a^T dy in ops that are recorded.
Grads recorded_grads(const Backward& g) {
  const Tensor& dy = g.grad();
  const auto db = [&] {
    if (g.input_shape(1).rank() == 2) return matmul(t(flatten(g.saved(0), 0, -2)), flatten(dy, 0, -2));
    return matmul(transpose(g.saved(0), -2, -1), dy);
  };
  return {ops::grad_of(g, 0, [&] { return matmul(dy, transpose(g.saved(1), -2, -1)); }), ops::grad_of(g, 1, db)};
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_operands("matmul", a, b);
  ONESTEP_CHECK(ShapeError, a.dim() > 0 && b.dim() > 0, "matmul: needs at least one dim on both sides: ", a.shape(), " x ",
                b.shape(), " (use mul for numbers)");
  const int64_t k = a.shape().back(), rows = b.shape()[b.dim() > 1 ? b.dim() - 2 : 0];
  ONESTEP_CHECK(ShapeError, k == rows, "matmul: inner dimensions differ: ", a.shape(), " x ", b.shape(),
                b.dim() > 1 && b.shape().back() == k ? " (transpose the right side?)" : "");
  if (a.dim() == 1 && b.dim() == 1) return dot(a, b);
  if (a.dim() == 1) return clone(squeeze(matmul(unsqueeze(a, 0), b), -2));  // a result of its own, no view of one
  if (b.dim() == 1) return clone(squeeze(matmul(a, unsqueeze(b, 1)), -1));

  return record("matmul", product("matmul", a, b), {a, b}, {b.requires_grad() ? a : Tensor(), a.requires_grad() ? b : Tensor()},
                [](const Backward& g) -> Grads {  // da = dy b^T, db = a^T dy, summed over repeated batch dims
                  if (g.recording()) return recorded_grads(g);
                  Tensor da, db;
                  if (g.needs(0)) da = ops::sum_to(product("matmul", g.grad(), transposed(g.saved(1))), g.input_shape(0));
                  if (g.needs(1)) {
                    const Shape& shape = g.input_shape(1);
                    if (shape.rank() == 2)
                      db = product("matmul", transposed(as_rows(g.saved(0))), as_rows(g.grad()));
                    else
                      db = ops::sum_to(product("matmul", transposed(g.saved(0)), g.grad()), shape);
                  }
                  return {da, db};
                });
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_operands("dot", a, b);
  ONESTEP_CHECK(ShapeError, a.dim() == 1 && b.dim() == 1, "dot: needs two vectors: ", a.shape(), " and ", b.shape(),
                " (use matmul for matrices)");
  ONESTEP_CHECK(ShapeError, a.shape() == b.shape(), "dot: sizes differ: ", a.shape(), " and ", b.shape());
  if (is_narrow(a.dtype())) return to(dot(ops::wide(a), ops::wide(b)), a.dtype());
  const Tensor left = ops::contiguous_values(a), right = ops::contiguous_values(b);
  Tensor y = empty({}, a.dtype());
  if (a.dtype() == DType::int64) {
    multiply_integers({left, false, a.numel()}, {0}, {right, false, 1}, {0}, 1, 1, a.numel(), y.mutable_data<int64_t>());
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

/// Adds `bias` to every row of y [..., n], after the product: the same bits as add(matmul(x, t(weight)), bias).
void add_bias(Tensor& y, const Tensor& bias) {
  if (y.numel() == 0) return;
  const Tensor b = ops::contiguous_values(bias);
  dispatch(y.dtype(), [&]<class T>() {
    const int64_t n = b.numel();
    const T* from = b.data<T>();
    T* to = y.mutable_data<T>();
    kernels::parallel_for(y.numel() / n, 0.2 * static_cast<double>(n), [=](int64_t row, int64_t end) {
      for (; row < end; ++row)
        for (int64_t c = 0; c < n; ++c) to[row * n + c] += from[c];
    });
  });
}

/// Sum over all rows: [..., n] -> [n]
Tensor sum_of_rows(const Tensor& x) {
  const Tensor rows = as_rows(ops::contiguous_values(x));
  Tensor y = empty(rows.shape()[1], x.dtype());
  dispatch_floating(x.dtype(), "linear", [&]<class T>() {
    kernels::sum_rows(rows.data<T>(), y.mutable_data<T>(), rows.shape()[0], rows.shape()[1], rows.shape()[1]);
  });
  return y;
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_operands("linear", x, weight);
  ONESTEP_CHECK(ShapeError, weight.dim() == 2, "linear: weight must be [out, in]: got ", weight.shape());
  ONESTEP_CHECK(ShapeError, x.dim() > 0 && x.shape().back() == weight.shape()[1], "linear: input ", x.shape(),
                " does not fit weight ", weight.shape(), " (the last dim of the input must be ", weight.shape()[1], ")");
  if (!bias.defined()) return;
  ops::check_same_dtype("linear", x, bias);
  ONESTEP_CHECK(ShapeError, bias.shape() == Shape(weight.shape()[0]), "linear: bias ", bias.shape(), " does not fit weight ",
                weight.shape(), " (needs [", weight.shape()[0], "])");
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_linear(x, weight, bias);
  if (is_narrow(x.dtype())) return to(linear(ops::wide(x), ops::wide(weight), ops::wide(bias)), x.dtype());
  if (x.dim() == 1) return clone(squeeze(linear(unsqueeze(x, 0), weight, bias), 0));  // no view of what nobody sees
  Tensor y = product("linear", x, transposed(weight));
  if (bias.defined()) add_bias(y, bias);
  return record("linear", y, {x, weight, bias}, {weight.requires_grad() ? x : Tensor(), x.requires_grad() ? weight : Tensor()},
                [](const Backward& b) -> Grads {  // dx = dy W, dW = dy^T x over all rows, db = sum of the rows of dy
                  const Tensor& dy = b.grad();
                  if (b.recording())
                    return {b.needs(0) ? matmul(dy, b.saved(1)) : Tensor(),
                            b.needs(1) ? matmul(t(flatten(dy, 0, -2)), flatten(b.saved(0), 0, -2)) : Tensor(),
                            ops::grad_of(b, 2, [&] { return dy; })};
                  Tensor dx, dw, db;
                  if (b.needs(0)) dx = product("linear", dy, b.saved(1));
                  if (b.needs(1)) dw = product("linear", transposed(as_rows(dy)), as_rows(b.saved(0)));
                  if (b.needs(2)) db = sum_of_rows(dy);
                  return {dx, dw, db};
                });
}

}  // namespace onestep

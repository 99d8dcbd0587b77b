// Views and their gradients: the elements stay what they are, only their arrangement changes.
#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/creation.h"
#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"
#include "autograd/ops_index.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {

using ops::view_of;

namespace {

/// Replaces a -1 by the size that is left over.
Shape infer_size(const char* op, const Tensor& x, Shape shape) {
  int inferred = -1;
  int64_t known = 1;
  bool overflows = false;
  for (int i = 0; i < shape.rank(); ++i) {
    ONESTEP_CHECK(ShapeError, shape[i] >= -1, op, ": invalid size ", shape[i], " in ", shape);
    ONESTEP_CHECK(ShapeError, shape[i] != -1 || inferred < 0, op, ": only one size can be -1: ", shape);
    if (shape[i] == -1)
      inferred = i;
    else
      overflows = __builtin_mul_overflow(known, shape[i], &known) || overflows;
  }
  const bool fits = overflows ? false : inferred < 0 ? known == x.numel() : known != 0 && x.numel() % known == 0;
  ONESTEP_CHECK(ShapeError, fits, op, ": shape ", shape, " does not fit ", x.numel(), " elements of shape ", x.shape());
  if (inferred >= 0) shape[inferred] = x.numel() / known;
  return shape;
}

/// The strides that show x in `shape` without a copy; false when there are none.
bool view_strides(const Tensor& x, const Shape& shape, Shape& strides) {
  strides = contiguous_strides(shape);
  if (x.numel() == 0 || x.is_contiguous()) return true;
  const ops::MergedDims<1> merged(x.shape(), {x.strides()});
  int block = merged.sizes.rank() - 1;
  int64_t inside = 1;  // how much of the current block the dims right of i use up
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (inside == merged.sizes[block]) {
      --block;
      inside = 1;
    }
    if (merged.sizes[block] % (inside * shape[i]) != 0) return false;
    strides[i] = merged.strides[0][block] * inside;
    inside *= shape[i];
  }
  return true;
}

/// A recorded view; its gradient is the gradient in the old shape.
Tensor reshaped(const char* name, const Tensor& x, const Shape& shape, const Shape& strides) {
  return record_view(name, view_of(x, shape, strides, x.offset()), x,
                     [](const Backward& b) -> Grads { return {reshape(b.grad(), b.input_shape(0))}; });
}

}  // namespace

Tensor view(const Tensor& x, const Shape& wanted) {
  const Shape shape = infer_size("view", x, wanted);
  Shape strides;
  ONESTEP_CHECK(ShapeError, view_strides(x, shape, strides), "view: shape ", x.shape(), " with strides ", x.strides(),
                " cannot be seen as ", shape, " without a copy (use reshape, or contiguous() first)");
  return reshaped("view", x, shape, strides);
}

Tensor reshape(const Tensor& x, const Shape& wanted) {
  const Shape shape = infer_size("reshape", x, wanted);
  Shape strides;
  if (view_strides(x, shape, strides)) return reshaped("reshape", x, shape, strides);
  const Tensor copy = clone(x);  // which nobody else sees: not a view
  return record("reshape", view_of(copy, shape, contiguous_strides(shape), 0), {copy}, {},
                [](const Backward& b) -> Grads { return {reshape(b.grad(), b.input_shape(0))}; });
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  const int first = normalize_dim("flatten", start_dim, x.dim()), last = normalize_dim("flatten", end_dim, x.dim());
  ONESTEP_CHECK(ShapeError, first <= last, "flatten: start_dim ", start_dim, " comes after end_dim ", end_dim, " for shape ",
                x.shape());
  if (first == last && x.dim() > 0) return x;
  Shape shape;
  int64_t joined = 1;
  for (int i = 0; i < x.dim(); ++i) {
    if (i < first || i > last)
      shape.push_back(x.shape()[i]);
    else
      joined *= x.shape()[i];
    if (i == last) shape.push_back(joined);
  }
  return reshape(x, x.dim() == 0 ? Shape{1} : shape);
}

Tensor permute(const Tensor& x, const Shape& dims) {
  ONESTEP_CHECK(ShapeError, dims.rank() == x.dim(), "permute: dims ", dims, " for a tensor of shape ", x.shape(),
                " (name each dim once)");
  normalize_dims("permute", dims, x.dim());  // refuses repeated dims
  Shape shape = x.shape(), strides = x.strides(), inverse = x.shape();
  for (int i = 0; i < x.dim(); ++i) {
    const int from = normalize_dim("permute", dims[i], x.dim());
    shape[i] = x.shape()[from];
    strides[i] = x.strides()[from];
    inverse[from] = i;
  }
  return record_view("permute", view_of(x, shape, strides, x.offset()), x,
                     [inverse](const Backward& b) -> Grads { return {permute(b.grad(), inverse)}; });
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  const int d0 = normalize_dim("transpose", dim0, x.dim()), d1 = normalize_dim("transpose", dim1, x.dim());
  Shape shape = x.shape(), strides = x.strides();
  if (x.dim() > 0) {
    std::swap(shape[d0], shape[d1]);
    std::swap(strides[d0], strides[d1]);
  }
  return record_view("transpose", view_of(x, shape, strides, x.offset()), x,
                     [d0, d1](const Backward& b) -> Grads { return {transpose(b.grad(), d0, d1)}; });
}

Tensor t(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.dim() <= 2, "t: needs a matrix or a vector: got shape ", x.shape(),
                " (use transpose or permute)");
  return x.dim() < 2 ? reshaped("t", x, x.shape(), x.strides()) : transpose(x, 0, 1);
}

Tensor clone(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  ops::copy_values(y, x);
  return record("clone", y, {x}, {}, [](const Backward& b) -> Grads { return {b.grad()}; });
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

namespace {

/// Without the dims of size 1 that `chosen` takes.
template <class F>
Tensor squeezed(const Tensor& x, const F& chosen) {
  Shape shape, strides;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.shape()[i] == 1 && chosen(i)) continue;
    shape.push_back(x.shape()[i]);
    strides.push_back(x.strides()[i]);
  }
  return reshaped("squeeze", x, shape, strides);
}

}  // namespace

Tensor squeeze(const Tensor& x) {
  return squeezed(x, [](int) { return true; });
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  return squeezed(x, [d = normalize_dim("squeeze", dim, x.dim())](int i) { return i == d; });
}

Tensor squeeze(const Tensor& x, const Shape& wanted) {
  if (wanted.empty()) return reshaped("squeeze", x, x.shape(), x.strides());
  const Shape dims = normalize_dims("squeeze", wanted, x.dim());
  return squeezed(x, [&](int i) { return std::find(dims.begin(), dims.end(), i) != dims.end(); });
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("unsqueeze", dim, x.dim() + 1);
  Shape shape = x.shape(), strides = x.strides();
  strides.insert(d, d < x.dim() ? strides[d] * shape[d] : 1);
  shape.insert(d, 1);
  return reshaped("unsqueeze", x, shape, strides);
}

Tensor expand(const Tensor& x, const Shape& wanted) {
  const int added = wanted.rank() - x.dim();
  Shape shape = wanted;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    ONESTEP_CHECK(ShapeError, i >= added && added >= 0, "expand: -1 in ", wanted, " stands for a dim that shape ", x.shape(),
                  " does not have");
    shape[i] = x.shape()[i - added];
  }
  check_sizes("expand", shape);
  return record_view("expand", ops::expand_values("expand", x, shape), x,
                     [](const Backward& b) -> Grads { return {ops::sum_to(b.grad(), b.input_shape(0))}; });
}

namespace {

/// Zeros of `shape` with dy in the window that slice shows: what the gradient of slice is. Its own gradient is the window
/// again.
Tensor unsliced(const Tensor& dy, const Shape& shape, int d, int64_t first, int64_t last, int64_t step) {
  Tensor dx = zeros(shape, dy.dtype());
  {
    const NoGradGuard no_grad;
    Tensor window = slice(dx, d, first, last, step);
    ops::copy_values(window, dy);
  }
  return record("slice", dx, {dy}, {}, [=](const Backward& b) -> Grads { return {slice(b.grad(), d, first, last, step)}; });
}

/// The gradient of the window. It is added to what has arrived for the input if it can be, and then nothing is left to return:
/// a loop over the parts of a tensor takes no more than one pass over it.
Tensor slice_grad(const Backward& b, const Tensor& dy, int d, int64_t first, int64_t last, int64_t step) {
  Tensor* const sum = b.recording() ? nullptr : b.arrived(0);
  if (sum == nullptr) return unsliced(dy, b.input_shape(0), d, first, last, step);
  add_(slice(*sum, d, first, last, step), dy);
  return {};
}

Tensor sliced(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step, ViewKind kind) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "slice: a rank-0 tensor has no dim to slice");
  ONESTEP_CHECK(ShapeError, step >= 1, "slice: step must be at least 1: got ", step);
  const int d = normalize_dim("slice", dim, x.dim());
  const int64_t size = x.shape()[d];
  const auto clamp = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t first = clamp(start), last = std::max(first, clamp(end));
  Shape shape = x.shape(), strides = x.strides();
  shape[d] = last == first ? 0 : (last - first - 1) / step + 1;
  if (shape[d] > 1) strides[d] *= step;
  const int64_t offset = x.offset() + (shape[d] == 0 ? 0 : first * x.strides()[d]);
  const auto rule = [d, first, last, step](const Backward& b) -> Grads {
    return {slice_grad(b, b.grad(), d, first, last, step)};
  };
  return record_view("slice", view_of(x, shape, strides, offset), x, rule, kind);
}

}  // namespace

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return sliced(x, dim, start, end, step, ViewKind::ordinary);
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "select: a rank-0 tensor has no dim to select from");
  const int d = normalize_dim("select", dim, x.dim());
  const int64_t size = x.shape()[d];
  ONESTEP_CHECK(IndexError, -size <= index && index < size, "select: index ", index, " is out of range for dim ", dim,
                " of shape ", x.shape());
  const int64_t place = index < 0 ? index + size : index;
  Shape shape = x.shape(), strides = x.strides();
  shape.erase(d);
  strides.erase(d);
  const int64_t offset = x.offset() + (x.numel() == 0 ? 0 : place * x.strides()[d]);
  return record_view("select", view_of(x, shape, strides, offset), x, [d, place](const Backward& b) -> Grads {
    return {slice_grad(b, unsqueeze(b.grad(), d), d, place, place + 1, 1)};
  });
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "narrow: a rank-0 tensor has no dim to narrow");
  const int d = normalize_dim("narrow", dim, x.dim());
  const int64_t size = x.shape()[d], first = start < 0 ? start + size : start;
  ONESTEP_CHECK(IndexError, first >= 0 && first <= size && length >= 0 && length <= size - first, "narrow: ", length,
                " places from ", start, " are out of range for dim ", dim, " of shape ", x.shape());
  return slice(x, d, first, first + length);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "split: a rank-0 tensor cannot be split");
  const int d = normalize_dim("split", dim, x.dim());
  int64_t total = 0;
  for (int64_t size : sizes) {
    ONESTEP_CHECK(ShapeError, size >= 0, "split: negative size ", size);
    total += std::min(size, x.shape()[d] + 1);  // no sum of sizes overflows
  }
  ONESTEP_CHECK(ShapeError, total == x.shape()[d], "split: sizes add up to ", total, " for dim ", dim, " of shape ", x.shape());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(sliced(x, d, start, start + size, 1, ViewKind::one_of_several));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "split: a rank-0 tensor cannot be split");
  const int64_t places = x.shape()[normalize_dim("split", dim, x.dim())];
  ONESTEP_CHECK(ShapeError, split_size > 0 || (split_size == 0 && places == 0), "split: split_size must be at least 1: got ",
                split_size);
  std::vector<int64_t> sizes;
  for (int64_t rest = places; rest > 0 || sizes.empty(); rest -= split_size) sizes.push_back(std::min(rest, split_size));
  return split(x, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  ONESTEP_CHECK(ShapeError, chunks > 0, "chunk: chunks must be at least 1: got ", chunks);
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "chunk: a rank-0 tensor cannot be split");
  const int64_t places = x.shape()[normalize_dim("chunk", dim, x.dim())];
  if (places > 0) return split(x, places / chunks + (places % chunks != 0), dim);
  constexpr int64_t most = int64_t{1} << 20;
  ONESTEP_CHECK(ShapeError, chunks <= most, "chunk: an empty dim takes at most ", most, " chunks: got ", chunks);
  return split(x, std::vector<int64_t>(static_cast<size_t>(chunks), 0), dim);
}

}  // namespace onestep

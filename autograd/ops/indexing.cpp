// Picking by index, and joining. Gradients of picked elements add in ascending order of the index, by one thread each.
#include "autograd/ops/indexing.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "autograd/ops/scatter.h"
#include "autograd/vector_loop.h"

namespace onestep {
namespace ops {
namespace {

/// Row-major x with one dim in the middle: [outer, size, inner].
struct AroundDim {
  AroundDim(const Shape& shape, int dim) {
    for (int i = 0; i < shape.rank(); ++i) (i < dim ? outer : i > dim ? inner : size) *= shape[i];
  }
  int64_t outer = 1, size = 1, inner = 1;
};

Shape with_size(Shape shape, int dim, int64_t size) {
  if (!shape.empty()) shape[dim] = size;
  return shape;
}

/// any_outside() of neighbours: place - lowest or size - 1 - place has the highest bit, a negative number's.
ONESTEP_EACH_ISA bool any_neighbour_outside(const int64_t* places, int64_t n, int64_t size, int64_t lowest) {
  const auto least = static_cast<uint64_t>(lowest), last = static_cast<uint64_t>(size - 1);
  uint64_t all = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<uint64_t>(places[i]);
    all |= (place - least) | (last - place);
  }
  return all >> 63 != 0;
}

bool any_outside(const Tensor& places, int64_t size, int64_t lowest = 0) {
  std::atomic<bool> found = false;
  kernels::parallel_for(places.numel(), kLoopCost, [&, first = places.data<int64_t>()](int64_t i, int64_t end) {
    if (any_neighbour_outside(first + i, end - i, size, lowest)) found = true;
  });
  return found;
}

}  // namespace

bool any_outside(const int64_t* places, int64_t n, int64_t step, int64_t size) {
  if (step == 1) return any_neighbour_outside(places, n, size, 0);
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= static_cast<uint64_t>(places[i * step]) >= static_cast<uint64_t>(size);
  return found;
}

Tensor int64_places(const char* op, const Tensor& index) {
  ONESTEP_CHECK(DTypeError, index.dtype() == DType::int64 || index.dtype() == DType::int32, op,
                ": the index must be int64 or int32: got ", index.dtype());
  return contiguous_values(to(index, DType::int64));
}

static int64_t size_along(const Shape& shape, int dim) { return shape.empty() ? 1 : shape[dim]; }

void check_places(const char* op, const Tensor& places, const Shape& shape, int dim, int64_t lowest) {
  const int64_t size = size_along(shape, dim);
  const auto* const first = places.data<int64_t>();
  for (int64_t i = 0; i < places.numel(); ++i)
    ONESTEP_CHECK(IndexError, lowest <= first[i] && first[i] < size, op, ": index ", first[i], " is out of range for dim ", dim,
                  " of shape ", shape);
}

Tensor checked_index(const char* op, const Tensor& index, const Shape& shape, int dim, int64_t lowest) {
  Tensor places = int64_places(op, index);
  if (any_outside(places, size_along(shape, dim), lowest)) check_places(op, places, shape, dim, lowest);
  return places;
}

Tensor checked_from_start(const char* op, const Tensor& index, const Shape& shape, int dim) {
  const NoGradGuard no_grad;
  Tensor places = int64_places(op, index);
  const int64_t size = size_along(shape, dim);
  if (!any_outside(places, size)) return places;  // most often
  check_places(op, places, shape, dim, -size);
  return where(lt(places, 0), add(places, size), places);
}

/// to[r, j] = from[r, picked[j]]: [rows, size] -> [rows, count]. Four rows at once, for which an index is read once.
template <class T>
void take_columns(const T* from, int64_t size, const int64_t* picked, int64_t count, T* to, int64_t rows) {
  kernels::parallel_for(rows, kLoopCost * static_cast<double>(count), [=](int64_t r, int64_t end) {
    for (; r + 4 <= end; r += 4)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = r; i < r + 4; ++i) to[i * count + j] = from[i * size + picked[j]];
    for (; r < end; ++r)
      for (int64_t j = 0; j < count; ++j) to[r * count + j] = from[r * size + picked[j]];
  });
}

Tensor take(const Tensor& x, int dim, const Tensor& index) {
  const int64_t count = index.numel();
  const Tensor rows = contiguous_values(x);
  Tensor y = empty(with_size(x.shape(), dim, count), x.dtype());
  const AroundDim around(x.shape(), dim);
  dispatch_size(x.dtype(), [&]<class T>() {
    const T* from = units<T>(rows);
    const auto* picked = index.data<int64_t>();
    T* to = mutable_units<T>(y);
    const int64_t n = around.inner;
    if (n == 1 && around.outer >= 4) return take_columns(from, around.size, picked, count, to, around.outer);
    kernels::parallel_for(y.numel() / std::max<int64_t>(n, 1), 2 + 0.2 * static_cast<double>(n), [=](int64_t i, int64_t end) {
      while (i < end) {
        const T* const block = from + i / count * around.size * n;
        const int64_t first = i - i % count, stop = std::min(end, first + count);  // as far as this block is picked from
        if (n == 1)
          for (; i < stop; ++i) to[i] = block[picked[i - first]];
        else
          for (; i < stop; ++i) std::copy_n(block + picked[i - first] * n, n, to + i * n);
      }
    });
  });
  return y;
}

Tensor add_taken(const Tensor& dy, const Shape& shape, int dim, const Tensor& index, std::optional<int64_t> skipped) {
  if (is_narrow(dy.dtype())) return to(add_taken(wide(dy), shape, dim, index, skipped), dy.dtype());
  const Tensor rows = contiguous_values(dy);
  Tensor dx = zeros(shape, dy.dtype());
  const AroundDim around(shape, dim);
  const int64_t count = index.numel(), n = around.inner, skip = skipped.value_or(-1);
  dispatch_floating(dy.dtype(), "index", [&]<class T>() {
    const T* from = rows.data<T>();
    const auto* picked = index.data<int64_t>();
    T* to = dx.mutable_data<T>();
    const double cost = 0.4 * static_cast<double>(count);
    for_each_column_range(around.outer, n, cost, [=](int64_t outer, int64_t begin, int64_t end) {
      const T* source = from + outer * count * n;
      T* const block = to + outer * around.size * n;
      if (n == 1 && skip < 0) {
        for (int64_t i = 0; i < count; ++i) block[picked[i]] += source[i];
        return;
      }
      for (int64_t i = 0; i < count; ++i, source += n) {
        if (picked[i] == skip) continue;
        T* const target = block + picked[i] * n;
        for (int64_t c = begin; c < end; ++c) target[c] += source[c];
      }
    });
  });
  return record("index_add", dx, {dy}, {index}, [dim, skipped](const Backward& b) -> Grads {  // what was added where, again
    const Tensor picked = flatten(b.saved(0));
    Tensor grad = index_select(b.grad(), dim, picked);
    if (skipped) grad = masked_fill(grad, unsqueeze(eq(picked, *skipped), 1), 0);
    return {reshape(grad, b.input_shape(0))};
  });
}

Tensor selected(const Tensor& x, int dim, const Tensor& index) {
  return record("index_select", take(x, dim, index), {x}, {index}, [dim](const Backward& b) -> Grads {
    return {add_taken(b.grad(), b.input_shape(0), dim, contiguous_values(b.saved(0)))};
  });
}

}  // namespace ops

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int d = normalize_dim("index_select", dim, x.dim());
  ONESTEP_CHECK(ShapeError, index.dim() <= 1, "index_select: the index must be a vector: got shape ", index.shape());
  const Tensor picked = ops::checked_index("index_select", index, x.shape(), d);
  ONESTEP_CHECK(ShapeError, x.dim() > 0 || picked.numel() == 1, "index_select: a rank-0 tensor takes one index: got ",
                picked.numel());
  return ops::selected(x, d, picked);
}

namespace {

/// Throws unless `index` has a shape in which places along `dim` of x can be gathered.
void check_gather(const Tensor& x, int dim, const Tensor& index) {
  const Shape &sizes = x.shape(), &shape = index.shape();
  ONESTEP_CHECK(ShapeError, shape.rank() == sizes.rank() || index.numel() == 0, "gather: index of shape ", shape,
                " for a tensor of shape ", sizes, " (both need the same number of dims)");
  for (int i = 0; index.numel() > 0 && i < x.dim(); ++i)
    ONESTEP_CHECK(ShapeError, i == dim || shape[i] <= sizes[i], "gather: index of shape ", shape,
                  " is larger than the tensor of shape ", sizes, " at dim ", i);
}

/// to[j] = from[picked[j]]
template <class T>
ONESTEP_EACH_ISA void gather_row(const T* from, const int64_t* picked, T* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) to[j] = from[picked[j]];
}

/// y = x at the places along `dim`; false where one of them is not in x, and nothing can be said of y. The places are checked
/// piece by piece, while they are in the caches.
bool gather_values(Tensor& y, const Tensor& x, int dim, const Tensor& places) {
  std::atomic<bool> found = true;
  Shape columns = x.strides();  // places along `dim` come from the index alone
  columns[dim] = 0;
  dispatch_size(x.dtype(), [&]<class T>() {
    const T* from = ops::units<T>(x);
    const int64_t *all = places.data<int64_t>(), step = x.strides()[dim], size = x.shape()[dim];
    T* to = ops::mutable_units<T>(y);
    ops::for_each_row<2>(y.shape(), {y.strides(), columns}, [=, &found](const auto& start, int64_t n, const auto& steps) {
      constexpr int64_t piece = 1024;
      for (int64_t j = 0; j < n; j += piece) {
        const int64_t place = start[0] + j, count = std::min(piece, n - j);
        const int64_t* const picked = all + place;
        if (ops::any_outside(picked, count, 1, size)) return found.store(false);
        const T* const row = from + start[1] + j * steps[1];
        if (steps[1] == 0 && step == 1)
          gather_row(row, picked, to + place, count);
        else
          for (int64_t i = 0; i < count; ++i) to[place + i] = row[i * steps[1] + picked[i] * step];
      }
    });
  });
  return found;
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& given) {
  const int d = normalize_dim("gather", dim, x.dim());
  const Tensor index = given.numel() == 0 ? to(given, DType::int64) : given;  // an index of nothing may have any dtype
  const Tensor from = ops::as_vector(x), places = ops::int64_places("gather", ops::as_vector(index));
  check_gather(from, d, places);
  Tensor y = empty(index.shape(), x.dtype()), target = ops::as_vector(y);
  if (y.numel() > 0 && !gather_values(target, from, d, places)) ops::check_places("gather", places, from.shape(), d);
  return record("gather", y, {x}, {index}, [d](const Backward& b) -> Grads {  // dx[index[i]] += dy[i] along dim, i ascending
    return {scatter_add_(zeros(b.input_shape(0), b.grad().dtype()), d, b.saved(0), b.grad())};
  });
}

namespace {

/// A vector without elements joins anything, as in PyTorch.
bool is_skipped(const Tensor& x) { return x.shape() == Shape(0); }

/// The dtype in which all meet, and the joined shape.
std::pair<DType, Shape> joined(TensorList tensors, int64_t dim) {
  const Tensor* shaped = tensors.begin();
  for (const Tensor& x : tensors) {
    ONESTEP_CHECK(ShapeError, x.dim() > 0, "cat: a rank-0 tensor cannot be joined (use stack)");
    if (is_skipped(*shaped)) shaped = &x;
  }
  const int d = normalize_dim("cat", dim, shaped->dim());
  Shape shape = shaped->shape();
  shape[d] = 0;
  DType dtype = tensors.begin()->dtype();
  for (const Tensor& x : tensors) {
    dtype = promote_types(dtype, x.dtype());
    if (is_skipped(x)) continue;
    bool fits = x.dim() == shape.rank();
    for (int i = 0; fits && i < shape.rank(); ++i) fits = i == d || x.shape()[i] == shape[i];
    ONESTEP_CHECK(ShapeError, fits, "cat: shape ", x.shape(), " does not join ", shaped->shape(), " along dim ", d,
                  " (all other sizes must be equal)");
    shape[d] += x.shape()[d];
  }
  return {dtype, shape};
}

/// A rule holds no list of any length, and what it saves is freed: the parts are recorded in blocks of this many.
constexpr size_t kCatBlock = 8;

/// Records that y has the parts from number `first` on, of one block; the gradient continues to what was recorded before.
Tensor record_cat(const Tensor& y, const std::vector<Tensor>& parts, const std::vector<int64_t>& starts, size_t first,
                  int dim) {
  const size_t count = std::min(kCatBlock, parts.size() - first);
  std::vector<Tensor> inputs = {y};
  std::array<int64_t, kCatBlock + 1> from{starts[first]};
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(parts[first + i]);
    from[i + 1] = starts[first + i + 1];
  }
  return record("cat", y, inputs, {}, [dim, count, from](const Backward& b) -> Grads {  // each input gets its window of dy
    Grads grads(count + 1);
    if (b.needs(0)) grads[0] = b.grad();
    for (size_t i = 0; i < count; ++i)
      if (b.needs(i + 1)) grads[i + 1] = reshape(slice(b.grad(), dim, from[i], from[i + 1]), b.input_shape(i + 1));
    return grads;
  });
}

}  // namespace

Tensor cat(TensorList tensors, int64_t dim) {
  ONESTEP_CHECK(ShapeError, tensors.size() > 0, "cat: needs at least one tensor");
  const auto [dtype, shape] = joined(tensors, dim);
  const int d = normalize_dim("cat", dim, shape.rank());
  std::vector<Tensor> parts;
  std::vector<int64_t> starts = {0};
  for (const Tensor& x : tensors) {
    parts.push_back(x.dtype() == dtype ? x : to(x, dtype));
    starts.push_back(starts.back() + (is_skipped(x) ? 0 : x.shape()[d]));
  }
  Tensor y = empty(shape, dtype);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (is_skipped(parts[i])) continue;
    Tensor window = slice(y, d, starts[i], starts[i + 1]);
    ops::copy_values(window, parts[i]);
  }
  for (size_t first = 0; first < parts.size(); first += kCatBlock) y = record_cat(y, parts, starts, first, d);
  return y;
}

Tensor stack(TensorList tensors, int64_t dim) {
  ONESTEP_CHECK(ShapeError, tensors.size() > 0, "stack: needs at least one tensor");
  std::vector<Tensor> parts;
  for (const Tensor& x : tensors) {
    ONESTEP_CHECK(ShapeError, x.shape() == tensors.begin()->shape(), "stack: shapes differ: ", tensors.begin()->shape(),
                  " and ", x.shape());
    parts.push_back(unsqueeze(x, normalize_dim("stack", dim, x.dim() + 1)));
  }
  return cat(parts, dim);
}

}  // namespace onestep

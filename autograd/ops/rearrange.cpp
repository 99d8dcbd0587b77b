// Rearrangements that are compositions of views, joins and copies.
#include <algorithm>
#include <vector>

#include "autograd/creation.h"
#include "autograd/ops/common.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {

Tensor view_as(const Tensor& x, const Tensor& other) { return view(x, other.shape()); }
Tensor reshape_as(const Tensor& x, const Tensor& other) { return reshape(x, other.shape()); }
Tensor expand_as(const Tensor& x, const Tensor& other) { return expand(x, other.shape()); }
Tensor broadcast_to(const Tensor& x, const Shape& shape) { return expand(x, shape); }
Tensor ravel(const Tensor& x) { return reshape(x, {-1}); }
Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1) { return transpose(x, axis0, axis1); }
Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1) { return transpose(x, dim0, dim1); }

Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "unflatten: a rank-0 tensor has no dim to split");
  const int d = normalize_dim("unflatten", dim, x.dim());
  Shape shape;
  int64_t known = 1, inferred = 0;
  for (const int64_t size : sizes) {
    if (size == -1)
      ++inferred;
    else
      known *= size;
  }
  const int64_t places = x.shape()[d];
  const bool fits = inferred == 0 ? known == places : inferred == 1 && known > 0 && places % known == 0;
  ONESTEP_CHECK(ShapeError, fits, "unflatten: sizes ", sizes, " do not make up dim ", dim, " of shape ", x.shape());
  for (int i = 0; i < d; ++i) shape.push_back(x.shape()[i]);
  for (const int64_t size : sizes) shape.push_back(size == -1 ? places / known : size);
  for (int i = d + 1; i < x.dim(); ++i) shape.push_back(x.shape()[i]);
  return view(x, shape);
}

Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination) {
  ONESTEP_CHECK(ShapeError, source.rank() == destination.rank(), "movedim: lists of dims differ in length: ", source, " and ",
                destination);
  Shape order = Shape::filled(x.dim(), -1);
  std::vector<bool> moved(static_cast<size_t>(x.dim()));
  for (const Shape* dims : {&source, &destination})
    if (!dims->empty() && x.dim() > 0) normalize_dims("movedim", *dims, x.dim());  // refuses repeated ones
  for (int i = 0; i < source.rank() && x.dim() > 0; ++i) {
    const int from = normalize_dim("movedim", source[i], x.dim());
    order[normalize_dim("movedim", destination[i], x.dim())] = from;
    moved[static_cast<size_t>(from)] = true;
  }
  for (int place = 0, from = 0; place < x.dim(); ++place) {
    if (order[place] >= 0) continue;
    while (moved[static_cast<size_t>(from)]) ++from;
    order[place] = from++;
  }
  return permute(x, order);
}

Tensor atleast_1d(const Tensor& x) { return x.dim() > 0 ? x : reshape(x, {1}); }
Tensor atleast_2d(const Tensor& x) { return x.dim() > 1 ? x : unsqueeze(atleast_1d(x), 0); }
Tensor atleast_3d(const Tensor& x) { return x.dim() > 2 ? x : unsqueeze(atleast_2d(x), -1); }

namespace {

/// x [outer, n, inner] with dim `d` as n: all of it `blocks` times over, each place `times` times.
Tensor repeat_dim(const Tensor& x, int d, int64_t blocks, int64_t times) {
  if (blocks == 1 && times == 1) return x;
  Shape shape = x.shape();
  const int64_t n = shape[d];
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.dim(); ++i) (i < d ? outer : inner) *= i == d ? 1 : shape[i];
  shape[d] = n * blocks * times;
  return reshape(expand(reshape(x, {outer, 1, n, 1, inner}), {outer, blocks, n, times, inner}), shape);
}

/// y, which was made of x by expanding and reshaping, with memory of its own for every element.
Tensor own_elements(const Tensor& y, const Tensor& x) { return y.shares_storage(x) || !y.is_contiguous() ? clone(y) : y; }

}  // namespace

Tensor repeat(const Tensor& x, const Shape& repeats) {
  ONESTEP_CHECK(ShapeError, repeats.rank() >= x.dim(), "repeat: ", repeats, " names fewer dims than shape ", x.shape(), " has");
  Shape shape = x.shape();
  while (shape.rank() < repeats.rank()) shape.insert(0, 1);
  Tensor y = reshape(x, shape);
  for (int d = repeats.rank(); d-- > 0;) {
    ONESTEP_CHECK(ShapeError, repeats[d] >= 0, "repeat: a negative number in ", repeats);
    y = repeat_dim(y, d, repeats[d], 1);
  }
  return own_elements(y, x);
}

Tensor tile(const Tensor& x, const Shape& repeats) {
  Shape all = repeats;
  while (all.rank() < x.dim()) all.insert(0, 1);
  return repeat(x, all);
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  ONESTEP_CHECK(ShapeError, repeats >= 0, "repeat_interleave: a negative number: ", repeats);
  const Tensor from = dim ? atleast_1d(x) : ravel(x);
  const Tensor y = repeat_dim(from, normalize_dim("repeat_interleave", dim.value_or(0), from.dim()), 1, repeats);
  return own_elements(y, x);
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim) {
  ONESTEP_CHECK(DTypeError, !repeats.is_floating() && repeats.dtype() != DType::boolean,
                "repeat_interleave: the numbers must be integers: got ", repeats.dtype());
  ONESTEP_CHECK(ShapeError, repeats.dim() <= 1, "repeat_interleave: the numbers must be a vector: got shape ", repeats.shape());
  const Tensor from = dim ? atleast_1d(x) : ravel(x);
  const int d = normalize_dim("repeat_interleave", dim.value_or(0), from.dim());
  const std::vector<int64_t> counts = repeats.to_vector<int64_t>();
  if (counts.size() == 1) return repeat_interleave(from, counts[0], d);
  ONESTEP_CHECK(ShapeError, static_cast<int64_t>(counts.size()) == from.shape()[d], "repeat_interleave: ", counts.size(),
                " numbers for dim ", d, " of shape ", from.shape());
  std::vector<int64_t> places;
  for (size_t i = 0; i < counts.size(); ++i) {
    ONESTEP_CHECK(ShapeError, counts[i] >= 0, "repeat_interleave: a negative number: ", counts[i]);
    places.insert(places.end(), static_cast<size_t>(counts[i]), static_cast<int64_t>(i));
  }
  return index_select(from, d, from_values(places, static_cast<int64_t>(places.size())));
}

Tensor flip(const Tensor& x, const Shape& wanted) {
  const Shape dims = wanted.empty() ? Shape() : normalize_dims("flip", wanted, x.dim());
  Shape strides = x.strides();
  int64_t first = x.offset();
  for (const int64_t dim : dims) {
    const int d = static_cast<int>(dim);
    if (x.dim() == 0 || x.numel() == 0) break;
    first += (x.shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  Tensor y = empty(x.shape(), x.dtype());
  ops::copy_values(y, ops::view_of(x, x.shape(), strides, first));
  return record("flip", y, {x}, {}, [wanted](const Backward& b) -> Grads { return {flip(b.grad(), wanted)}; });
}

Tensor fliplr(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.dim() >= 2, "fliplr: needs at least 2 dims: got shape ", x.shape());
  return flip(x, 1);
}
Tensor flipud(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.dim() >= 1, "flipud: needs at least 1 dim: got shape ", x.shape());
  return flip(x, 0);
}

Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims) {
  if (dims.empty() && shifts.rank() == 1) return reshape(roll(ravel(x), shifts, 0), x.shape());
  ONESTEP_CHECK(ShapeError, shifts.rank() == dims.rank() && !dims.empty(), "roll: ", shifts.rank(), " shifts for ", dims.rank(),
                " dims");
  ONESTEP_CHECK(IndexError, x.dim() > 0, "roll: a rank-0 tensor has no dim ", dims[0]);
  Tensor y = x.detach();
  Shape back = shifts;
  for (int i = 0; i < dims.rank(); ++i) {
    back[i] = -shifts[i];
    const int d = normalize_dim("roll", dims[i], x.dim());
    const int64_t size = x.shape()[d];
    if (size == 0) continue;
    const int64_t first = ((-shifts[i]) % size + size) % size;
    y = cat({narrow(y, d, first, size - first), narrow(y, d, 0, first)}, d);
  }
  if (y.shares_storage(x)) y = clone(y);
  return record("roll", y, {x}, {}, [back, dims](const Backward& b) -> Grads { return {roll(b.grad(), back, dims)}; });
}

Tensor rot90(const Tensor& x, int64_t k, const Shape& dims) {
  ONESTEP_CHECK(ShapeError, dims.rank() == 2 && x.dim() >= 2, "rot90: needs 2 dims of at least 2: got ", dims, " of shape ",
                x.shape());
  normalize_dims("rot90", dims, x.dim());  // refuses repeated ones
  switch (((k % 4) + 4) % 4) {
    case 1:
      return transpose(flip(x, dims[1]), dims[0], dims[1]);
    case 2:
      return flip(x, dims);
    case 3:
      return transpose(flip(x, dims[0]), dims[0], dims[1]);
    default:
      return clone(x);
  }
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  ONESTEP_CHECK(IndexError, x.dim() > 0, "unbind: a rank-0 tensor has no places");
  const int d = normalize_dim("unbind", dim, x.dim());
  std::vector<Tensor> places;
  if (x.shape()[d] == 0) return places;
  for (const Tensor& part : split(x, 1, d)) places.push_back(squeeze(part, d));
  return places;
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  ONESTEP_CHECK(ShapeError, sections > 0, "tensor_split: sections must be at least 1: got ", sections);
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "tensor_split: a rank-0 tensor cannot be split");
  const int d = normalize_dim("tensor_split", dim, x.dim());
  const int64_t places = x.shape()[d], size = places / sections, larger = places % sections;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < sections; ++i) sizes.push_back(size + (i < larger ? 1 : 0));
  return split(x, sizes, d);
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int64_t dim) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "tensor_split: a rank-0 tensor cannot be split");
  const int d = normalize_dim("tensor_split", dim, x.dim());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t end : indices) {
    parts.push_back(slice(x, d, start, end));
    start = end;
  }
  parts.push_back(slice(x, d, start, x.shape()[d]));
  return parts;
}

std::vector<Tensor> meshgrid(TensorList tensors, GridIndexing indexing) {
  std::vector<Tensor> grids;
  Shape shape;
  for (const Tensor& x : tensors) {
    ONESTEP_CHECK(ShapeError, x.dim() <= 1, "meshgrid: needs vectors: got shape ", x.shape());
    shape.push_back(x.numel());
  }
  ONESTEP_CHECK(ShapeError, shape.rank() > 0, "meshgrid: needs at least one tensor");
  const bool swaps = indexing == GridIndexing::xy && shape.rank() > 1;
  int d = 0;
  for (const Tensor& x : tensors) {
    Shape along = Shape::filled(shape.rank(), 1);
    along[d++] = x.numel();
    const Tensor grid = expand(view(x, along), shape);
    grids.push_back(swaps ? transpose(grid, 0, 1) : grid);
  }
  return grids;
}

Tensor hstack(TensorList tensors) {
  const std::vector<Tensor> parts = ops::each(tensors, atleast_1d);
  return cat(parts, !parts.empty() && parts[0].dim() > 1 ? 1 : 0);
}
Tensor vstack(TensorList tensors) { return cat(ops::each(tensors, atleast_2d), 0); }
Tensor dstack(TensorList tensors) { return cat(ops::each(tensors, atleast_3d), 2); }
Tensor column_stack(TensorList tensors) {
  return cat(ops::each(tensors, [](const Tensor& x) { return x.dim() > 1 ? x : reshape(x, {-1, 1}); }), 1);
}

}  // namespace onestep

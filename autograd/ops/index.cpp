// Python's x[...]: what is basic (positions, slices, None, Ellipsis) makes a view; index tensors then pick from that view,
// whose indexed dims go to the front and become one.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/ops/scatter.h"
#include "autograd/ops/write_expanded.h"

namespace onestep {

TensorIndex::TensorIndex(const char* dots) : kind(Ellipsis) {
  ONESTEP_CHECK(ShapeError, std::string_view(dots) == "...", "index: \"", dots, "\" is no index (only \"...\" is)");
}

namespace {

/// A view, and the int64 tensors that index its dims.
struct Indexed {
  Tensor view;
  std::vector<std::optional<Tensor>> tensors;  ///< One a dim of `view`, up to the last that is indexed.
};

/// A tensor that chooses by truth: a bool one, or one of uint8 as in PyTorch's old masks.
bool is_mask(const Tensor& index) { return index.dtype() == DType::boolean || index.dtype() == DType::uint8; }

bool picks(const TensorIndex& index) { return std::holds_alternative<Tensor>(index.kind); }

/// Whether an index is basic and not a whole dim.
bool makes_view(const TensorIndex& index) {
  if (const auto* slice = std::get_if<Slice>(&index.kind)) return slice->start || slice->stop || slice->step != 1;
  return std::holds_alternative<int64_t>(index.kind) || std::holds_alternative<std::nullopt_t>(index.kind);
}

/// Whether a slice is a whole dim of this size: such a one makes no view, so that x[:] = v writes to x itself, as in PyTorch.
bool takes_all(const Slice& slice, int64_t size) {
  return slice.start.value_or(0) == 0 && slice.stop.value_or(size) >= size && slice.step == 1;
}

/// How many dims of x an index takes away.
int consumed(const TensorIndex& index) {
  if (std::holds_alternative<std::nullopt_t>(index.kind) || std::holds_alternative<EllipsisIndex>(index.kind)) return 0;
  const Tensor* tensor = std::get_if<Tensor>(&index.kind);
  return tensor != nullptr && is_mask(*tensor) ? tensor->dim() : 1;
}

/// A mask as one vector of positions for each of its dims; one without dims keeps all, as a new dim of size 1, or nothing.
void add_mask(Indexed& to, const Tensor& mask, int dim) {
  if (mask.dim() == 0) {
    to.view = unsqueeze(to.view, dim);
    to.tensors.emplace_back(zeros(mask.item<bool>() ? 1 : 0, DType::int64));
    return;
  }
  for (int i = 0; i < mask.dim(); ++i)
    ONESTEP_CHECK(ShapeError, dim + i < to.view.dim() && mask.shape()[i] == to.view.shape()[dim + i], "index: a mask of shape ",
                  mask.shape(), " does not fit dim ", dim, " of shape ", to.view.shape());
  const Tensor places = nonzero(mask);
  for (int i = 0; i < mask.dim(); ++i) to.tensors.emplace_back(select(places, 1, i));
}

/// The basic part of the indices applied to x.
Indexed apply_basic(const Tensor& x, const IndexList& indices) {
  int taken = 0, dots = 0;
  for (const TensorIndex& index : indices) {
    taken += consumed(index);
    dots += std::holds_alternative<EllipsisIndex>(index.kind) ? 1 : 0;
  }
  ONESTEP_CHECK(IndexError, taken <= x.dim(), "index: ", taken, " indices for a tensor of shape ", x.shape());
  ONESTEP_CHECK(ShapeError, dots <= 1, "index: Ellipsis appears twice");
  Indexed result{x, {}};
  const auto dim = [&] { return static_cast<int>(result.tensors.size()); };
  for (const TensorIndex& index : indices) {
    if (const auto* position = std::get_if<int64_t>(&index.kind)) {
      result.view = select(result.view, dim(), *position);
    } else if (const auto* slice = std::get_if<Slice>(&index.kind)) {
      if (const int64_t size = result.view.size(dim()); !takes_all(*slice, size))
        result.view = onestep::slice(result.view, dim(), slice->start.value_or(0), slice->stop.value_or(size), slice->step);
      result.tensors.emplace_back();
    } else if (std::holds_alternative<std::nullopt_t>(index.kind)) {
      result.view = unsqueeze(result.view, dim());
      result.tensors.emplace_back();
    } else if (const auto* tensor = std::get_if<Tensor>(&index.kind)) {
      ONESTEP_CHECK(DTypeError, !tensor->is_floating(), "index: an index must be int64, int32 or bool: got ", tensor->dtype());
      if (is_mask(*tensor))
        add_mask(result, *tensor, dim());
      else
        result.tensors.emplace_back(to(*tensor, DType::int64));
    } else {
      result.tensors.resize(result.tensors.size() + static_cast<size_t>(x.dim() - taken));
    }
  }
  while (!result.tensors.empty() && !result.tensors.back()) result.tensors.pop_back();
  return result;
}

/// How index tensors pick from a view: its indexed dims go to the front and become one, into which `places` point.
struct Recipe {
  Shape order;       ///< Of the view's dims, the indexed ones first.
  int count = 0;     ///< How many of them are indexed; 0: the view itself is the result.
  int position = 0;  ///< Where the dims of `places` are in the result.
};

/// The recipe, and the int64 places, of the shape to which the index tensors broadcast. Throws ShapeError on one outside.
std::pair<Recipe, Tensor> recipe_of(const Indexed& indexed) {
  Recipe recipe;
  Shape rest, shape;
  bool adjacent = true;
  for (int d = 0; d < indexed.view.dim(); ++d) {
    const auto at = static_cast<size_t>(d);
    if (at >= indexed.tensors.size() || !indexed.tensors[at]) {
      rest.push_back(d);
      continue;
    }
    adjacent = adjacent && (recipe.order.empty() || recipe.order.back() == d - 1);
    recipe.order.push_back(d);
    shape = broadcast_shapes("index", shape, indexed.tensors[at]->shape());
  }
  recipe.count = recipe.order.rank();
  recipe.position = adjacent && recipe.count > 0 ? static_cast<int>(recipe.order[0]) : 0;
  Tensor places = zeros({}, DType::int64);
  for (const int64_t d : recipe.order) {
    const Tensor positions =
        ops::checked_from_start("index", *indexed.tensors[static_cast<size_t>(d)], indexed.view.shape(), static_cast<int>(d));
    places = d == recipe.order[0] ? positions : add(mul(places, indexed.view.size(d)), positions);
  }
  for (const int64_t d : rest) recipe.order.push_back(d);
  return {recipe, places};
}

/// The order that brings the first `moved` of `rank` dims to `position`.
Shape moved_to(int position, int moved, int rank) {
  Shape order;
  for (int d = 0; d < position; ++d) order.push_back(moved + d);
  for (int d = 0; d < moved; ++d) order.push_back(d);
  for (int d = moved + position; d < rank; ++d) order.push_back(d);
  return order;
}

/// The elements of `view` at `places`: a row-major copy, unless they are all.
Tensor picked(const Tensor& view, const Recipe& recipe, const Tensor& places) {
  if (recipe.count == 0) return view;
  if (recipe.count == 1 && places.dim() == 1) return index_select(view, recipe.position, places);
  const Tensor front = permute(view, recipe.order);
  const Tensor rows = index_select(flatten(front, 0, recipe.count - 1), 0, flatten(places));
  Shape shape = places.shape();
  for (int d = recipe.count; d < front.dim(); ++d) shape.push_back(front.shape()[d]);
  return clone(permute(reshape(rows, shape), moved_to(recipe.position, places.dim(), shape.rank())));
}

/// Writes row i of `values` (contiguous), or adds it, to the place `places[i]` of the first `count` dims of `front`; in this
/// order.
void put_rows(const Tensor& front, int count, const Tensor& places, const Tensor& values, bool accumulate) {
  const int64_t n = places.numel();
  Shape shape = n, strides = 1, once = 1;
  for (int d = count; d < front.dim(); ++d) {
    shape.push_back(front.shape()[d]);
    strides.push_back(front.strides()[d]);
    once.push_back(0);
  }
  Tensor offsets = empty(n, DType::int64);  // of the rows, in elements
  const auto* const place = places.data<int64_t>();
  auto* const offset = offsets.mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    int64_t left = place[i];
    offset[i] = 0;
    for (int d = count; d-- > 0; left /= front.shape()[d]) offset[i] += left % front.shape()[d] * front.strides()[d];
  }
  Tensor target = ops::view_of(front, shape, strides, front.offset());
  const Tensor index = ops::view_of(offsets, shape, once, 0);
  const Tensor rows = ops::view_of(values, shape, contiguous_strides(shape), values.offset());
  accumulate ? ops::add_at(target, 0, index, rows) : ops::replace_at(target, 0, index, rows);
}

/// put_rows with values of any strides, also where expand has repeated elements of `front`: of their values the last one stays,
/// or all are added.
void put_repeated(const Tensor& front, int count, const Tensor& places, const Tensor& values, bool accumulate) {
  for (int d = count; d < front.dim(); ++d) {
    const int64_t n = front.shape()[d];
    if (front.strides()[d] != 0 || n < 2) continue;
    const Tensor once = narrow(front, d, 0, 1);
    for (int64_t i = accumulate ? 0 : n - 1; i < n; ++i)
      put_repeated(once, count, places, narrow(values, places.dim() + d - count, i, 1), accumulate);
    return;
  }
  put_rows(front, count, ops::contiguous_values(places), ops::contiguous_values(values), accumulate);
}

/// put_rows for a vector of places along one dim of a view without repeated elements, which is walked as it lies.
void put_along(Tensor view, int dim, const Tensor& places, const Tensor& values, bool accumulate) {
  const Tensor apart = ops::readable_while_writing(view, places);
  Shape strides = Shape::filled(view.dim(), 0);
  strides[dim] = apart.strides()[0];
  const Tensor index = ops::view_of(apart, values.shape(), strides, apart.offset());
  accumulate ? ops::add_at(view, dim, index, values) : ops::replace_at(view, dim, index, values);
}

/// Writes `values`, which broadcast to what `picked` gives, to those places of `view`, or adds them; not recorded.
void put(const char* op, const Tensor& view, const Recipe& recipe, const Tensor& places, const Tensor& values,
         bool accumulate) {
  const NoGradGuard no_grad;
  if (recipe.count == 0) {
    accumulate ? add_(view, values) : copy_(view, values);
    return;
  }
  if (accumulate && is_narrow(view.dtype())) {
    const Tensor once = ops::unrepeated(view), wide = ops::widened(once);
    put(op, expand(wide, view.shape()), recipe, places, ops::widened(values), accumulate);
    copy_(once, wide);
    return;
  }
  const Tensor front = permute(view, recipe.order);
  Shape shape = places.shape();
  for (int d = recipe.count; d < front.dim(); ++d) shape.push_back(front.shape()[d]);
  const Shape order = moved_to(recipe.position, places.dim(), shape.rank());
  Shape result = shape;
  for (int d = 0; d < shape.rank(); ++d) result[d] = shape[static_cast<int>(order[d])];
  const Tensor apart = ops::readable_while_writing(view, ops::expand_values(op, values, result));
  if (recipe.count == 1 && places.dim() == 1 && ops::unrepeated(view).shape() == view.shape())
    put_along(view, recipe.position, places, apart, accumulate);
  else
    put_repeated(front, recipe.count, places, permute(apart, ops::inverse_order(order)), accumulate);
}

}  // namespace

Tensor index(const Tensor& x, const IndexList& indices) {
  const Indexed indexed = apply_basic(x, indices);
  if (indexed.tensors.empty()) return &indexed.view.impl() == &x.impl() ? expand(x, x.shape()) : indexed.view;  // always a view
  const auto [recipe, places] = recipe_of(indexed);
  return picked(indexed.view, recipe, places);
}

namespace {

/// x with 0 at the places that an index_put writes to, in a view with this layout of x in rows. So is its gradient.
Tensor with_zeros_put(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset, const Recipe& recipe,
                      const Tensor& places) {
  Tensor y = empty(x.shape(), x.dtype());
  ops::copy_values(y, x);
  put("index_put", ops::view_of(y, shape, strides, offset), recipe, places, zeros({}, x.dtype()), false);
  return record("index_put", y, {x}, {places}, [=](const Backward& b) -> Grads {
    return {with_zeros_put(b.grad(), shape, strides, offset, recipe, b.saved(0))};
  });
}

/// index_put by the name `op`.
Tensor with_put(const char* op, const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate) {
  Tensor result = empty(x.shape(), x.dtype());
  ops::copy_values(result, x);
  const Indexed indexed = apply_basic(result, indices);
  const auto [recipe, places] = recipe_of(indexed);
  put(op, indexed.view, recipe, places, values.values(), accumulate);
  const Shape shape = indexed.view.shape(), strides = indexed.view.strides();
  return record(op, result, {x, values}, {places},
                [=, recipe = recipe, offset = indexed.view.offset()](const Backward& b) -> Grads {
                  Tensor dx = b.grad(), dvalues;  // dx = dy, 0 where values were written; dvalues = dy there
                  if (b.needs(1)) {
                    const Tensor dy = contiguous(b.grad()), view = as_strided(dy, shape, strides, dy.offset() + offset);
                    dvalues = ops::sum_to(picked(view, recipe, b.saved(0)), b.input_shape(1));
                  }
                  if (b.needs(0) && !accumulate) dx = with_zeros_put(dx, shape, strides, offset, recipe, b.saved(0));
                  return {dx, dvalues};
                });
}

/// The mask, as it broadcasts to x, where it is the only index and begins with x's first dims; else undefined.
Tensor lone_mask(const Tensor& x, const IndexList& indices) {
  const Tensor* const mask = indices.size() == 1 ? std::get_if<Tensor>(&indices.begin()->kind) : nullptr;
  if (!mask || mask->dtype() != DType::boolean || mask->dim() == 0 || mask->dim() > x.dim()) return {};
  if (mask->shape() != x.shape().first(mask->dim())) return {};
  Shape shape = mask->shape();
  while (shape.rank() < x.dim()) shape.push_back(1);
  return reshape(*mask, shape);
}

}  // namespace

Tensor index_put(const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate) {
  return with_put("index_put", x, indices, to(values, x.dtype()), accumulate);
}

Tensor index_put_(const Tensor& target, const IndexList& indices, const Tensor& given, bool accumulate) {
  Tensor x = target;
  const Tensor values = to(given, x.dtype());
  if (std::none_of(indices.begin(), indices.end(), picks)) {
    const Tensor view = apply_basic(x, indices).view;  // through which a write saves nothing
    accumulate ? add_(view, values) : copy_(view, values);
    return x;
  }
  if (std::any_of(indices.begin(), indices.end(), makes_view)) {  // which is then what is written to, as in PyTorch
    const Indexed indexed = apply_basic(x, indices);
    std::vector<TensorIndex> rest;
    for (const auto& tensor : indexed.tensors) rest.push_back(tensor ? TensorIndex(*tensor) : TensorIndex(Slice()));
    index_put_(indexed.view, rest, values, accumulate);
    return x;
  }
  ops::unrepeated(x).check_writable("index_put_");  // elements may share memory
  const bool recorded = detail::should_record({x, values});
  if (!recorded && !accumulate && values.numel() == 1 && x.is_contiguous())
    if (const Tensor mask = lone_mask(x, indices); mask.defined()) return masked_fill_(x, mask, reshape(values, {}));
  const auto write = [&] {
    const Indexed indexed = apply_basic(x, indices);
    const auto [recipe, places] = recipe_of(indexed);
    put("index_put_", indexed.view, recipe, places, values.values(), accumulate);
  };
  if (!recorded) return write(), x;
  return ops::write_recorded("index_put_", x, with_put("index_put_", x, indices, values, accumulate), write);
}

Tensor index_put_(const Tensor& x, const IndexList& indices, Scalar value) {
  ops::check_fits("index_put_", value, x.dtype());
  return index_put_(x, indices, full({}, value, x.dtype()));
}

namespace {

/// Where `truth`, in rows, is true: int64 [N]. Without branches, since nobody could predict them.
Tensor true_places(const Tensor& truth) {
  const bool* const first = truth.data<bool>();
  const int64_t count = std::count(first, first + truth.numel(), true);
  Tensor places = empty(count, DType::int64);
  auto* const to = places.mutable_data<int64_t>();
  for (int64_t i = 0, found = 0; found < count; ++i) {
    to[found] = i;
    found += first[i];
  }
  return places;
}

}  // namespace

Tensor nonzero(const Tensor& x) {
  const NoGradGuard no_grad;
  const Tensor flat = true_places(ops::contiguous_values(x.dtype() == DType::boolean ? x : ne(x, 0)));
  const int64_t count = flat.numel(), rank = x.dim();
  if (rank == 1) return view(flat, {count, 1});
  Tensor places = empty({count, rank}, DType::int64);
  if (rank == 0) return places;
  kernels::parallel_for(count, 2.0 * static_cast<double>(rank),
                        [&, to = places.mutable_data<int64_t>()](int64_t i, int64_t end) {
                          const auto* const place = flat.data<int64_t>();
                          const int64_t columns = x.shape().back();
                          Shape at = Shape::filled(x.dim(), 0);  // of the row that begins at `row`
                          int64_t row = -columns;
                          for (; i < end; ++i) {
                            if (place[i] - row >= columns) {
                              int64_t left = place[i] / columns;
                              row = left * columns;
                              for (int d = x.dim() - 1; d-- > 0; left /= x.shape()[d]) at[d] = left % x.shape()[d];
                            }
                            at[x.dim() - 1] = place[i] - row;
                            std::copy(at.begin(), at.end(), to + i * rank);
                          }
                        });
  return places;
}

std::vector<Tensor> nonzero_numpy(const Tensor& x) {
  const Tensor places = nonzero(x.dim() == 0 ? x.view(1) : x);
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < places.size(1); ++d) columns.push_back(select(places, 1, d));
  return columns;
}

}  // namespace onestep

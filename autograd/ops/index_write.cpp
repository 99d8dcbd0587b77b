// Writing whole slices along a dim, and adding to them.
#include "autograd/ops/scatter.h"
#include "autograd/ops/write_expanded.h"
#include "autograd/ops_order.h"

namespace onestep {
namespace {

/// What write_slices needs, after all checks.
struct Slices {
  int dim = 0;
  Tensor places, source;  ///< Of one shape, that of the slices; all slices share the places.
};

Slices checked_slices(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& given) {
  ops::check_same_dtype(op, x, given);
  ONESTEP_CHECK(ShapeError, index.dim() <= 1, op, ": the index must be a vector: got shape ", index.shape());
  const int d = normalize_dim(op, dim, x.dim());
  const Tensor source = ops::as_vector(given);
  Shape wanted = ops::as_vector(x).shape();
  wanted[d] = index.numel();
  ONESTEP_CHECK(ShapeError, source.shape() == wanted, op, ": ", index.numel(), " slices along dim ", d,
                " of a tensor of shape ", x.shape(), " have shape ", wanted, ": got a source of shape ", given.shape());
  const Tensor places = ops::readable_while_writing(x, ops::checked_index(op, index, x.shape(), d));
  Shape strides = Shape::filled(wanted.rank(), 0);
  strides[d] = 1;
  return {d, ops::view_of(places, wanted, strides, places.offset()), source};
}

/// write(y, dim, places, source), as add_at and replace_at do.
template <class Write>
void write_slices(Tensor& y, const Slices& slices, const Write& write) {
  Tensor target = ops::as_vector(y);
  write(target, slices.dim, slices.places, slices.source);
}

/// alpha source, in source's dtype.
Tensor scaled(const char* op, const Tensor& source, Scalar alpha) {
  ONESTEP_CHECK(DTypeError, source.is_floating() || alpha.dtype != DType::float32, op, ": alpha is a fraction for dtype ",
                source.dtype());
  return alpha.value == 1 ? source : to(mul(source, alpha), source.dtype());
}

/// index_fill: `value` as the slices that are copied; a position may count from the end, and be named twice.
template <class Copy>
Tensor filled(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value, const Copy& copy) {
  ONESTEP_CHECK(ShapeError, value.dim() == 0, op, ": the value must be a number or a rank-0 tensor: got shape ", value.shape());
  ONESTEP_CHECK(ShapeError, index.dim() <= 1, op, ": the index must be a vector: got shape ", index.shape());
  const int d = normalize_dim(op, dim, x.dim());
  Shape shape = ops::as_vector(x).shape();
  const Tensor places = ops::checked_from_start(op, index, shape, d);
  const Tensor named = value.requires_grad() ? unique(places).values : places;
  shape[d] = named.numel();
  return copy(op, x, dim, named, expand(to(value, x.dtype()), shape));
}

Tensor added(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const Slices slices = checked_slices(op, x, dim, index, source);
  Tensor y = ops::copy_of(x);
  write_slices(y, slices, ops::add_at);
  return record(op, y, {x, source}, {source.requires_grad() ? index : Tensor()}, [d = slices.dim](const Backward& b) -> Grads {
    return {b.grad(), b.needs(1) ? reshape(index_select(b.grad(), d, b.saved(0)), b.input_shape(1)) : Tensor()};
  });
}

Tensor copied(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const Slices slices = checked_slices(op, x, dim, index, source);
  Tensor y = ops::copy_of(x);
  write_slices(y, slices, ops::replace_at);
  return record(op, y, {x, source}, {index}, [d = slices.dim](const Backward& b) -> Grads {
    return {b.needs(0) ? index_fill(b.grad(), d, b.saved(0), 0) : Tensor(),
            b.needs(1) ? reshape(index_select(b.grad(), d, b.saved(0)), b.input_shape(1)) : Tensor()};
  });  // dx = dy, 0 where source was written; dsource = dy there
}

Tensor copied_in_place(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return ops::write_in_place(
      op, x, source, [&](const Tensor& y, const Tensor& s) { return copied(op, y, dim, index, s); },
      [&](Tensor& y, const Tensor& s) { write_slices(y, checked_slices(op, y, dim, index, s), ops::replace_at); });
}

Tensor number(const char* op, const Tensor& x, Scalar value) {
  ops::check_fits(op, value, x.dtype());
  return full({}, value, x.dtype());
}

}  // namespace

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  return added("index_add", x, dim, index, scaled("index_add", source, alpha));
}
Tensor index_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  constexpr auto op = "index_add_";
  return ops::write_in_place(
      op, x, scaled(op, source, alpha), [&](const Tensor& y, const Tensor& s) { return added(op, y, dim, index, s); },
      [&](Tensor& y, const Tensor& s) { write_slices(y, checked_slices(op, y, dim, index, s), ops::add_at); });
}

Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return copied("index_copy", x, dim, index, source);
}
Tensor index_copy_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return copied_in_place("index_copy_", x, dim, index, source);
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  return filled("index_fill", x, dim, index, value, copied);
}
Tensor index_fill_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  for (int d = 0; d < x.dim(); ++d) {  // elements that are the same memory are filled once
    if (x.strides()[d] != 0 || x.shape()[d] < 2) continue;
    const bool along = d == normalize_dim("index_fill_", dim, x.dim());
    if (along) ops::checked_from_start("index_fill_", index, x.shape(), d);
    const auto fill = [&] { index_fill_(narrow(x, d, 0, 1), dim, along ? zeros_like(index) : index, value); };
    if (!detail::should_record({x, value})) return fill(), x;
    ops::unrepeated(x).check_writable("index_fill_");
    Tensor target = x;
    return ops::write_recorded("index_fill_", target, filled("index_fill_", x, dim, index, value, copied), fill);
  }
  return filled("index_fill_", x, dim, index, value, copied_in_place);
}
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  return index_fill(x, dim, index, number("index_fill", x, value));
}
Tensor index_fill_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  return index_fill_(x, dim, index, number("index_fill_", x, value));
}

}  // namespace onestep

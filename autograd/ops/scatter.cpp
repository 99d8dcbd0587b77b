// Writing to positions along a dim that an index names element by element.
#include "autograd/ops/scatter.h"

#include <limits>

#include "autograd/ops/elementwise.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

/// The int64 places of an index into x for elements of `src`, after all checks but that they are in x.
Tensor places_of(const char* op, const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  ops::check_same_dtype(op, x, src);
  const Tensor target = ops::as_vector(x), picked = ops::as_vector(index), from = ops::as_vector(src);
  const Shape &shape = picked.shape(), &sizes = target.shape(), &sources = from.shape();
  if (picked.numel() > 0) {
    ONESTEP_CHECK(ShapeError, shape.rank() == sizes.rank() && shape.rank() == sources.rank(), op, ": index of shape ",
                  index.shape(), " and source of shape ", src.shape(), " for a tensor of shape ", x.shape(),
                  " (all need the same number of dims)");
    for (int i = 0; i < shape.rank(); ++i)
      ONESTEP_CHECK(ShapeError, shape[i] <= sources[i] && (i == dim || shape[i] <= sizes[i]), op, ": index of shape ",
                    index.shape(), " is larger than the ", shape[i] <= sources[i] ? "tensor" : "source", " of shape ",
                    shape[i] <= sources[i] ? x.shape() : src.shape(), " at dim ", i);
  }
  return ops::int64_places(op, picked);
}
/// The same after all checks.
Tensor checked_places(const char* op, const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  return ops::checked_index(op, places_of(op, x, dim, index, src), ops::as_vector(x).shape(), dim);
}

/// f(y[... index[p] ...], src[p]) for every position of a checked index.
template <class F>
void write(Tensor& y, int dim, const Tensor& places, const Tensor& src, const F& f) {
  if (places.numel() == 0) return;
  Tensor target = ops::as_vector(y);
  ops::for_each_place(target, dim, places, ops::as_vector(src), f);
}

void replace(Tensor& y, int dim, const Tensor& places, const Tensor& src, std::atomic<bool>* outside = nullptr) {
  if (places.numel() == 0) return;
  Tensor target = ops::as_vector(y);
  ops::replace_or_find_outside(target, dim, places, ops::as_vector(src), outside);
}

/// The part of src that meets the index, in its shape: a view in the graph.
Tensor under(const Tensor& index, const Tensor& src) {
  if (src.shape() == index.shape()) return src;
  Tensor part = index.numel() == 0 ? narrow(flatten(src), 0, 0, 0) : src;
  const Shape sizes = ops::as_vector(index).shape();
  for (int d = 0; index.numel() > 0 && d < src.dim(); ++d) part = narrow(part, d, 0, sizes[d]);
  return reshape(part, index.shape());
}

Tensor repeated(const char* op, Scalar value, const Tensor& index, DType dtype) {
  ops::check_fits(op, value, dtype);
  return expand(full({}, value, dtype), index.shape());
}

Tensor replaced(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& given) {
  const int d = normalize_dim(op, dim, x.dim());
  const bool short_rows = ops::as_vector(index).shape().back() < 32;  // for which one check of all takes less than many
  const Tensor places = (short_rows ? checked_places : places_of)(op, x, d, index, given), src = under(index, given);
  Tensor y = ops::copy_of(x);
  std::atomic<bool> outside = false;
  replace(y, d, places, src, short_rows ? nullptr : &outside);
  if (outside) ops::check_places(op, places, ops::as_vector(x).shape(), d);
  return record(op, y, {x, src}, {index}, [d](const Backward& b) -> Grads {
    return {b.needs(0) ? scatter(b.grad(), d, b.saved(0), 0) : Tensor(),
            b.needs(1) ? gather(b.grad(), d, b.saved(0)) : Tensor()};
  });  // dx = dy, 0 where src was written; dsrc = dy there
}

enum class ScatterReduction { sum, prod, mean, amax, amin };
constexpr auto names(ScatterReduction /*all*/) {
  return std::to_array<std::string_view>({"sum", "prod", "mean", "amax", "amin"});
}

ScatterReduction reduction(const char* op, std::string_view name) {
  const auto all = names(ScatterReduction());
  const auto* const found = std::find(all.begin(), all.end(), name);
  ONESTEP_CHECK(ConfigError, found != all.end(), op, ": no reduction is called \"", name, "\" (sum, prod, mean, amax or amin)");
  return static_cast<ScatterReduction>(found - all.begin());
}

bool saves_operands(ScatterReduction how) { return how != ScatterReduction::sum && how != ScatterReduction::mean; }

/// What any element is reduced with to itself.
template <class T>
T identity(ScatterReduction how) {
  using Limits = std::numeric_limits<T>;
  if (how == ScatterReduction::prod) return T(1);
  if (how == ScatterReduction::amax) return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  if (how == ScatterReduction::amin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return T(0);
}

/// How many elements every position of y reduces, at least 1; `own` counts its own.
Tensor counts(const Shape& shape, DType dtype, int dim, const Tensor& index, bool own) {
  const Tensor n = scatter_add_(full(shape, own ? 1 : 0, dtype), dim, index, repeated("scatter_reduce", 1, index, dtype));
  return own ? n : maximum(n, full({}, 1, dtype));
}

template <class T>
T quotient(T sum, T count) {
  if constexpr (is_floating(dtype_of<T>()))
    return sum / count;
  else  // rounded down
    return static_cast<T>(sum / count - (sum % count < 0 ? 1 : 0));
}

/// y = the elements of src reduced at their places, with y's own where `include_self`.
void reduce_at(Tensor& y, int d, const Tensor& places, const Tensor& src, ScatterReduction how, bool include_self) {
  const NoGradGuard no_grad;
  if (is_narrow(y.dtype())) {  // rounded once, at the end
    Tensor result = ops::widened(y);
    reduce_at(result, d, places, ops::widened(src), how, include_self);
    return ops::copy_values(y, result);
  }
  if (!include_self) write(y, d, places, src, [how]<class T>(T& v, T) { v = identity<T>(how); });
  if (how == ScatterReduction::prod) return write(y, d, places, src, []<class T>(T& v, T s) { v = ops::times(v, s); });
  if (how == ScatterReduction::amax) return write(y, d, places, src, []<class T>(T& v, T s) { v = s > v || s != s ? s : v; });
  if (how == ScatterReduction::amin) return write(y, d, places, src, []<class T>(T& v, T s) { v = s < v || s != s ? s : v; });
  write(y, d, places, src, []<class T>(T& v, T s) { v = ops::plus(v, s); });
  if (how == ScatterReduction::sum || places.numel() == 0) return;
  const Tensor n = counts(ops::as_vector(y).shape(), y.dtype(), d, places, include_self).reshape(y.shape());
  ops::copy_values(y, ops::zip("scatter_reduce", y, n, ops::Loop{[](auto sum, auto count) { return quotient(sum, count); }}));
}

/// dsrc of a product: the product of the others, where src is 0 taken without it; x is the tensor, y the result.
Tensor product_source_grad(const Tensor& dy, const Tensor& x, const Tensor& src, const Tensor& y, int d, const Tensor& index,
                           bool include_self) {
  const Tensor zero = eq(src, 0), none = zeros(x.shape(), x.dtype());
  const Tensor zeros_there = gather(scatter_add(none, d, index, to(zero, x.dtype())), d, index);
  const Tensor only_zero = logical_and(zero, eq(zeros_there, 1));
  const Tensor without = scatter_reduce(x, d, index, masked_fill(src, only_zero, 1), "prod", include_self);
  const Tensor others = div(gather(mul(dy, y), d, index), masked_fill(src, zero, 1));
  const Tensor dsrc = where(only_zero, gather(mul(dy, without), d, index), others);
  if (!dsrc.requires_grad() || !any(gt(zeros_there, 1)).item<bool>()) return dsrc;
  return record("scatter_reduce", dsrc.values(), {dsrc}, {}, [](const Backward&) -> Grads {  // as in PyTorch
    fail<GradError>("scatter_reduce: a product with several zeros has no second derivative here");
  });
}

Grads reduction_grads(const Backward& b, int d, ScatterReduction how, bool include_self) {
  if (how == ScatterReduction::sum && include_self && !b.needs(1)) return {b.grad(), Tensor()};  // asks for nothing saved
  const Tensor &dy = b.grad(), &index = b.saved(0), &x = b.saved(1), &src = b.saved(2), &y = b.saved(3);
  Tensor dx = dy, dsrc;
  if (how == ScatterReduction::mean)
    dx = to(div(dy, counts(dy.shape(), compute_type(dy.dtype()), d, index, include_self)), dy.dtype());
  if (!saves_operands(how)) {
    if (b.needs(1)) dsrc = gather(dx, d, index);
  } else if (how == ScatterReduction::prod) {
    if (b.needs(1)) dsrc = product_source_grad(dy, x, src, y, d, index, include_self);
    if (b.needs(0)) {
      const Tensor divisor = masked_fill(x, eq(x, 0), 1);
      dx = div(mul(dy, scatter_reduce(divisor, d, index, src, "prod", include_self)), divisor);
    }
  } else {  // the extrema share it evenly
    const Tensor own = to(include_self ? eq(x, y) : zeros(x.shape(), DType::boolean), dy.dtype());
    const Tensor chosen = to(eq(src, gather(y, d, index)), dy.dtype());
    const Tensor share = div(dy, maximum(scatter_add(own, d, index, chosen), full({}, 1, dy.dtype())));
    dx = include_self ? mul(own, share) : dy;
    dsrc = mul(chosen, gather(share, d, index));
  }
  if (!include_self && b.needs(0)) dx = scatter(dx, d, index, 0);
  return {dx, dsrc};
}

Tensor reduced(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& given, ScatterReduction how,
               bool include_self) {
  const int d = normalize_dim(op, dim, x.dim());
  ONESTEP_CHECK(DTypeError, how != ScatterReduction::mean || x.dtype() != DType::boolean, op, ": no mean of bools");
  const Tensor places = checked_places(op, x, d, index, given), src = under(index, given);
  Tensor y = ops::copy_of(x);
  reduce_at(y, d, places, src, how, include_self);
  const bool keeps = saves_operands(how);
  const bool needs_index = how != ScatterReduction::sum || !include_self || src.requires_grad();
  return record(op, y, {x, src},
                {needs_index ? index : Tensor(), keeps ? x : Tensor(), keeps ? src : Tensor(), keeps ? y : Tensor()},
                [=](const Backward& b) -> Grads { return reduction_grads(b, d, how, include_self); });
}

/// The reduction that torch.scatter calls by another name.
ScatterReduction scatter_reduction(const char* op, std::string_view name) {
  ONESTEP_CHECK(ConfigError, name == "add" || name == "multiply", op, ": no reduction is called \"", name,
                "\" (add or multiply)");
  return name == "add" ? ScatterReduction::sum : ScatterReduction::prod;
}

Tensor scattered(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                 std::string_view reduce) {
  if (reduce.empty()) return replaced(op, x, dim, index, src);
  return reduced(op, x, dim, index, src, scatter_reduction(op, reduce), true);
}

}  // namespace

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  return scattered("scatter", x, dim, index, src, reduce);
}
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value, std::string_view reduce) {
  return scattered("scatter", x, dim, index, repeated("scatter", value, index, x.dtype()), reduce);
}
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return reduced("scatter_add", x, dim, index, src, ScatterReduction::sum, true);
}
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self) {
  return reduced("scatter_reduce", x, dim, index, src, reduction("scatter_reduce", reduce), include_self);
}

namespace {

/// The in-place form of a reduction, or without one of a replacement.
Tensor scatter_in_place(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                        std::optional<ScatterReduction> how, bool include_self = true) {
  const auto out_of_place = [&](const Tensor& y, const Tensor& s) {
    if (!how) return replaced(op, y, dim, index, s);
    return reduced(op, saves_operands(*how) ? ops::as_it_was(y) : y, dim, index, s, *how, include_self);
  };
  return ops::write_in_place(op, x, src, out_of_place, [&](Tensor& y, const Tensor& s) {
    const int d = normalize_dim(op, dim, y.dim());
    const Tensor places = ops::readable_while_writing(y, checked_places(op, y, d, index, s));
    how ? reduce_at(y, d, places, s, *how, include_self) : replace(y, d, places, s);
  });
}

}  // namespace

Tensor scatter_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  const auto how = reduce.empty() ? std::nullopt : std::optional(scatter_reduction("scatter_", reduce));
  return scatter_in_place("scatter_", x, dim, index, src, how);
}
Tensor scatter_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value, std::string_view reduce) {
  return scatter_(x, dim, index, repeated("scatter_", value, index, x.dtype()), reduce);
}
Tensor scatter_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_in_place("scatter_add_", x, dim, index, src, ScatterReduction::sum);
}
Tensor scatter_reduce_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                       bool include_self) {
  return scatter_in_place("scatter_reduce_", x, dim, index, src, reduction("scatter_reduce_", reduce), include_self);
}

}  // namespace onestep

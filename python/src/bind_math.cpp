// Reductions, order and matrix products under PyTorch's signatures.
#include <algorithm>

#include "python/src/op.h"

namespace onestep::python {
namespace {

using T = const Tensor&;
using Dims = std::optional<Shape>;
using OptionalDType = std::optional<DType>;
using Unary = Tensor (*)(T);

Shape all_or(const Dims& dims) { return dims.value_or(Shape{}); }

template <Tensor (*kOp)(T, const Shape&, bool)>
Tensor over(T x, Dims dims, bool keep) {
  return kOp(x, all_or(dims), keep);
}
Tensor converted(T x, OptionalDType dtype) { return dtype ? to(x, *dtype) : x; }

/// NAME(x), NAME(x, dim, keepdim) -> values and indices.
void bind_picking(const std::string& name, Unary whole, ValuesIndices (*along)(T, int64_t, bool)) {
  both((name + "(Tensor input)").c_str(), whole);
  both((name + "(Tensor input, int dim, bool keepdim=False)").c_str(), along);
}

/// What was found among all elements of x, with its dims of size 1 where these are kept.
Tensor of_all(T found, T x, bool keep) { return keep ? reshape(found, Shape::filled(x.dim(), 1)) : found; }

}  // namespace

void bind_reduce() {
  both(
      "sum(Tensor input, *, dtype? dtype=None)", +[](T x, OptionalDType t) { return t ? sum(x, {}, false, *t) : sum(x); });
  both(
      "sum(Tensor input, int[]? dim, bool keepdim=False, *, dtype? dtype=None)",
      +[](T x, Dims dims, bool keep, OptionalDType t) {
        return t ? sum(x, all_or(dims), keep, *t) : sum(x, all_or(dims), keep);
      });
  both(
      "mean(Tensor input, *, dtype? dtype=None)", +[](T x, OptionalDType t) { return mean(converted(x, t)); });
  both(
      "mean(Tensor input, int[]? dim, bool keepdim=False, *, dtype? dtype=None)",
      +[](T x, Dims dims, bool keep, OptionalDType t) { return mean(converted(x, t), all_or(dims), keep); });
  both(
      "nansum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
      +[](T x, Dims dims, bool keep, OptionalDType t) { return converted(nansum(converted(x, t), all_or(dims), keep), t); });
  both(
      "nanmean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
      +[](T x, Dims dims, bool keep, OptionalDType t) { return nanmean(converted(x, t), all_or(dims), keep); });
  both(
      "count_nonzero(Tensor input, int[]? dim=None)", +[](T x, Dims dims) { return count_nonzero(x, all_or(dims)); });
  both(
      "prod(Tensor input, *, dtype? dtype=None)", +[](T x, OptionalDType t) { return converted(prod(converted(x, t)), t); });
  both(
      "prod(Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None)",
      +[](T x, int64_t dim, bool keep, OptionalDType t) { return t ? prod(x, dim, keep, *t) : prod(x, dim, keep); });
  both("any(Tensor input, int[]? dim=None, bool keepdim=False)", over<any>);
  both("all(Tensor input, int[]? dim=None, bool keepdim=False)", over<all>);
#define ONESTEP_BIND(NAME)                                                                 \
  both(                                                                                    \
      #NAME "(Tensor input, bool unbiased)", +[](T x, bool u) { return NAME(x, {}, u); }); \
  both(                                                                                    \
      #NAME "(Tensor input, int[]? dim=None, *, float? correction=1, bool keepdim=False)", \
      +[](T x, Dims d, std::optional<double> correction, bool keep) {                      \
        return NAME(x, all_or(d), correction.value_or(1), keep);                           \
      });                                                                                  \
  both(                                                                                    \
      #NAME "(Tensor input, int[]? dim, bool unbiased=True, bool keepdim=False)",          \
      +[](T x, Dims d, bool unbiased, bool keep) { return NAME(x, all_or(d), unbiased, keep); });
  ONESTEP_BIND(var)
  ONESTEP_BIND(std)
#undef ONESTEP_BIND
#define ONESTEP_BIND(NAME)                                                                 \
  function(                                                                                \
      #NAME "(Tensor input, bool unbiased)", +[](T x, bool u) { return NAME(x, {}, u); }); \
  function(                                                                                \
      #NAME "(Tensor input, int[]? dim=None, *, float? correction=1, bool keepdim=False)", \
      +[](T x, Dims d, std::optional<double> correction, bool keep) {                      \
        return NAME(x, all_or(d), correction.value_or(1), keep);                           \
      });                                                                                  \
  function(                                                                                \
      #NAME "(Tensor input, int[]? dim, bool unbiased=True, bool keepdim=False)",          \
      +[](T x, Dims d, bool unbiased, bool keep) { return NAME(x, all_or(d), unbiased, keep); });
  ONESTEP_BIND(var_mean)
  ONESTEP_BIND(std_mean)
#undef ONESTEP_BIND
  const auto bind_norm = [](auto bind, const std::string& name) {
    bind((name + "(Tensor input, float? p=2, int[]? dim=None, bool keepdim=False, dtype? dtype=None)").c_str(),
         +[](T x, std::optional<double> p, Dims d, bool keep, OptionalDType t) {
           return norm(converted(x, t), p.value_or(2), all_or(d), keep);
         });
    bind((name + "(Tensor input, str p, int[]? dim=None, bool keepdim=False, dtype? dtype=None)").c_str(),
         +[](T x, std::string_view p, Dims d, bool keep, OptionalDType t) {
           if (p == "fro") return norm(converted(x, t), 2, all_or(d), keep);
           if (p != "nuc") fail<Error>("norm: p must be a number, fro or nuc: got ", p);
           nanobind::list dims;
           for (const int64_t dim : d.value_or(Shape{-2, -1})) dims.append(dim);
           const nanobind::object nuclear = nanobind::module_::import_("onestep.linalg").attr("matrix_norm");
           return tensor_of(nuclear(nanobind::steal(to_python(converted(x, t), "norm")), "nuc", dims, keep).ptr());
         });
  };
  bind_norm([](const char* s, auto f) { both(s, f); }, "norm");
  function(
      "_vector_norm(Tensor x, float ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
      +[](T x, double p, Dims d, bool keep, OptionalDType t) { return norm(converted(x, t), p, all_or(d), keep); });
  both("dist(Tensor input, Tensor other, float p=2)", dist);
  both("logsumexp(Tensor input, int[] dim, bool keepdim=False)", logsumexp);
  both(
      "cumsum(Tensor input, int dim, *, dtype? dtype=None)",
      +[](T x, int64_t dim, OptionalDType t) { return t ? cumsum(x, dim, *t) : cumsum(x, dim); });
  both(
      "cumprod(Tensor input, int dim, *, dtype? dtype=None)",
      +[](T x, int64_t dim, OptionalDType t) { return t ? cumprod(x, dim, *t) : cumprod(x, dim); });
  both("logcumsumexp(Tensor input, int dim)", logcumsumexp);
  both("cummax(Tensor input, int dim)", cummax);
  both("cummin(Tensor input, int dim)", cummin);
  both("diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", diff);
  bind_picking("max", max, max);
  bind_picking("min", min, min);
  both("max(Tensor input, Tensor other)", maximum);
  both("min(Tensor input, Tensor other)", minimum);
  both("amax(Tensor input, int[]? dim=None, bool keepdim=False)", over<amax>);
  both("amin(Tensor input, int[]? dim=None, bool keepdim=False)", over<amin>);
  both(
      "aminmax(Tensor input, *, int? dim=None, bool keepdim=False)",
      +[](T x, std::optional<int64_t> dim, bool keep) { return dim ? aminmax(x, *dim, keep) : aminmax(x); });
  both(
      "argmax(Tensor input, int? dim=None, bool keepdim=False)",
      +[](T x, std::optional<int64_t> dim, bool keep) { return dim ? argmax(x, *dim, keep) : of_all(argmax(x), x, keep); });
  both(
      "argmin(Tensor input, int? dim=None, bool keepdim=False)",
      +[](T x, std::optional<int64_t> dim, bool keep) { return dim ? argmin(x, *dim, keep) : of_all(argmin(x), x, keep); });

  both("sort(Tensor input, int dim=-1, bool descending=False, bool stable=False)", sort);
  both(
      "sort(Tensor input, *, bool? stable, int dim=-1, bool descending=False)",
      +[](T x, std::optional<bool>, int64_t dim, bool down) { return sort(x, dim, down); });
  both("argsort(Tensor input, int dim=-1, bool descending=False, bool stable=False)", argsort);
  both("topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True)", topk);
  both("kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False)", kthvalue);
  bind_picking("median", median, median);
  function(
      "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str? side=None, "
      "Tensor? sorter=None)",
      +[](T sorted, T x, bool small, bool right, std::optional<std::string_view> side, T sorter) {
        return searchsorted(sorted, x, small, right || side == "right", sorter);
      });
  function(
      "searchsorted(Tensor sorted_sequence, Scalar input, *, bool out_int32=False, bool right=False, str? side=None, "
      "Tensor? sorter=None)",
      +[](T sorted, Scalar x, bool small, bool right, std::optional<std::string_view> side, T sorter) {
        return searchsorted(sorted, x, small, right || side == "right", sorter);
      });
  function(
      "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False)",
      +[](T x, T b, bool small, bool right) { return bucketize(x, b, small, right); });
  function(
      "bucketize(Scalar input, Tensor boundaries, *, bool out_int32=False, bool right=False)",
      +[](Scalar x, T b, bool small, bool right) { return bucketize(x, b, small, right); });
  both("unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None)", unique);
  both("bincount(Tensor input, Tensor? weights=None, int minlength=0)", bincount);
  both("histc(Tensor input, int bins=100, float min=0, float max=0)", histc);
}

void bind_math() {
  long_both("matmul(Tensor input, Tensor other)", matmul);
  both("dot(Tensor input, Tensor tensor)", dot);
  long_both("mm(Tensor input, Tensor mat2)", mm);
  long_both("mv(Tensor input, Tensor vec)", mv);
  long_both("bmm(Tensor input, Tensor mat2)", bmm);
  both("outer(Tensor input, Tensor vec2)", outer);
  alias("ger", "outer");
  long_both("addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)", addmm);
  long_both("addmv(Tensor input, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)", addmv);
  long_both("baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", baddbmm);
  long_function("linear(Tensor input, Tensor weight, Tensor? bias=None)", linear);
  function(
      "tensordot(Tensor a, Tensor b, int dims=2)", +[](T a, T b, int64_t dims) { return tensordot(a, b, dims); });
  function(
      "_tensordot(Tensor a, Tensor b, int[] dims_a, int[] dims_b)",
      +[](T a, T b, Shape x, Shape y) { return tensordot(a, b, x, y); });
  both("kron(Tensor input, Tensor other)", kron);
  both(
      "cross(Tensor input, Tensor other, int? dim=None)", +[](T a, T b, std::optional<int64_t> dim) {
        const auto* const three = std::find(a.shape().begin(), a.shape().end(), 3);  // the first dim of that size
        return cross(a, b, dim.value_or(three == a.shape().end() ? -1 : three - a.shape().begin()));
      });
  both("trace(Tensor input)", trace);
  function(
      "_einsum(str equation, Tensor[] operands)",
      +[](std::string_view equation, TensorList operands) { return einsum(equation, operands); });
}

}  // namespace onestep::python

// Views, joins, masks, indexing under PyTorch's signatures.
#include "python/src/op.h"

namespace onestep::python {
namespace {

using T = const Tensor&;
using Tensors = std::vector<Tensor>;
using Integers = std::vector<int64_t>;

template <Tensor (*kOp)(TensorList)>
void bind_joining(const std::string& name) {
  function((name + "(Tensor[] tensors)").c_str(), kOp);
}

/// The bytes of x as numbers of another dtype, which divide or join the elements of the last dim. Has no gradient.
Tensor view_as_dtype(T x, DType dtype) {
  const int64_t from = size_of(x.dtype()), to = size_of(dtype);
  Shape shape = x.shape(), strides = x.strides();
  const bool bools = dtype != DType::boolean || (x.dtype() == DType::uint8 && (x.numel() == 0 || max(x).item<int64_t>() <= 1));
  ONESTEP_CHECK(DTypeError, bools, "view: the bytes of ", x.dtype(), " are not all bools (convert with to())");
  ONESTEP_CHECK(ShapeError, to == from || (x.dim() > 0 && strides[x.dim() - 1] == 1), "view: a tensor of shape ", x.shape(),
                " must have elements that lie side by side in its last dim to be shown as ", dtype);
  const auto in_elements = [&](int64_t places) {
    ONESTEP_CHECK(ShapeError, places * from % to == 0, "view: bytes of ", x.dtype(), " of shape ", x.shape(), " and strides ",
                  x.strides(), " from element ", x.offset(), " on are not whole elements of ", dtype);
    return places * from / to;
  };
  for (int i = 0; to != from && i < x.dim(); ++i) {
    int64_t& size = i == x.dim() - 1 ? shape[i] : strides[i];
    size = in_elements(size);
  }
  return {x.impl().storage, dtype, shape, strides, in_elements(x.offset())};
}

}  // namespace

void bind_shape() {
  method(
      "view(Tensor input, int[] size)", +[](T x, Shape size) { return view(x, size); });
  method(
      "view(Tensor input, dtype dtype)",
      +[](T x, DType dtype) { return dtype == x.dtype() ? view(x, x.shape()) : view_as_dtype(x, dtype); });
  both("reshape(Tensor input, int[] shape)", reshape);
  both("permute(Tensor input, int[] dims)", permute);
  method(
      "expand(Tensor input, int[] size, *, bool implicit=False)", +[](T x, Shape size, bool) { return expand(x, size); });
  both("broadcast_to(Tensor input, int[] size)", broadcast_to);
  method("view_as(Tensor input, Tensor other)", view_as);
  method("reshape_as(Tensor input, Tensor other)", reshape_as);
  method("expand_as(Tensor input, Tensor other)", expand_as);
  both("flatten(Tensor input, int start_dim=0, int end_dim=-1)", flatten);
  both("ravel(Tensor input)", ravel);
  both("unflatten(Tensor input, int dim, int[] sizes)", unflatten);
  both("transpose(Tensor input, int dim0, int dim1)", transpose);
  both("swapaxes(Tensor input, int axis0, int axis1)", swapaxes);
  both("swapdims(Tensor input, int dim0, int dim1)", swapdims);
  both("movedim(Tensor input, int[] source, int[] destination)", movedim);
  alias("moveaxis", "movedim");
  both("t(Tensor input)", t);
  both(
      "squeeze(Tensor input)", +[](T x) { return squeeze(x); });
  both(
      "squeeze(Tensor input, int[] dim)", +[](T x, Shape dims) { return squeeze(x, dims); });
  both("unsqueeze(Tensor input, int dim)", unsqueeze);
  both(
      "contiguous(Tensor input, *, any memory_format=None)", +[](T x, PyObject*) { return contiguous(x); });
  both(
      "clone(Tensor input, *, any memory_format=None)", +[](T x, PyObject*) { return clone(x); });
  both("select(Tensor input, int dim, int index)", select);
  both(
      "narrow(Tensor input, int dim, Tensor start, int length)", +[](T x, int64_t dim, T start, int64_t length) {
        ONESTEP_CHECK(Error, start.dim() == 0 && !start.is_floating() && start.dtype() != DType::boolean,
                      "narrow: start must be a rank-0 integer tensor: got ", start.dtype(), " of shape ", start.shape());
        return narrow(x, dim, start.item<int64_t>(), length);
      });
  both("narrow(Tensor input, int dim, int start, int length)", narrow);
  both("as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None)", as_strided);
  function(
      "cat(Tensor[] tensors, int dim=0)", +[](const Tensors& tensors, int64_t dim) {
        ONESTEP_CHECK(ConfigError, !tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
        return cat(tensors, dim);
      });
  alias("concat", "cat");
  alias("concatenate", "cat");
  function("stack(Tensor[] tensors, int dim=0)", stack);
  both(
      "split(Tensor tensor, int split_size_or_sections, int dim=0)",
      +[](T x, int64_t size, int64_t dim) { return split(x, size, dim); });
  both(
      "split(Tensor tensor, int[] split_size_or_sections, int dim=0)",
      +[](T x, const Integers& sizes, int64_t dim) { return split(x, sizes, dim); });
  alias("split_with_sizes", "split");
  both("chunk(Tensor input, int chunks, int dim=0)", chunk);
  both("unbind(Tensor input, int dim=0)", unbind);
  both(
      "tensor_split(Tensor input, Tensor tensor_indices_or_sections, int dim=0)", +[](T x, T where, int64_t dim) {
        ONESTEP_CHECK(DTypeError, where.dtype() == DType::int64, "tensor_split: indices or sections must be int64: got ",
                      where.dtype());
        ONESTEP_CHECK(ShapeError, where.dim() <= 1, "tensor_split: indices or sections must be a number or a vector: got ",
                      where.shape());
        return where.dim() == 0 ? tensor_split(x, where.item<int64_t>(), dim)
                                : tensor_split(x, where.to_vector<int64_t>(), dim);
      });
  both(
      "tensor_split(Tensor input, int indices_or_sections, int dim=0)",
      +[](T x, int64_t sections, int64_t dim) { return tensor_split(x, sections, dim); });
  both(
      "tensor_split(Tensor input, int[] indices_or_sections, int dim=0)",
      +[](T x, const Integers& indices, int64_t dim) { return tensor_split(x, indices, dim); });
  both("atleast_1d(Tensor input)", atleast_1d);
  both("atleast_2d(Tensor input)", atleast_2d);
  both("atleast_3d(Tensor input)", atleast_3d);
  method("repeat(Tensor input, int[] repeats)", repeat);
  both("tile(Tensor input, int[] dims)", tile);
  both(
      "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? output_size=None)",
      +[](T x, int64_t n, std::optional<int64_t> dim, std::optional<int64_t>) { return repeat_interleave(x, n, dim); });
  both(
      "repeat_interleave(Tensor input, Tensor repeats, int? dim=None, *, int? output_size=None)",
      +[](T x, T n, std::optional<int64_t> dim, std::optional<int64_t>) { return repeat_interleave(x, n, dim); });
  function(
      "repeat_interleave(Tensor repeats, *, int? output_size=None)",
      +[](T n, std::optional<int64_t>) { return repeat_interleave(arange(n.numel()), n); });
  both("flip(Tensor input, int[] dims)", flip);
  both("fliplr(Tensor input)", fliplr);
  both("flipud(Tensor input)", flipud);
  both("roll(Tensor input, int[] shifts, int[] dims=())", roll);
  both(
      "rot90(Tensor input, int k=1, int[]? dims=None)", +[](T x, int64_t k, std::optional<Shape> dims) {
        return rot90(x, k, dims.value_or(Shape{0, 1}));
      });
  function(
      "_add_at(Tensor input, any indices, Tensor values)",
      +[](T x, PyObject* indices, T values) { return index_put_(x, entries_from(indices), values, /*accumulate=*/true); });
  function(
      "_meshgrid(Tensor[] tensors, str indexing=\"ij\")", +[](const Tensors& tensors, std::string_view indexing) {
        ONESTEP_CHECK(Error, indexing == "ij" || indexing == "xy",
                      "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but ", "received: ", indexing);
        return meshgrid(tensors, indexing == "xy" ? GridIndexing::xy : GridIndexing::ij);
      });
  bind_joining<hstack>("hstack");
  bind_joining<vstack>("vstack");
  bind_joining<dstack>("dstack");
  bind_joining<column_stack>("column_stack");
  alias("row_stack", "vstack");
  both("diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1)", diagonal);
  both("diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1)", diag_embed);
  both("diag(Tensor input, int diagonal=0)", diag);
  method("unfold(Tensor input, int dimension, int size, int step)", unfold);
  both("tril(Tensor input, int diagonal=0)", tril);
  both("triu(Tensor input, int diagonal=0)", triu);
}

void bind_index() {
  both(
      "masked_fill(Tensor input, Tensor mask, Scalar value)", +[](T x, T mask, Scalar v) { return masked_fill(x, mask, v); });
  both(
      "masked_fill(Tensor input, Tensor mask, Tensor value)", +[](T x, T mask, T v) { return masked_fill(x, mask, v); });
  method(
      "masked_fill_(Tensor input, Tensor mask, Scalar value)", +[](T x, T mask, Scalar v) { return masked_fill_(x, mask, v); });
  method(
      "masked_fill_(Tensor input, Tensor mask, Tensor value)", +[](T x, T mask, T v) { return masked_fill_(x, mask, v); });
  both("masked_select(Tensor input, Tensor mask)", masked_select);
  both("masked_scatter(Tensor input, Tensor mask, Tensor source)", masked_scatter);
  method("masked_scatter_(Tensor input, Tensor mask, Tensor source)", masked_scatter_);
  both(
      "nonzero(Tensor input, *, bool as_tuple=False)",
      +[](T x, bool as_tuple) -> PyObject* { return as_tuple ? to_python(nonzero_numpy(x), "") : wrap(nonzero(x)); });
  alias("argwhere", "nonzero");
  both("index_select(Tensor input, int dim, Tensor index)", index_select);
  both(
      "gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False)",
      +[](T x, int64_t dim, T index, bool) { return gather(x, dim, index); });
  both("take(Tensor input, Tensor index)", take);
  both("take_along_dim(Tensor input, Tensor indices, int? dim=None)", take_along_dim);
#define ONESTEP_BIND(BIND, SUFFIX)                                                                                          \
  BIND(                                                                                                                     \
      "scatter" #SUFFIX "(Tensor input, int dim, Tensor index, Tensor src, *, str? reduce=None)",                           \
      +[](T x, int64_t dim, T index, T src, std::optional<std::string_view> reduce) {                                       \
        return scatter##SUFFIX(x, dim, index, src, reduce.value_or(""));                                                    \
      });                                                                                                                   \
  BIND(                                                                                                                     \
      "scatter" #SUFFIX "(Tensor input, int dim, Tensor index, Scalar value, *, str? reduce=None)",                         \
      +[](T x, int64_t dim, T index, Scalar value, std::optional<std::string_view> reduce) {                                \
        return scatter##SUFFIX(x, dim, index, value, reduce.value_or(""));                                                  \
      });                                                                                                                   \
  BIND("scatter_add" #SUFFIX "(Tensor input, int dim, Tensor index, Tensor src)", scatter_add##SUFFIX);                     \
  BIND("scatter_reduce" #SUFFIX "(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)", \
       scatter_reduce##SUFFIX);                                                                                             \
  BIND("index_add" #SUFFIX "(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", index_add##SUFFIX);   \
  BIND("index_copy" #SUFFIX "(Tensor input, int dim, Tensor index, Tensor source)", index_copy##SUFFIX);                    \
  BIND(                                                                                                                     \
      "index_fill" #SUFFIX "(Tensor input, int dim, Tensor index, Scalar value)",                                           \
      +[](T x, int64_t dim, T index, Scalar value) { return index_fill##SUFFIX(x, dim, index, value); });                   \
  BIND(                                                                                                                     \
      "index_fill" #SUFFIX "(Tensor input, int dim, Tensor index, Tensor value)",                                           \
      +[](T x, int64_t dim, T index, T value) { return index_fill##SUFFIX(x, dim, index, value); });
  ONESTEP_BIND(both, )
  ONESTEP_BIND(method, _)
#undef ONESTEP_BIND
}

}  // namespace onestep::python

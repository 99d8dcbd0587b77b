#pragma once
// The Tensor handle: a strided view of shared storage, with its place in the recorded graph.
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/dtype.h"
#include "autograd/grad_mode.h"
#include "autograd/list_view.h"
#include "autograd/scalar.h"
#include "autograd/shape.h"
#include "autograd/tensor_methods.h"

namespace onestep {

class Node;
class Tensor;
class TensorIndex;
struct Slice;
struct ValuesIndices;
struct UniqueResult;

/// Removes a hook again; may be dropped, which leaves the hook (torch.utils.hooks.RemovableHandle).
class HookHandle {
 public:
  HookHandle(std::weak_ptr<Node> node, uint64_t id) : node_(std::move(node)), id_(id) {}
  void remove();

 private:
  std::weak_ptr<Node> node_;
  uint64_t id_;
};

/// How a view came about: while recording, only an ordinary one may be written to.
enum class ViewKind : uint8_t { ordinary, unrecorded, one_of_several, of_custom_op };

namespace detail {
Tensor mark_view(Tensor view, const Tensor& x, ViewKind kind);
}

/// A block of elements, shared by a tensor and its views.
struct Storage {
  Storage(int64_t bytes, bool zeroed);
  /// Memory that `owner` keeps alive, and gives back when it is the last one; at a multiple of the size of its elements.
  Storage(void* memory, int64_t bytes, std::shared_ptr<void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data;
  int64_t bytes;
  uint32_t version = 0;         ///< Counts writes: a saved tensor remembers it and refuses to be used after a later write.
  std::shared_ptr<void> owner;  ///< Empty for memory of the engine's own.
};

/// An n-dimensional array of one of the dtypes of dtype.h (rank 0 to 8) that records what is computed from it.
/// Copying a Tensor aliases it; views share storage. A default-constructed Tensor is undefined.
class Tensor : public TensorMethods {
 public:
  struct Impl {
    Impl(std::shared_ptr<Storage> values, DType type, const Shape& sizes, const Shape& steps, int64_t first)
        : storage(std::move(values)),
          shape(sizes),
          strides(steps),
          offset(first),
          dtype(type),
          inference(inference_enabled()) {}

    std::shared_ptr<Storage> storage;
    Shape shape, strides;
    int64_t offset;
    DType dtype;
    ViewKind view_kind = ViewKind::ordinary;
    bool inference;        ///< Made within an InferenceGuard.
    uint32_t history = 0;  ///< Recorded in-place ops on a base and its views; in a view, how many of them its node knows.
    std::shared_ptr<Node> node;
    std::shared_ptr<Node> stopped;  ///< Of a leaf that does not require grad: the gradient and hooks it has or had.
    std::shared_ptr<Impl> base;     ///< Whose elements a view shows: a write to either moves the history of both. Never a view.
    void* foreign = nullptr;        ///< The object of another language that stands for this tensor while it lives.
  };

  Tensor() = default;
  /// A tensor without graph over existing storage (used by factories and views).
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, const Shape& strides, int64_t offset);
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Assignment to what an expression gives writes there, as in PyTorch: `x[0] = y` is copy_(x[0], y), `x[0] = 1.0` fill_(x[0],
  /// 1.0). Throws ShapeError on a result that shares no storage, where nobody could see the write.
  Tensor operator=(const Tensor& values) &&;
  Tensor operator=(Scalar value) &&;

  bool defined() const { return impl_ != nullptr; }

  // ---- what it is
  const Shape& shape() const { return impl().shape; }
  const Shape& strides() const { return impl().strides; }  ///< In elements.
  int64_t offset() const { return impl().offset; }         ///< Of the first element in the storage, in elements.
  DType dtype() const { return impl().dtype; }
  int dim() const { return shape().rank(); }
  int64_t size(int64_t dim) const { return shape()[normalize_dim("size", dim, shape().rank())]; }
  int64_t numel() const { return shape().numel(); }
  bool is_contiguous() const;
  bool is_floating() const { return onestep::is_floating(dtype()); }
  /// True when both handles see the same memory.
  bool shares_storage(const Tensor& other) const { return impl().storage->data == other.impl().storage->data; }

  // ---- elements
  /// The first element, for reading; neighbours are strides() apart. Throws DTypeError unless T is the tensor's type.
  template <class T>
  const T* data() const {
    check_type(dtype_of<T>());
    return reinterpret_cast<const T*>(impl().storage->data) + impl().offset;
  }
  /// The first element, for writing: counts a new version. Throws GradError on a tensor that requires grad while recording.
  template <class T>
  T* mutable_data() {
    check_type(dtype_of<T>());
    begin_write("mutable_data");
    return reinterpret_cast<T*>(impl().storage->data) + impl().offset;
  }
  /// The address of the first element, whatever its type, for reading and (as mutable_data) for writing.
  const void* data_ptr() const { return impl().storage->data + impl().offset * size_of(impl().dtype); }
  void* mutable_data_ptr() {
    begin_write("mutable_data");
    return impl().storage->data + impl().offset * size_of(impl().dtype);
  }
  /// The single element, converted to T; throws ShapeError unless numel() == 1.
  template <class T = double>
  T item() const {
    ONESTEP_CHECK(ShapeError, numel() == 1, "item: needs exactly one element: got shape ", shape());
    return at<T>(Shape::filled(dim(), 0));
  }
  /// The element at `index` (one entry a dim, negative counts from the end), converted to T.
  template <class T = double>
  T at(const Shape& index) const {
    T value;
    read_element(index, dtype_of<T>(), &value);
    return value;
  }
  /// All elements in row-major order, converted to T.
  template <class T>
  std::vector<T> to_vector() const;

  // ---- graph
  /// True for a leaf that collects a gradient, the result of a recorded op, and a view of either.
  bool requires_grad() const {
    const Impl& i = impl();
    return i.node != nullptr ||
           (i.base && i.base->node && (i.view_kind != ViewKind::unrecorded || i.history != i.base->history));
  }
  /// Makes this a leaf whose gradient is collected in grad() (or, with false, takes it out of the graph again).
  /// Throws DTypeError unless floating, GradError with false on the result of an op (use detach()).
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  /// The accumulated gradient, undefined if there is none. Throws GradError on the result of an op without retain_grad().
  Tensor grad() const;
  /// Replaces the gradient (an undefined tensor clears it). Throws ShapeError, DTypeError unless it fits the tensor.
  void set_grad(const Tensor& grad);
  /// Forgets the gradient, as PyTorch's zero_grad(set_to_none=True).
  void zero_grad();
  /// Collects the gradient of the result of an op, too.
  Tensor& retain_grad();
  bool retains_grad() const;
  /// Shows the elements of `values` from now on, with its shape and dtype; the place in the graph stays (the setter of
  /// torch.Tensor.data). Throws GradError on the result of an op whose shape or dtype would change, and on views.
  void set_data(const Tensor& values);
  /// The same storage without a place in the graph; a recorded in-place op on either concerns the gradient of that one alone.
  Tensor detach() const;
  /// Runs the recorded graph backwards from this tensor, adding into the grad() of every leaf, or only of `inputs` where some
  /// are given (PyTorch's Tensor.backward). `gradient` (same shape) may be left out for a single element. The graph is used up
  /// unless `retain_graph` is set (by default if `create_graph` is); with `create_graph` the gradients are recorded, too, so
  /// that they can be differentiated. Throws GradError on misuse.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = {}, bool create_graph = false,
                const ListView<Tensor>& inputs = {}) const;
  /// Calls `hook` with the gradient of this tensor, complete, in every backward pass; what it returns (if defined) takes its
  /// place. Returns what removes it (torch.Tensor.register_hook). Throws GradError on a tensor that does not require grad.
  HookHandle register_hook(std::function<Tensor(const Tensor& grad)> hook);
  /// Calls `hook` after a backward pass has added to grad() of this leaf (torch.Tensor.register_post_accumulate_grad_hook).
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook);
  /// True for a view whose base is another tensor, and that base (torch.Tensor._base).
  bool is_view() const { return impl().base != nullptr; }
  Tensor base() const;
  /// Made within an InferenceGuard.
  bool is_inference() const { return impl().inference; }
  /// Number of writes the storage has seen.
  uint32_t version() const { return impl().storage->version; }

  // ---- the ops of one tensor as methods: x.exp() is exp(x), and so on (documented in ops.h)
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Slice& slice) const;
  Tensor index(const ListView<TensorIndex>& indices) const;
  Tensor index_put(const ListView<TensorIndex>& indices, const Tensor& values, bool accumulate = false) const;
  Tensor index_put_(const ListView<TensorIndex>& indices, const Tensor& values, bool accumulate = false) const;
  Tensor index_put_(const ListView<TensorIndex>& indices, Scalar value) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor gather(int64_t dim, const Tensor& index) const;
  Tensor take(const Tensor& index) const;
  Tensor take_along_dim(const Tensor& index, std::optional<int64_t> dim = {}) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
  Tensor nonzero() const;
  std::vector<Tensor> nonzero_numpy() const;
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce = {}) const;
  Tensor scatter(int64_t dim, const Tensor& index, Scalar value, std::string_view reduce = {}) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                        bool include_self = true) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_fill(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor index_fill(int64_t dim, const Tensor& index, const Tensor& value) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, int64_t start, int64_t end, int64_t step = 1) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;

  Tensor view(const Shape& shape) const;
  Tensor reshape(const Shape& shape) const;
  Tensor permute(const Shape& dims) const;
  Tensor expand(const Shape& shape) const;
  Tensor as_strided(const Shape& shape, const Shape& strides, std::optional<int64_t> offset = {}) const;
  template <class... I>
  requires Sizes<I...> Tensor view(I... sizes)
  const { return view(Shape{static_cast<int64_t>(sizes)...}); }
  template <class... I>
  requires Sizes<I...> Tensor reshape(I... sizes)
  const { return reshape(Shape{static_cast<int64_t>(sizes)...}); }
  template <class... I>
  requires Sizes<I...> Tensor permute(I... dims)
  const { return permute(Shape{static_cast<int64_t>(dims)...}); }
  template <class... I>
  requires Sizes<I...> Tensor expand(I... sizes)
  const { return expand(Shape{static_cast<int64_t>(sizes)...}); }
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor t() const;
  Tensor T() const { return t(); }
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor squeeze(const Shape& dims) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor contiguous() const;
  Tensor clone() const;
  Tensor to(DType dtype) const;
  Tensor half() const { return to(DType::float16); }
  Tensor bfloat16() const { return to(DType::bfloat16); }
  Tensor byte() const { return to(DType::uint8); }
  std::vector<Tensor> split(int64_t split_size, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;

  Tensor add(const Tensor& y) const;
  Tensor sub(const Tensor& y) const;
  Tensor mul(const Tensor& y) const;
  Tensor div(const Tensor& y) const;
  Tensor add(const Tensor& y, Scalar alpha) const;
  Tensor sub(const Tensor& y, Scalar alpha) const;
  Tensor add(Scalar y) const;
  Tensor sub(Scalar y) const;
  Tensor mul(Scalar y) const;
  Tensor div(Scalar y) const;
  Tensor div(const Tensor& y, RoundingMode rounding_mode) const;
  Tensor div(Scalar y, RoundingMode rounding_mode) const;
  Tensor eq(const Tensor& y) const;
  Tensor ne(const Tensor& y) const;
  Tensor lt(const Tensor& y) const;
  Tensor le(const Tensor& y) const;
  Tensor gt(const Tensor& y) const;
  Tensor ge(const Tensor& y) const;
  Tensor eq(Scalar y) const;
  Tensor ne(Scalar y) const;
  Tensor lt(Scalar y) const;
  Tensor le(Scalar y) const;
  Tensor gt(Scalar y) const;
  Tensor ge(Scalar y) const;
  Tensor matmul(const Tensor& y) const;
  Tensor dot(const Tensor& y) const;
  Tensor clamp(std::optional<Scalar> min, std::optional<Scalar> max = {}) const;
  Tensor clamp(const Tensor& min, const Tensor& max) const;
  Tensor masked_fill(const Tensor& mask, Scalar value) const;
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, Scalar other) const;
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor softmax(int64_t dim) const;
  Tensor softmax(int64_t dim, DType dtype) const;
  Tensor log_softmax(int64_t dim) const;
  Tensor log_softmax(int64_t dim, DType dtype) const;

  Tensor sum() const;
  Tensor sum(const Shape& dims, bool keepdim = false) const;
  template <std::same_as<DType> D>
  Tensor sum(D dtype) const {
    return to(dtype).sum();
  }
  Tensor sum(const Shape& dims, bool keepdim, DType dtype) const;
  Tensor mean() const;
  Tensor mean(const Shape& dims, bool keepdim = false) const;
  template <std::same_as<DType> D>
  Tensor mean(D dtype) const {
    return to(dtype).mean();
  }
  Tensor mean(const Shape& dims, bool keepdim, DType dtype) const;
  Tensor prod() const;
  Tensor prod(int64_t dim, bool keepdim = false) const;
  Tensor prod(int64_t dim, bool keepdim, DType dtype) const;
  Tensor var(const Shape& dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor std(const Shape& dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor norm(double p = 2.0, const Shape& dims = {}, bool keepdim = false) const;
  Tensor logsumexp(const Shape& dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  ValuesIndices max(int64_t dim, bool keepdim = false) const;
  ValuesIndices min(int64_t dim, bool keepdim = false) const;
  Tensor amax(const Shape& dims = {}, bool keepdim = false) const;
  Tensor amin(const Shape& dims = {}, bool keepdim = false) const;
  Tensor argmax() const;
  Tensor argmin() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor argmin(int64_t dim, bool keepdim = false) const;
  Tensor cumsum(int64_t dim) const;
  Tensor cumsum(int64_t dim, DType dtype) const;
  Tensor cumprod(int64_t dim) const;
  Tensor cumprod(int64_t dim, DType dtype) const;
  ValuesIndices cummax(int64_t dim) const;
  ValuesIndices cummin(int64_t dim) const;
  Tensor logcumsumexp(int64_t dim) const;
  ValuesIndices sort(int64_t dim = -1, bool descending = false, bool stable = false) const;
  Tensor argsort(int64_t dim = -1, bool descending = false, bool stable = false) const;
  ValuesIndices topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const;
  ValuesIndices kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  Tensor median() const;
  ValuesIndices median(int64_t dim, bool keepdim = false) const;
  UniqueResult unique(bool sorted = true, bool return_inverse = false, bool return_counts = false,
                      std::optional<int64_t> dim = {}) const;
  Tensor bincount(const Tensor& weights = {}, int64_t minlength = 0) const;
  Tensor histc(int64_t bins = 100, double min = 0, double max = 0) const;
  Tensor multinomial(int64_t num_samples, bool replacement = false) const;
  Tensor any() const;
  Tensor all() const;
  Tensor any(const Shape& dims, bool keepdim = false) const;
  Tensor all(const Shape& dims, bool keepdim = false) const;
  Tensor isnan() const;
  Tensor isfinite() const;

  Tensor add_(const Tensor& y) const;
  Tensor sub_(const Tensor& y) const;
  Tensor mul_(const Tensor& y) const;
  Tensor div_(const Tensor& y) const;
  Tensor add_(const Tensor& y, Scalar alpha) const;
  Tensor sub_(const Tensor& y, Scalar alpha) const;
  Tensor add_(Scalar y) const;
  Tensor sub_(Scalar y) const;
  Tensor mul_(Scalar y) const;
  Tensor div_(Scalar y) const;
  Tensor copy_(const Tensor& source) const;
  Tensor fill_(Scalar value) const;
  Tensor zero_() const { return fill_(0); }
  Tensor div_(const Tensor& y, RoundingMode rounding_mode) const;
  Tensor div_(Scalar y, RoundingMode rounding_mode) const;
  Tensor masked_fill_(const Tensor& mask, Scalar value) const;
  Tensor masked_fill_(const Tensor& mask, const Tensor& value) const;
  Tensor masked_scatter_(const Tensor& mask, const Tensor& source) const;
  Tensor scatter_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce = {}) const;
  Tensor scatter_(int64_t dim, const Tensor& index, Scalar value, std::string_view reduce = {}) const;
  Tensor scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                         bool include_self = true) const;
  Tensor index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1) const;
  Tensor index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_fill_(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const;

  // ---- for the engine and the ops
  const Impl& impl() const {
    ONESTEP_CHECK(Error, impl_ != nullptr, "tensor: an undefined (default-constructed) Tensor was used");
    return *impl_;
  }
  Impl& impl() { return const_cast<Impl&>(std::as_const(*this).impl()); }
  /// Counts a write; throws as check_writable and, while recording, on a tensor that requires grad (GradError).
  void begin_write(const char* op);
  /// Throws naming `op` on an expanded tensor, whose elements share memory (ShapeError), and on one that was made within an
  /// InferenceGuard, outside of one (GradError).
  void check_writable(const char* op) const;
  /// The node of what it holds now: that of a view follows in-place ops on its base. Null where none requires grad.
  const std::shared_ptr<Node>& node() const {
    const Impl& i = impl();
    const bool late = !i.node && i.view_kind != ViewKind::unrecorded;  // taken before its base required grad
    if (i.base && (i.history != i.base->history || (late && i.base->node))) follow_base();
    return i.node;
  }
  /// The same elements without a place in the graph, as detach().
  Tensor values() const;
  bool is_last() const;  ///< Nobody but the holder of this handle would see a write to its elements.

 private:
  void check_type(DType wanted) const {
    ONESTEP_CHECK(DTypeError, dtype() == wanted, "data: asked for ", wanted, " of a tensor of dtype ", dtype(),
                  " (convert with to())");
  }
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  void follow_base() const;
  friend Tensor detail::mark_view(Tensor view, const Tensor& x, ViewKind kind);
  /// The element at `index` as one of dtype `to`.
  void read_element(const Shape& index, DType to, void* value) const;

  std::shared_ptr<Impl> impl_;
};

inline const Tensor& TensorMethods::self() const { return static_cast<const Tensor&>(*this); }
template <class... I>
requires Sizes<I...> Tensor TensorMethods::repeat(I... repeats)
const { return repeat(Shape{static_cast<int64_t>(repeats)...}); }
template <class... I>
requires Sizes<I...> Tensor TensorMethods::tile(I... repeats)
const { return tile(Shape{static_cast<int64_t>(repeats)...}); }

inline bool Tensor::is_contiguous() const {
  const Impl& i = impl();
  int64_t step = 1;
  for (int d = i.shape.rank() - 1; d >= 0; --d) {
    if (i.shape[d] != 1 && i.strides[d] != step) return i.shape.numel() == 0;
    step *= i.shape[d];
  }
  return true;
}

/// Tensors as an argument: a vector, an array or a braced list.
using TensorList = ListView<Tensor>;

/// An uninitialised contiguous tensor. Throws ShapeError on a negative or too large size.
Tensor empty(const Shape& shape, DType dtype = DType::float32);
template <class... I>
requires Sizes<I...> Tensor empty(I... sizes) { return empty(Shape{static_cast<int64_t>(sizes)...}); }

/// Prints as PyTorch prints: 4 decimals, brackets, the dtype when not the default.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::string to_string(const Tensor& tensor);

}  // namespace onestep

// Search in sorted rows, and the distinct elements of a tensor.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/order.h"
#include "autograd/ops_index.h"
#include "autograd/ops_order.h"
#include "autograd/ops_shape.h"
#include "autograd/vector_loop.h"

namespace onestep {
namespace {

/// places[i] = the first of n sorted elements that is not below values[i], or with `right` the first above it, for COUNT values
/// at once: std::partition_point by arithmetic, since branches would be guessed wrong half of the time.
template <int COUNT, class T>
void find_places(const T* sorted, int64_t n, bool right, const T* values, int64_t* places) {
  int64_t first[COUNT] = {}, left[COUNT];  // the place is one of first, ..., first + left
  std::fill_n(left, COUNT, n);
  for (auto steps = std::bit_width(static_cast<uint64_t>(n)); steps > 0; --steps)
    for (int i = 0; i < COUNT; ++i) {
      const int64_t half = left[i] / 2;
      const T middle = sorted[std::min(first[i] + half, n - 1)];
      const bool before = right ? !(middle > values[i]) : !(middle >= values[i]);
      const auto beyond = static_cast<int64_t>(before & (left[i] > 0));
      first[i] += beyond * (half + 1);
      left[i] = half - (beyond & ~left[i] & 1);
    }
  std::copy_n(first, COUNT, places);
}
template <class T>
ONESTEP_EACH_ISA void find_all_places(const T* sorted, int64_t n, bool right, const T* values, int64_t count, int64_t* places) {
  constexpr int at_once = 16;
  int64_t i = 0;
  for (; i + at_once <= count; i += at_once) find_places<at_once>(sorted, n, right, values + i, places + i);
  for (; i < count; ++i) find_places<1>(sorted, n, right, values + i, places + i);
}

Tensor places_in(const char* op, const Tensor& sorted, const Tensor& values, bool out_int32, bool right) {
  ONESTEP_CHECK(ShapeError, sorted.dim() > 0, op, ": a sorted sequence needs a dim");
  Shape leading = sorted.shape(), queries = values.shape();
  leading.erase(leading.rank() - 1);
  if (!queries.empty()) queries.erase(queries.rank() - 1);
  ONESTEP_CHECK(ShapeError, leading.empty() || (values.dim() == sorted.dim() && leading == queries), op, ": values of shape ",
                values.shape(), " do not fit sorted rows of shape ", sorted.shape(),
                " (all sizes but the last must be equal, or the sorted sequence a vector)");
  const DType dtype = result_type(sorted, values);
  const Tensor rows = ops::contiguous_values(ops::widened(to(sorted.values(), dtype))),
               wanted = ops::contiguous_values(ops::widened(to(values.values(), dtype)));
  Tensor y = empty(values.shape(), DType::int64);
  const int64_t n = sorted.shape().back(), count = leading.empty() ? wanted.numel() : values.shape().back();
  dispatch(rows.dtype(), [&]<class T>() {
    const T *const from = rows.data<T>(), *const value = wanted.data<T>();
    auto* const places = y.mutable_data<int64_t>();
    kernels::parallel_for(y.numel(), 5.0 * static_cast<double>(std::bit_width(static_cast<uint64_t>(n + 1))),
                          [=](int64_t i, int64_t end) {
                            for (int64_t stop; i < end; i = stop) {  // those of one row
                              stop = std::min(end, (i / count + 1) * count);
                              find_all_places(from + i / count * n, n, right, value + i, stop - i, places + i);
                            }
                          });
  });
  return out_int32 ? to(y, DType::int32) : y;
}

}  // namespace

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool out_int32, bool right, const Tensor& sorter) {
  const NoGradGuard no_grad;
  if (!sorter.defined()) return places_in("searchsorted", sorted, values, out_int32, right);
  ONESTEP_CHECK(ShapeError, sorter.shape() == sorted.shape() && sorted.dim() > 0, "searchsorted: a sorter of shape ",
                sorter.shape(), " for a sequence of shape ", sorted.shape());
  return places_in("searchsorted", gather(sorted, -1, sorter), values, out_int32, right);
}
Tensor searchsorted(const Tensor& sorted, Scalar value, bool out_int32, bool right, const Tensor& sorter) {
  ONESTEP_CHECK(ShapeError, sorted.dim() == 1, "searchsorted: a number in sorted rows of shape ", sorted.shape(),
                " (they must be one vector)");
  return searchsorted(sorted, full({}, value, result_type(sorted, value)), out_int32, right, sorter);
}

Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool out_int32, bool right) {
  ONESTEP_CHECK(ShapeError, boundaries.dim() == 1, "bucketize: boundaries must be a vector: got shape ", boundaries.shape());
  return places_in("bucketize", boundaries, values, out_int32, right);
}
Tensor bucketize(Scalar value, const Tensor& boundaries, bool out_int32, bool right) {
  return bucketize(full({}, value, result_type(boundaries, value)), boundaries, out_int32, right);
}

namespace {

/// The numbers of the rows of a contiguous [rows, width] in lexicographic order, equal ones in ascending order.
std::vector<int64_t> lexicographic_order(const Tensor& rows) {
  if (rows.size(1) == 1) return argsort(flatten(rows)).to_vector<int64_t>();
  std::vector<int64_t> order(static_cast<size_t>(rows.size(0)));
  std::iota(order.begin(), order.end(), int64_t{0});
  dispatch(rows.dtype(), [&, width = rows.size(1)]<class T>() {
    const T* const first = rows.data<T>();
    std::stable_sort(order.begin(), order.end(), [=](int64_t a, int64_t b) {
      const T *x = first + a * width, *y = first + b * width;
      return std::lexicographical_compare(x, x + width, y, y + width,
                                          [](T u, T v) { return ops::order_key(u) < ops::order_key(v); });
    });
  });
  return order;
}

/// Whether each row in `order` is another one than the row before it.
std::vector<char> begins_group(const Tensor& rows, const std::vector<int64_t>& order) {
  std::vector<char> begins(order.size(), true);
  dispatch(rows.dtype(), [&, width = rows.size(1)]<class T>() {
    const T* const first = rows.data<T>();
    for (size_t i = 1; i < order.size(); ++i) {
      const T *x = first + order[i - 1] * width, *y = first + order[i] * width;
      begins[i] = *x != *y || !std::equal(x + 1, x + width, y + 1);
    }
  });
  return begins;
}

/// The rows of a contiguous matrix that are the first of their equals, and per row and per group what unique returns of them.
UniqueResult unique_rows(const Tensor& rows) {
  const std::vector<int64_t> order = lexicographic_order(rows);
  const std::vector<char> begins = begins_group(rows, order);
  std::vector<int64_t> first, counts;
  Tensor inverse = empty(rows.size(0), DType::int64);
  auto* const group = inverse.mutable_data<int64_t>();
  for (size_t i = 0; i < order.size(); ++i) {
    if (begins[i]) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    group[order[i]] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  const auto found = static_cast<int64_t>(first.size());
  return {from_values(first, found), inverse, from_values(counts, found)};
}

}  // namespace

UniqueResult unique(const Tensor& input, bool /*sorted*/, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  const NoGradGuard no_grad;
  const int d = dim ? normalize_dim("unique", *dim, input.dim()) : 0;
  const Tensor x = dim && input.dim() > 0 ? input : reshape(input, input.numel());
  const int64_t slices = x.size(d), width = slices == 0 ? 1 : x.numel() / slices;
  ONESTEP_CHECK(ShapeError, width > 0, "unique: the slices along dim ", d, " of shape ", x.shape(), " have no elements");
  Shape order = d;  // the slices first
  for (int i = 0; i < x.dim(); ++i)
    if (i != d) order.push_back(i);
  UniqueResult y = unique_rows(contiguous(reshape(permute(ops::widened(x), order), {slices, width})));
  y.values = index_select(x, d, y.values);
  if (!dim) y.inverse = y.inverse.view(input.shape());
  return {y.values, return_inverse ? y.inverse : Tensor(), return_counts ? y.counts : Tensor()};
}

}  // namespace onestep

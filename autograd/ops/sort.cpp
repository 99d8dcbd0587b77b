// Order along a dim: rows of (order key, place) pairs are sorted or partitioned, each row by one thread.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "autograd/operators.h"
#include "autograd/ops/order.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/scatter.h"
#include "autograd/ops_order.h"

namespace onestep {
namespace {

/// A row, and its elements as they are picked from it.
template <class T>
struct Row {
  using Item = ops::Ranked<ops::OrderKey<T>>;

  Item ranked(int64_t i) const {
    const auto key = ops::order_key(elements[i]);
    return {descending ? static_cast<decltype(key)>(~key) : key, i};
  }
  void take_all() {
    items.clear();
    items.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) items.push_back(ranked(i));
  }

  const T* elements;
  int64_t n;
  bool descending;
  std::vector<Item> items = {}, scratch = {};
};

/// The first `count` items of every row along dim `d` after `arrange(row)` has put them there; the dim stays.
template <class Arrange>
ValuesIndices picked(const char* op, const Tensor& x, int d, int64_t count, bool descending, const Arrange& arrange) {
  const Tensor rows = ops::contiguous_values(transpose(ops::as_vector(ops::widened(x).values()), d, -1));
  Shape shape = rows.shape();
  const int64_t n = shape.back();
  ONESTEP_CHECK(ShapeError, n <= std::numeric_limits<uint32_t>::max(), op, ": a row of ", n, " elements is too long");
  shape[shape.rank() - 1] = count;
  Tensor values = empty(shape, rows.dtype()), indices = empty(shape, DType::int64);
  dispatch(rows.dtype(), [&]<class T>() {
    const T* const from = rows.data<T>();
    T* const to = values.mutable_data<T>();
    auto* const places = indices.mutable_data<int64_t>();
    const double cost = 3 * static_cast<double>(n) * static_cast<double>(std::bit_width(static_cast<uint64_t>(n + 1)));
    kernels::parallel_for(count == 0 ? 0 : values.numel() / count, cost, [&](int64_t r, int64_t end) {
      Row<T> row{from, n, descending};
      for (; r < end; ++r) {
        row.elements = from + r * n;
        arrange(row);
        for (int64_t i = 0; i < count; ++i) {
          places[r * count + i] = row.items[static_cast<size_t>(i)].place();
          to[r * count + i] = row.elements[places[r * count + i]];
        }
      }
    });
  });
  const auto in_place = [&](const Tensor& y) {
    const Tensor back = ops::contiguous_values(transpose(y, d, -1));
    return x.dim() == 0 ? ops::view_of(back, {}, {}, 0) : back;
  };
  indices = in_place(indices);
  values = record(op, in_place(ops::rounded(values, x.dtype())), {x}, {indices}, [d](const Backward& b) -> Grads {
    return {scatter_add_(zeros(b.input_shape(0), b.grad().dtype()), d, b.saved(0), b.grad())};
  });  // dx = dy at the indices, else 0
  return {values, indices};
}

/// The element that comes k-th in every row, counted from 0; or the first NaN, where that `wins`.
ValuesIndices kth(const char* op, const Tensor& x, int d, int64_t k, bool keepdim, bool nan_wins) {
  const auto arrange = [=]<class T>(Row<T>& row) {
    const T* const end = row.elements + row.n;
    const T* const nan = nan_wins ? std::find_if(row.elements, end, [](T v) { return v != v; }) : end;
    if (nan != end) return row.items.assign(1, row.ranked(nan - row.elements));
    row.take_all();
    std::nth_element(row.items.begin(), row.items.begin() + k, row.items.end());
    std::swap(row.items[0], row.items[static_cast<size_t>(k)]);
  };
  ValuesIndices y = picked(op, x, d, 1, false, arrange);
  if (!keepdim && x.dim() > 0) y = {squeeze(y.values, d), squeeze(y.indices, d)};
  return y;
}

int64_t size_along(const Tensor& x, int d) { return x.dim() == 0 ? 1 : x.size(d); }

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t dim, bool descending, bool /*stable*/) {
  const int d = normalize_dim("sort", dim, x.dim());
  return picked("sort", x, d, size_along(x, d), descending, [](auto& row) {
    row.take_all();
    ops::sort_row(row.items, row.scratch);
  });
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending, bool stable) {
  normalize_dim("argsort", dim, x.dim());
  return sort(x.values(), dim, descending, stable).indices;
}

namespace {

/// Whether every one of `count` elements comes after `bound`: a loop that the compiler makes instructions on vectors of.
template <class T>
bool all_after(const T* x, int64_t count, T bound, bool descending) {
  int others = 0;
  if (descending)
    for (int64_t i = 0; i < count; ++i) others += !(x[i] < bound);  // a NaN comes first
  else
    for (int64_t i = 0; i < count; ++i) others += !(x[i] > bound);
  return others == 0;
}

/// An element of a row that is not before its k-th, or nothing where the row is short: the k-th of elements that each come
/// first in a group (NaN may be missed).
template <class T>
std::optional<T> near_kth(const Row<T>& row, int64_t k) {
  constexpr size_t most = 1024;
  if (4 * k > static_cast<int64_t>(most)) return {};
  const size_t groups =
      std::max<size_t>(64, std::bit_ceil(static_cast<size_t>(4 * k)));  // some 1.2 k of a random row come first
  if (static_cast<size_t>(row.n) < 4 * groups) return {};
  std::array<T, most> firsts;
  std::copy_n(row.elements, groups, firsts.begin());
  for (const T* x = row.elements + groups; x <= row.elements + row.n - groups; x += groups)
    if (row.descending)
      for (size_t i = 0; i < groups; ++i) firsts[i] = firsts[i] < x[i] ? x[i] : firsts[i];
    else
      for (size_t i = 0; i < groups; ++i) firsts[i] = x[i] < firsts[i] ? x[i] : firsts[i];
  Row<T> candidates{firsts.data(), static_cast<int64_t>(groups), row.descending};
  candidates.take_all();
  const auto kth = candidates.items.begin() + k - 1;
  std::nth_element(candidates.items.begin(), kth, candidates.items.end());
  return firsts[static_cast<size_t>(kth->place())];
}

/// The first k items of a row in any order, among others: of all candidates so far, the best k are kept whenever there are 2 k.
template <class T>
void take_first(Row<T>& row, int64_t k) {
  constexpr int64_t block = 16;
  auto& items = row.items;
  items.clear();
  std::optional<T> bound = near_kth(row, k);
  std::optional<typename Row<T>::Item> last;  // of the best k, once there were 2 k
  const auto consider = [&](int64_t i) {
    if (bound && all_after(row.elements + i, 1, *bound, row.descending)) return;
    const auto item = row.ranked(i);
    if (last && *last < item) return;
    items.push_back(item);
    if (std::ssize(items) < 2 * k) return;
    std::nth_element(items.begin(), items.begin() + k - 1, items.end());
    items.erase(items.begin() + k, items.end());
    last = items.back();
    bound = row.elements[last->place()];
  };
  for (int64_t i = 0; i < row.n;) {
    const int64_t end = std::min(i + block, row.n);
    if (bound && all_after(row.elements + i, end - i, *bound, row.descending))
      i = end;
    else
      while (i < end) consider(i++);
  }
  if (std::ssize(items) > k) std::nth_element(items.begin(), items.begin() + k, items.end());
}

}  // namespace

ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool /*sorted*/) {
  const int d = normalize_dim("topk", dim, x.dim());
  ONESTEP_CHECK(ShapeError, 0 <= k && k <= size_along(x, d), "topk: k = ", k, " of dim ", d, " of shape ", x.shape());
  return picked("topk", x, d, k, largest, [k](auto& row) {
    take_first(row, k);
    std::sort(row.items.begin(), row.items.begin() + k);
  });
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  const int d = normalize_dim("kthvalue", dim, x.dim());
  ONESTEP_CHECK(ShapeError, 1 <= k && k <= size_along(x, d), "kthvalue: k = ", k, " of dim ", d, " of shape ", x.shape(),
                " (it is counted from 1)");
  return kth("kthvalue", x, d, k - 1, keepdim, /*nan_wins=*/false);
}

ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("median", dim, x.dim());
  const int64_t n = size_along(x, d);
  ONESTEP_CHECK(ShapeError, n > 0, "median: no elements to choose from in dim ", d, " of shape ", x.shape());
  return kth("median", x, d, (n - 1) / 2, keepdim, /*nan_wins=*/true);
}

Tensor median(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.numel() > 0 || x.is_floating(), "median: no elements to choose from in shape ", x.shape());
  Tensor y = full({}, std::numeric_limits<double>::quiet_NaN(), x.is_floating() ? x.dtype() : DType::float32);
  if (x.numel() > 0) y = median(reshape(x.values(), x.numel()), 0).values;
  return record("median", y, {x}, {x, y}, [dims = normalize_dims("median", {}, x.dim())](const Backward& b) -> Grads {
    return {ops::shared_among_equals(b.grad(), b.saved(0), b.saved(1), dims)};
  });  // dx = dy / (number of elements equal to y) where x is one
}

}  // namespace onestep

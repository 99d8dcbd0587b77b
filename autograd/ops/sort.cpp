// Order along a dim: rows of (order key, place) pairs are sorted or partitioned, each row by one thread.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/ops/order.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/scatter.h"

namespace onestep {
namespace {

/// The elements of one row, in the order of their places.
template <class T>
using Row = std::vector<ops::Ranked<ops::OrderKey<T>>>;

/// The first `count` elements of every row along dim `d` after `arrange(row, values)` has moved them there; kept dims.
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
      Row<T> row;
      row.reserve(static_cast<size_t>(n));
      for (; r < end; ++r) {
        const T* const elements = from + r * n;
        row.clear();
        for (int64_t i = 0; i < n; ++i) {
          const auto key = ops::order_key(elements[i]);
          row.emplace_back(descending ? ~key : key, i);
        }
        arrange(row, elements);
        for (int64_t i = 0; i < count; ++i) {
          places[r * count + i] = row[static_cast<size_t>(i)].place();
          to[r * count + i] = elements[places[r * count + i]];
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
  const auto arrange = [=]<class R, class T>(R& row, const T* elements) {
    if (nan_wins) {
      const T* const nan = std::find_if(elements, elements + row.size(), [](T v) { return v != v; });
      if (nan != elements + row.size()) return std::swap(row[0], row[static_cast<size_t>(nan - elements)]);
    }
    std::nth_element(row.begin(), row.begin() + k, row.end());
    std::swap(row[0], row[static_cast<size_t>(k)]);
  };
  ValuesIndices y = picked(op, x, d, 1, false, arrange);
  if (!keepdim && x.dim() > 0) y = {squeeze(y.values, d), squeeze(y.indices, d)};
  return y;
}

int64_t size_along(const Tensor& x, int d) { return x.dim() == 0 ? 1 : x.size(d); }

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t dim, bool descending, bool /*stable*/) {
  const int d = normalize_dim("sort", dim, x.dim());
  return picked("sort", x, d, size_along(x, d), descending,
                [](auto& row, const auto* /*elements*/) { std::sort(row.begin(), row.end()); });
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending, bool stable) {
  normalize_dim("argsort", dim, x.dim());
  return sort(x.values(), dim, descending, stable).indices;
}

ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool /*sorted*/) {
  const int d = normalize_dim("topk", dim, x.dim());
  ONESTEP_CHECK(ShapeError, 0 <= k && k <= size_along(x, d), "topk: k = ", k, " of dim ", d, " of shape ", x.shape());
  return picked("topk", x, d, k, largest, [k](auto& row, const auto* /*elements*/) {
    if (k < static_cast<int64_t>(row.size())) std::nth_element(row.begin(), row.begin() + k, row.end());
    std::sort(row.begin(), row.begin() + k);
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

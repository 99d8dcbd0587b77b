// Sums, means and largest values of bags of rows. A sum is the product of a sparse matrix, of which the elements are listed,
// with the table of rows.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "autograd/creation.h"
#include "autograd/kernels/kernels.h"
#include "autograd/ops/indexing.h"
#include "autograd/ops/strided.h"
#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"
#include "autograd/vector_loop.h"

namespace onestep {
namespace {

/// A sparse matrix: element i is scale[i] (1 where that is undefined), in row to[i] and column from[i]. It does not count where
/// one of these is negative.
struct Entries {
  Tensor to, from, scale = {};
};

/// The rows of a row-major tensor as T: narrow ones are widened one at a time.
template <class T>
class Rows {
 public:
  explicit Rows(const Tensor& x)
      : first_(static_cast<const char*>(x.data_ptr())), dtype_(x.dtype()), d_(x.shape()[1]), bytes_(d_ * size_of(dtype_)) {}
  /// How many elements at() writes.
  size_t room() const { return dtype_ == dtype_of<T>() ? 0 : static_cast<size_t>(d_); }
  const T* at(int64_t row, T* room) const {
    if (dtype_ == dtype_of<T>()) return reinterpret_cast<const T*>(first_) + row * d_;
    ops::convert_elements(dtype_, first_ + row * bytes_, dtype_of<T>(), room, d_);
    return room;
  }
  /// Asks for a row that is read soon: rows are picked in no order that the hardware prefetcher detects.
  void prefetch(int64_t row) const {
    constexpr int64_t line = 64, most = 8 * line;
    const char* const begin = first_ + std::max<int64_t>(row, 0) * bytes_;
    for (int64_t i = 0; i < std::min(bytes_, most); i += line) __builtin_prefetch(begin + i);
  }

 private:
  const char* first_;
  DType dtype_;
  int64_t d_, bytes_;
};

constexpr int64_t kAhead = 8;   ///< How many rows before it is read one is prefetched.
constexpr int64_t kBlock = 16;  ///< How many columns are added at once.

/// y[to[i]] += scale[i] x[from[i]] in ascending i, for the rows [begin, end) of y [..., d].
template <class T>
ONESTEP_EACH_ISA void add_rows(const Entries& a, const Rows<T> x, T* y, int64_t d, int64_t begin, int64_t end, T* room) {
  const auto *const to = a.to.data<int64_t>(), *const from = a.from.data<int64_t>();
  const T* const scale = ops::data_or_null<T>(a.scale);
  for (int64_t i = 0, n = a.to.numel(); i < n; ++i) {
    if (to[i] < begin || to[i] >= end || from[i] < 0) continue;
    if (i + kAhead < n) x.prefetch(from[i + kAhead]);
    const T* const row = x.at(from[i], room);
    T* const sum = y + to[i] * d;
    const T factor = scale ? scale[i] : T(1);
    int64_t j = 0;
    for (; j + kBlock <= d; j += kBlock)
#pragma GCC ivdep
      for (int64_t k = 0; k < kBlock; ++k) sum[j + k] += factor * row[j + k];
    for (; j < d; ++j) sum[j] += factor * row[j];
  }
}

/// The sum of a[j] b[j], always in the same order: of eight or more in as many independent accumulators.
template <class T>
ONESTEP_EACH_ISA T dot_of(const T* a, const T* b, int64_t n) {
  constexpr int64_t width = 8;
  if (n < width) return std::inner_product(a, a + n, b, T(0));
  T sums[width] = {};
  int64_t j = 0;
  for (; j + width <= n; j += width)
    for (int64_t k = 0; k < width; ++k) sums[k] += a[j + k] * b[j + k];
  for (int64_t k = 0; j + k < n; ++k) sums[k] += a[j + k] * b[j + k];
  for (int64_t half = width / 2; half > 0; half /= 2)
    for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

Tensor product(const Entries& a, const Tensor& x, int64_t rows);

/// a[to[i]] . b[from[i]] for each i: what the product's gradient is towards the elements of the matrix.
Tensor row_dots(const Tensor& a, const Tensor& to, const Tensor& b, const Tensor& from) {
  const Tensor left = ops::contiguous_values(a), right = ops::contiguous_values(b);
  Tensor dots = zeros(to.shape(), a.dtype());
  dispatch_floating(a.dtype(), "embedding_bag", [&]<class T>() {
    const int64_t d = a.shape()[1];
    const auto *const rows = to.data<int64_t>(), *const columns = from.data<int64_t>();
    T* const sums = dots.mutable_data<T>();
    const T *const x = left.data<T>(), *const y = right.data<T>();
    kernels::parallel_for(to.numel(), 5 + 0.2 * static_cast<double>(d), [=](int64_t i, int64_t end) {
      for (; i < end; ++i)
        if (rows[i] >= 0 && columns[i] >= 0) sums[i] = dot_of(x + rows[i] * d, y + columns[i] * d, d);
    });
  });
  return record("embedding_bag", dots, {a, b}, {a, to, b, from}, [](const Backward& g) -> Grads {
    Grads grads(2);
    if (g.needs(0)) grads[0] = product({g.saved(1), g.saved(3), g.grad()}, g.saved(2), g.input_shape(0)[0]);
    if (g.needs(1)) grads[1] = product({g.saved(3), g.saved(1), g.grad()}, g.saved(0), g.input_shape(1)[0]);
    return grads;
  });
}

/// The product of `a`, which has `rows` rows, with x [V, d]: [rows, d] of x's compute type. Threads split the result: each
/// reads all elements of the matrix, in their order, for its own rows.
Tensor product(const Entries& a, const Tensor& x, int64_t rows) {
  const Tensor table = ops::contiguous_values(x);
  const Entries entries = {a.to, a.from, ops::rows_or_undefined(a.scale)};
  const int64_t d = x.shape()[1], n = a.to.numel();
  Tensor y = zeros({rows, d}, compute_type(x.dtype()));
  dispatch_floating(y.dtype(), "embedding_bag", [&]<class T>() {
    const Rows<T> from(table);
    const double cost =
        static_cast<double>(n) * (2 + 0.2 * static_cast<double>(d)) / static_cast<double>(std::max<int64_t>(rows, 1));
    kernels::parallel_for(rows, cost, [&, to = y.mutable_data<T>()](int64_t begin, int64_t end) {
      std::vector<T> room(from.room());
      add_rows(entries, from, to, d, begin, end, room.data());
    });
  });
  return record(
      "embedding_bag", y, {x, a.scale}, {a.to, a.from, a.scale, a.scale.defined() ? x : Tensor()},
      [](const Backward& b) -> Grads {
        Grads grads(2);
        if (b.needs(0))  // that of the transposed matrix
          grads[0] = to(product({b.saved(1), b.saved(0), b.saved(2)}, b.grad(), b.input_shape(0)[0]), b.input_dtype(0));
        if (b.needs(1)) grads[1] = row_dots(b.grad(), b.saved(0), ops::wide(b.saved(3)), b.saved(1));
        return grads;
      });
}

/// The bags of an index: bag b has its elements [begin(b), begin(b + 1)).
struct Bags {
  std::vector<int64_t> starts;  ///< And at last where they end.
  Tensor index;                 ///< int64 [N], -1 where an element does not count.

  int64_t count() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t begin(int64_t b) const { return starts[static_cast<size_t>(b)]; }
};

std::vector<int64_t> starts_of(const Tensor& index, const Tensor& offsets) {
  std::vector<int64_t> starts;
  const int64_t n = index.numel();
  if (!offsets.defined()) {
    starts.resize(static_cast<size_t>(index.shape()[0]) + 1);
    for (size_t b = 0; b < starts.size(); ++b) starts[b] = static_cast<int64_t>(b) * index.shape()[1];
    return starts;
  }
  ONESTEP_CHECK(ShapeError, offsets.dim() == 1, "embedding_bag: offsets must be a vector: got shape ", offsets.shape());
  starts = ops::int64_places("embedding_bag: offsets", offsets).to_vector<int64_t>();
  starts.push_back(n);
  const auto descends = static_cast<size_t>(std::is_sorted_until(starts.begin(), starts.end()) - starts.begin());
  const size_t wrong = starts[0] != 0 ? 0 : std::min(descends, starts.size() - 2);
  ONESTEP_CHECK(IndexError, starts.size() == 1 || (starts[0] == 0 && descends == starts.size()),
                "embedding_bag: offsets must ascend from 0 to at most ", n, ": got ", starts[wrong], " at place ", wrong);
  return starts;
}

/// The index as a vector, with -1 for what does not count.
Tensor counted_index(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx) {
  const int64_t lowest = padding_idx == -1 ? -1 : 0;
  const Tensor counted = reshape(ops::checked_index("embedding_bag", index, weight.shape(), 0, lowest), {-1});
  return padding_idx.value_or(-1) == -1 ? counted : masked_fill(counted, eq(counted, *padding_idx), -1);
}

/// In which bag each element of the index is.
Tensor bag_of_each(const Bags& bags) {
  Tensor bag = empty(bags.index.shape(), DType::int64);
  auto* const to = bag.mutable_data<int64_t>();
  std::fill(to, to + bags.begin(0), -1);  // without a bag
  for (int64_t b = 0; b < bags.count(); ++b)
    for (int64_t i = bags.begin(b); i < bags.begin(b + 1); ++i) to[i] = b;
  return bag;
}

/// How many elements of each bag count: [B, 1].
Tensor sizes_of(const Bags& bags, DType dtype) {
  const auto* const picked = bags.index.data<int64_t>();
  std::vector<double> sizes;
  for (int64_t b = 0; b < bags.count(); ++b) {
    const int64_t begin = bags.begin(b), end = bags.begin(b + 1);
    sizes.push_back(static_cast<double>(end - begin - std::count(picked + begin, picked + end, -1)));
  }
  return to(from_values(sizes, {bags.count(), 1}), dtype);
}

/// The row of each bag's largest element, the first of equals, of each column: int64 [B, d], 0 for bags of nothing. NaN is the
/// largest.
template <class T>
ONESTEP_EACH_ISA void find_largest(const int64_t* picked, int64_t n, const Rows<T> x, int64_t d, T* most, int64_t* best,
                                   T* room) {
  std::fill_n(most, d, -std::numeric_limits<T>::infinity());
  bool first = true;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) x.prefetch(picked[i + kAhead]);
    if (picked[i] < 0) continue;
    const T* const row = x.at(picked[i], room);
#pragma GCC ivdep
    for (int64_t j = 0; j < d; ++j) {
      const bool larger = first | (!(row[j] <= most[j]) & (most[j] == most[j]));
      most[j] = larger ? row[j] : most[j];
      best[j] = larger ? picked[i] : best[j];
    }
    first = false;
  }
}

Tensor largest_rows(const Bags& bags, const Tensor& weight) {
  const Tensor table = ops::contiguous_values(weight);
  const int64_t d = weight.shape()[1];
  Tensor best = zeros({bags.count(), d}, DType::int64);
  dispatch_floating(compute_type(weight.dtype()), "embedding_bag", [&]<class T>() {
    const Rows<T> rows(table);
    const auto* const picked = bags.index.data<int64_t>();
    auto* const to = best.mutable_data<int64_t>();
    const double cost =
        static_cast<double>(bags.index.numel() * (d + 4)) / static_cast<double>(std::max<int64_t>(bags.count(), 1));
    kernels::parallel_for(bags.count(), cost, [&, picked, to](int64_t b, int64_t end) {
      std::vector<T> most(static_cast<size_t>(d)), room(rows.room());
      for (; b < end; ++b) {
        find_largest(picked + bags.begin(b), bags.begin(b + 1) - bags.begin(b), rows, d, most.data(), to + b * d, room.data());
      }
    });
  });
  return best;
}

}  // namespace

Tensor embedding_bag(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& options) {
  const bool flat = index.dim() == 1;
  ONESTEP_CHECK(ShapeError, weight.dim() == 2, "embedding_bag: weight must be [V, d]: got ", weight.shape());
  ONESTEP_CHECK(ShapeError, (flat || index.dim() == 2) && flat == options.offsets.defined(),
                "embedding_bag: needs an index [B, N], or [N] with offsets: got ", index.shape());
  ops::check_floating("embedding_bag", weight);
  Tensor scale = options.per_sample_weights;
  if (scale.defined()) {
    ONESTEP_CHECK(ConfigError, options.mode == BagMode::sum, "embedding_bag: per_sample_weights are for sums");
    ONESTEP_CHECK(ShapeError, scale.shape() == index.shape(), "embedding_bag: per_sample_weights of shape ", scale.shape(),
                  " for an index of shape ", index.shape());
    ops::check_same_dtype("embedding_bag", weight, scale);
    scale = ops::wide(reshape(scale, {-1}));
  }
  const Bags bags = {starts_of(index, options.offsets), counted_index(index, weight, options.padding_idx)};
  const DType dtype = compute_type(weight.dtype());
  if (options.mode == BagMode::max && weight.shape()[0] > 0)
    return masked_fill(gather(weight, 0, largest_rows(bags, weight)), eq(sizes_of(bags, dtype), 0), 0);
  const Tensor sums = product({bag_of_each(bags), bags.index, scale}, weight, bags.count());
  return to(options.mode == BagMode::mean ? div(sums, clamp_min(sizes_of(bags, dtype), 1)) : sums, weight.dtype());
}

}  // namespace onestep

#include <algorithm>
#include <array>

#include "autograd/creation.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops/common.h"
#include "autograd/ops/indexing.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// The places before and after each dim, from the last dim on.
using Sides = std::array<int64_t, size_t{2} * kMaxRank>;

/// A dim of `size` with places before and behind it, or without them where these are negative.
struct PaddedDim {
  PadMode mode;
  int64_t size, before, behind;

  int64_t count() const { return size + before + behind; }
  bool unchanged() const { return before == 0 && behind == 0; }
  /// The places of the padded dim that show those of the dim, one by one.
  int64_t begin() const { return std::clamp<int64_t>(before, 0, count()); }
  int64_t end() const { return std::clamp<int64_t>(before + size, 0, count()); }
  /// What place i of the padded dim shows: one of the dim, or -1 for the value.
  int64_t shown(int64_t i) const {
    const int64_t place = i - before, first = std::max<int64_t>(-before, 0);
    const int64_t kept = size - first - std::max<int64_t>(-behind, 0);
    if (mode == PadMode::constant) return place < size ? std::max<int64_t>(place, -1) : -1;
    if (mode == PadMode::reflect) return place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place;
    if (mode == PadMode::replicate) return std::clamp<int64_t>(place, 0, size - 1);
    return (place - first + 2 * kept) % kept + first;
  }
  std::vector<int64_t> shown(int64_t from, int64_t to) const {
    std::vector<int64_t> places;
    for (int64_t i = from; i < to; ++i) places.push_back(shown(i));
    return places;
  }
};

/// Throws ShapeError unless a dim of x can be padded by so many places.
void check_sides(PadMode mode, const Shape& shape, int dim, int64_t before, int64_t behind) {
  const int64_t size = shape[dim], left = size + before + behind;
  if (mode == PadMode::constant) {
    ONESTEP_CHECK(ShapeError, size + std::min<int64_t>(before, 0) + std::min<int64_t>(behind, 0) >= 0,
                  "pad: cuts more off than there is: ", before, " and ", behind, " of size ", size, " (dim ", dim, ")");
    return;
  }
  // What is circular continues with what has been left of the dim.
  const int64_t cut = mode == PadMode::circular ? std::min<int64_t>(before, 0) + std::min<int64_t>(behind, 0) : 0;
  const int64_t most = mode == PadMode::reflect ? size - 1 : size + cut;
  ONESTEP_CHECK(ShapeError, mode == PadMode::replicate || std::max(before, behind) <= most, "pad: at most ", most,
                " places can be added to dim ", dim - shape.rank(), " of input ", shape, ": got ", before, " and ", behind);
  ONESTEP_CHECK(ShapeError, left == 0 || (left > 0 && size + cut > 0), "pad: nothing is left of dim ", dim - shape.rank(),
                " of input ", shape, ": got ", before, " and ", behind);
}

/// The last `count` dims of `shape` as they are padded, from the last one on.
std::vector<PaddedDim> padded_dims(PadMode mode, const Shape& shape, const Sides& sides, int count) {
  std::vector<PaddedDim> dims;
  for (int i = 0; i < count; ++i) {
    const int dim = shape.rank() - 1 - i;
    const int64_t before = sides[2 * static_cast<size_t>(i)], behind = sides[2 * static_cast<size_t>(i) + 1];
    check_sides(mode, shape, dim, before, behind);
    dims.push_back({mode, shape[dim], before, behind});
  }
  return dims;
}

/// All dims but the last one as they are padded: the number of the row that each row shows, or -1.
std::vector<int64_t> rows_of(const std::vector<PaddedDim>& dims) {
  std::vector<int64_t> rows = {0};
  for (size_t d = dims.size(); d-- > 1;) {
    const std::vector<int64_t> places = dims[d].shown(0, dims[d].count());
    std::vector<int64_t> next;
    for (const int64_t row : rows)
      for (const int64_t place : places) next.push_back(row < 0 || place < 0 ? -1 : row * dims[d].size + place);
    rows = next;
  }
  return rows;
}

/// How a row of the result comes from one of x: its first places, its last ones, and neighbours of x between them.
struct PaddedRow {
  PaddedRow(const PaddedDim& dim, int64_t elements)
      : unit(elements),
        left(dim.begin()),
        first(std::max<int64_t>(-dim.before, 0)),
        inside(dim.end() - dim.begin()),
        right(dim.count() - dim.end()) {
    if (dim.mode == PadMode::constant) return;
    shown = dim.shown(0, left);
    const std::vector<int64_t> last = dim.shown(dim.end(), dim.count());
    shown.insert(shown.end(), last.begin(), last.end());
  }

  /// `count` places from number i of `shown` on.
  template <class T>
  T* put(int64_t i, int64_t count, const T* from, T value, T* to) const {
    if (shown.empty()) return std::fill_n(to, count * unit, value);
    for (const int64_t stop = i + count; i < stop; ++i, to += unit) {
      const int64_t place = shown[static_cast<size_t>(i)];
      if (unit == 1)
        *to = from[place];
      else
        std::copy_n(from + place * unit, unit, to);
    }
    return to;
  }
  template <class T>
  void put(const T* from, T value, T* to) const {
    to = put(0, left, from, value, to);
    to = std::copy_n(from + first * unit, inside * unit, to);
    put(left, right, from, value, to);
  }

  int64_t unit, left, first, inside, right;  // elements a place; places
  std::vector<int64_t> shown;                // what those of `left` and `right` show, unless it is the value
};

/// x with its last dims padded, row by row: neighbours in one piece.
Tensor padded(const Tensor& x, std::vector<PaddedDim> dims, Scalar value) {
  Shape shape = x.shape();
  for (size_t i = 0; i < dims.size(); ++i) shape[x.dim() - 1 - static_cast<int>(i)] = dims[i].count();
  Tensor y = empty(shape, x.dtype());
  if (y.numel() == 0) return y;
  int64_t unit = 1;
  for (; dims.size() > 1 && dims.front().unchanged(); dims.erase(dims.begin())) unit *= dims.front().size;
  const PaddedDim& last = dims.front();
  const PaddedRow plan(last, unit);
  const std::vector<int64_t> rows = rows_of(dims);
  const auto count = static_cast<int64_t>(rows.size());
  int64_t rows_of_x = 1;
  for (size_t i = 1; i < dims.size(); ++i) rows_of_x *= dims[i].size;
  const Tensor from = ops::contiguous_values(x), border = full({}, value, x.dtype());
  dispatch_size(x.dtype(), [&]<class T>() {
    const T *const source = ops::units<T>(from), other = *ops::units<T>(border);
    T* const target = ops::mutable_units<T>(y);
    const int64_t width = last.count() * unit;
    kernels::parallel_for(y.numel() / width, 2 + 0.2 * static_cast<double>(width), [&](int64_t r, int64_t end) {
      for (; r < end; ++r) {
        const int64_t row = rows[static_cast<size_t>(r % count)];
        if (row < 0)
          std::fill_n(target + r * width, width, other);
        else
          plan.put(source + (r / count * rows_of_x + row) * last.size * unit, other, target + r * width);
      }
    });
  });
  return y;
}

/// The gradient is the same op with all signs changed: what was added is cut off, what was cut off gets 0.
Tensor pad_constant(const Tensor& x, const Sides& sides, int count, Scalar value) {
  const Tensor y = count == 0 ? clone(x.detach()) : padded(x, padded_dims(PadMode::constant, x.shape(), sides, count), value);
  return record("pad", y, {x}, {}, [=](const Backward& b) -> Grads {
    Sides opposite = sides;
    for (int64_t& side : opposite) side = -side;
    return {pad_constant(b.grad(), opposite, count, 0)};
  });
}

Tensor pad_from_input(const Tensor& x, const Sides& sides, int count, PadMode mode) {
  ONESTEP_CHECK(ShapeError, 1 <= count && count <= 3 && (x.dim() == count + 1 || x.dim() == count + 2), "pad: ", 2 * count,
                " numbers for input ", x.shape(),
                " (these modes pad the last 1, 2 or 3 dims of a tensor that has one or two more)");
  const Tensor y = padded(x, padded_dims(mode, x.shape(), sides, count), 0);
  return record("pad", y, {x}, {}, [=](const Backward& b) -> Grads {  // added where it came from, dim by dim
    const std::vector<PaddedDim> dims = padded_dims(mode, b.input_shape(0), sides, count);
    Tensor grad = b.grad();
    for (int i = count - 1; i >= 0; --i) {
      const PaddedDim& dim = dims[static_cast<size_t>(i)];
      Shape shape = grad.shape();
      const int d = shape.rank() - 1 - i;
      shape[d] = dim.size;
      grad = ops::add_taken(grad, shape, d, from_values(dim.shown(0, dim.count()), {dim.count()}));
    }
    return {grad};
  });
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& pad, PadMode mode, Scalar value) {
  ONESTEP_CHECK(ShapeError, pad.size() % 2 == 0 && pad.size() / 2 <= static_cast<size_t>(x.dim()),
                "pad: needs two numbers a dim, for at most ", x.dim(), " dims: got ", pad.size(), " numbers");
  Sides sides{};
  std::copy(pad.begin(), pad.end(), sides.begin());
  const int count = static_cast<int>(pad.size() / 2);
  return mode == PadMode::constant ? pad_constant(x, sides, count, value) : pad_from_input(x, sides, count, mode);
}

}  // namespace onestep

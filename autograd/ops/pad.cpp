#include <algorithm>
#include <array>

#include "autograd/creation.h"
#include "autograd/ops/common.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// The places before and after each dim, from the last dim on.
using Sides = std::array<int64_t, size_t{2} * kMaxRank>;

/// The gradient is the same op with all signs changed: what was added is cut off, what was cut off gets 0.
Tensor pad_constant(const Tensor& x, const Sides& sides, Scalar value) {
  Shape shape = x.shape();
  Tensor from = x.detach();
  std::array<int64_t, kMaxRank> first{}, length{};
  for (int i = 0; i < x.dim(); ++i) {
    const auto dim = static_cast<size_t>(x.dim() - 1 - i);
    const int64_t before = sides[2 * static_cast<size_t>(i)], behind = sides[2 * static_cast<size_t>(i) + 1];
    int64_t& size = shape[x.dim() - 1 - i];
    const int64_t cut = std::max<int64_t>(-before, 0), kept = size - cut - std::max<int64_t>(-behind, 0);
    ONESTEP_CHECK(ShapeError, kept >= 0, "pad: cuts more off than there is: ", before, " and ", behind, " of size ", size,
                  " (dim ", dim, ")");
    from = narrow(from, static_cast<int64_t>(dim), cut, kept);
    first[dim] = std::max<int64_t>(before, 0);
    length[dim] = kept;
    size += before + behind;
  }
  Tensor y = empty(shape, x.dtype()), inside = y.detach();
  const Tensor border = full({}, value, x.dtype());
  const auto fill = [&](Tensor side) {
    if (side.numel() > 0) ops::copy_values(side, ops::expand_values("pad", border, side.shape()));
  };
  for (int i = 0; i < x.dim(); ++i) {  // what lies before and behind, of the places that are inside in the dims before
    const int64_t start = first[static_cast<size_t>(i)], end = start + length[static_cast<size_t>(i)];
    fill(narrow(inside, i, 0, start));
    fill(narrow(inside, i, end, inside.size(i) - end));
    inside = narrow(inside, i, start, end - start);
  }
  if (inside.numel() > 0) ops::copy_values(inside, from);
  return record("pad", y, {x}, {}, [sides](const Backward& b) -> Grads {
    Sides opposite = sides;
    for (int64_t& side : opposite) side = -side;
    return {pad_constant(b.grad(), opposite, 0)};
  });
}

/// Where the places of a padded dim of `size` come from.
Tensor sources(PadMode mode, int64_t size, int64_t before, int64_t behind) {
  std::vector<int64_t> places;
  const int64_t first = std::max<int64_t>(-before, 0), kept = size - first - std::max<int64_t>(-behind, 0);
  for (int64_t place = -before; place < size + behind; ++place) {
    if (mode == PadMode::reflect) places.push_back(place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place);
    if (mode == PadMode::replicate) places.push_back(std::clamp<int64_t>(place, 0, size - 1));
    if (mode == PadMode::circular) places.push_back((place - first + 2 * kept) % kept + first);
  }
  return from_values(places, {static_cast<int64_t>(places.size())});
}

Tensor pad_from_input(const Tensor& x, const std::vector<int64_t>& pad, PadMode mode) {
  const int dims = static_cast<int>(pad.size() / 2);
  ONESTEP_CHECK(ShapeError, 1 <= dims && dims <= 3 && (x.dim() == dims + 1 || x.dim() == dims + 2), "pad: ", pad.size(),
                " numbers for input ", x.shape(),
                " (these modes pad the last 1, 2 or 3 dims of a tensor that has one or two more)");
  Tensor y = x;
  for (int i = 0; i < dims; ++i) {
    const int64_t before = pad[2 * static_cast<size_t>(i)], behind = pad[2 * static_cast<size_t>(i) + 1], size = x.size(-1 - i);
    if (before == 0 && behind == 0) continue;
    const int64_t most = mode == PadMode::reflect ? size - 1 : size;
    ONESTEP_CHECK(ShapeError, mode == PadMode::replicate || std::max(before, behind) <= most, "pad: at most ", most,
                  " places can be added to dim ", -1 - i, " of input ", x.shape(), ": got ", before, " and ", behind);
    // What is circular continues with what has been left of the dim.
    const int64_t cut = mode == PadMode::circular ? std::min<int64_t>(before, 0) + std::min<int64_t>(behind, 0) : 0;
    const int64_t left = size + before + behind;
    ONESTEP_CHECK(ShapeError, left == 0 || (left > 0 && size + cut > 0), "pad: nothing is left of dim ", -1 - i, " of input ",
                  x.shape(), ": got ", before, " and ", behind);
    y = index_select(y, -1 - i, sources(mode, size, before, behind));
  }
  return &y.impl() == &x.impl() ? clone(x) : y;
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& pad, PadMode mode, Scalar value) {
  ONESTEP_CHECK(ShapeError, pad.size() % 2 == 0 && pad.size() / 2 <= static_cast<size_t>(x.dim()),
                "pad: needs two numbers a dim, for at most ", x.dim(), " dims: got ", pad.size(), " numbers");
  if (mode != PadMode::constant) return pad_from_input(x, pad, mode);
  Sides sides{};
  std::copy(pad.begin(), pad.end(), sides.begin());
  return pad_constant(x, sides, value);
}

}  // namespace onestep

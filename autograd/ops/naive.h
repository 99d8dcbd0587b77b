#pragma once
// Loops for the references of op cases: element by element in double, without the engine.
#include <algorithm>
#include <array>
#include <cstdint>

#include "autograd/testing/op_case.h"

namespace onestep::naive {

using Place = std::array<int64_t, kMaxRank>;

/// The index of row-major element `i`.
inline Place place_of(const Shape& shape, int64_t i) {
  Place place{};
  for (int d = shape.rank() - 1; d >= 0; --d) {
    place[static_cast<size_t>(d)] = i % shape[d];
    i /= shape[d];
  }
  return place;
}

/// The row-major number of the element at `place`.
inline int64_t number_of(const Shape& shape, const Place& place) {
  int64_t number = 0;
  for (int d = 0; d < shape.rank(); ++d) number = number * shape[d] + place[static_cast<size_t>(d)];
  return number;
}

/// y[i] = f(x[i])
template <class F>
Values map(const Values& x, F f) {
  Values y(x.shape);
  for (int64_t i = 0; i < y.shape.numel(); ++i) y[i] = f(x[i]);
  return y;
}

/// The shape to which `a` and `b` broadcast.
inline Shape broadcast(Shape a, Shape b) {
  while (a.rank() < b.rank()) a.insert(0, 1);
  while (b.rank() < a.rank()) b.insert(0, 1);
  for (int d = 0; d < a.rank(); ++d)
    if (a[d] == 1) a[d] = b[d];
  return a;
}

/// The value that x, broadcast to `shape`, has at element `i`.
inline double value_at(const Values& x, const Shape& shape, int64_t i) {
  const Place place = place_of(shape, i);
  Place own{};
  const int added = shape.rank() - x.shape.rank();
  for (int d = 0; d < x.shape.rank(); ++d)
    own[static_cast<size_t>(d)] = x.shape[d] == 1 ? 0 : place[static_cast<size_t>(d + added)];
  return x[number_of(x.shape, own)];
}

/// y[i] = f(a[i], b[i]), broadcast.
template <class F>
Values zip(const Values& a, const Values& b, F f) {
  Values y(broadcast(a.shape, b.shape));
  for (int64_t i = 0; i < y.shape.numel(); ++i) y[i] = f(value_at(a, y.shape, i), value_at(b, y.shape, i));
  return y;
}

/// y of `shape` with y[place] = x[from(place)].
template <class F>
Values rearrange(const Values& x, const Shape& shape, F from) {
  Values y(shape);
  for (int64_t i = 0; i < shape.numel(); ++i) y[i] = x[number_of(x.shape, from(place_of(shape, i)))];
  return y;
}

/// The values along `dim`, one line after the other, through f(line) -> line, which may be of another length.
template <class F>
Values along(const Values& x, int64_t dim, F f) {
  const int rank = x.shape.rank(), d = static_cast<int>(dim < 0 ? dim + rank : dim);
  Shape first = x.shape;
  if (rank > 0) first[d] = 1;
  const int64_t size = rank > 0 ? x.shape[d] : 1;
  std::vector<std::vector<double>> lines;
  for (int64_t i = 0; i < first.numel(); ++i) {
    Place place = place_of(first, i);
    std::vector<double> line;
    for (int64_t j = 0; j < size; ++j) {
      if (rank > 0) place[static_cast<size_t>(d)] = j;
      line.push_back(x[number_of(x.shape, place)]);
    }
    lines.push_back(f(line));
  }
  Shape result = first;
  if (rank > 0)
    result[d] = lines.empty() ? static_cast<int64_t>(f(std::vector<double>(static_cast<size_t>(size))).size())
                              : static_cast<int64_t>(lines[0].size());
  Values y(result);
  for (int64_t i = 0; i < result.numel(); ++i) {
    Place place = place_of(result, i);
    const int64_t at = rank > 0 ? place[static_cast<size_t>(d)] : 0;
    if (rank > 0) place[static_cast<size_t>(d)] = 0;
    y[i] = lines[static_cast<size_t>(number_of(first, place))][static_cast<size_t>(at)];
  }
  return y;
}

/// f(all values of a slice, in order) for every slice over `dims` (an empty list means all dims; negative from the end).
template <class F>
Values reduce(const Values& x, const Shape& dims, bool keepdim, F f) {
  const int rank = x.shape.rank();
  Shape kept = x.shape, result;
  for (int d = 0; d < rank; ++d) {
    const bool reduced =
        dims.empty() || std::any_of(dims.begin(), dims.end(), [&](int64_t wanted) { return (wanted + rank) % rank == d; });
    if (reduced) kept[d] = 1;
    if (!reduced || keepdim) result.push_back(kept[d]);
  }
  std::vector<std::vector<double>> slices(static_cast<size_t>(kept.numel()));
  for (int64_t i = 0; i < x.shape.numel(); ++i) {
    Place place = place_of(x.shape, i);
    for (int d = 0; d < rank; ++d)
      if (kept[d] == 1) place[static_cast<size_t>(d)] = 0;
    slices[static_cast<size_t>(number_of(kept, place))].push_back(x[i]);
  }
  Values y(result);
  for (size_t s = 0; s < slices.size(); ++s) y.data[s] = f(slices[s]);
  return y;
}

}  // namespace onestep::naive

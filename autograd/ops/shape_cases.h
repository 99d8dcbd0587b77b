#pragma once
// What the cases of views and copies share: where each element of the result comes from.
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"

namespace onestep::shapes {

using naive::Place;

template <class Op, class From>
OpSample rearranged(const char* label, const Shape& shape, const Shape& result, Op op, From from) {
  return {label,
          {{shape}},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [result, from](const std::vector<Values>& in) { return naive::rearrange(in[0], result, from); }};
}

/// The same elements in row-major order under another shape.
template <class Op>
OpSample reshaped(const char* label, const Shape& shape, const Shape& result, Op op) {
  return {label,
          {{shape}},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [result](const std::vector<Values>& in) {
            Values y(result);
            y.data = in[0].data;
            return y;
          }};
}

/// view works on these inputs only while they lie in rows.
template <class Op>
OpSample viewed(const char* label, const Shape& shape, const Shape& result, Op op) {
  OpSample sample = reshaped(label, shape, result, op);
  sample.any_layout = false;
  return sample;
}

inline Place swapped(Place place, size_t a, size_t b) {
  std::swap(place[a], place[b]);
  return place;
}

/// `length` places of dim `d` from `start`, every `step`-th.
template <class Op>
OpSample windowed(const char* label, const Shape& shape, int d, int64_t start, int64_t length, int64_t step, Op op) {
  Shape result = shape;
  result[d] = length;
  return rearranged(label, shape, result, op, [=](Place place) {
    int64_t& along = place[static_cast<size_t>(d)];
    along = start + along * step;
    return place;
  });
}

/// Part `number` of several, and that there are `count` of them.
template <class Op>
OpSample part(const char* label, const Shape& shape, int d, size_t count, size_t number, int64_t start, int64_t length, Op op) {
  return windowed(label, shape, d, start, length, 1, [=](const Tensor& x) {
    const std::vector<Tensor> parts = op(x);
    ONESTEP_CHECK(Error, parts.size() == count, "got ", parts.size(), " parts");
    return parts[number];
  });
}

inline Place same(const Place& place) { return place; }

}  // namespace onestep::shapes

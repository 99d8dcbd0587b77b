#include <algorithm>
#include <cmath>

#include "autograd/operators.h"
#include "autograd/ops/shape_cases.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using namespace shapes;

int64_t wrapped(int64_t i, int64_t n) { return (i % n + n) % n; }

/// f(place in the result) of dim `d`, the other dims as they are.
template <class Op, class F>
OpSample along(const char* label, const Shape& shape, const Shape& result, size_t d, Op op, F f) {
  return rearranged(label, shape, result, op, [=](Place place) {
    place[d] = f(place[d]);
    return place;
  });
}

/// Result dim i is dim order[i] of x.
template <class Op>
OpSample reordered(const char* label, const Shape& shape, const Shape& order, Op op) {
  Shape result = shape;
  for (int i = 0; i < order.rank(); ++i) result[i] = shape[static_cast<int>(order[i])];
  return rearranged(label, shape, result, op, [order](const Place& place) {
    Place from{};
    for (int i = 0; i < order.rank(); ++i) from[static_cast<size_t>(order[i])] = place[static_cast<size_t>(i)];
    return from;
  });
}

OpSample repeated(const char* label, const Shape& shape, const Shape& repeats, const Shape& result,
                  Tensor (*op)(const Tensor&, const Shape&)) {
  const int added = result.rank() - shape.rank();
  return rearranged(
      label, shape, result, [=](const Tensor& x) { return op(x, repeats); },
      [=](const Place& place) {
        Place from{};
        for (int d = 0; d < shape.rank(); ++d)
          from[static_cast<size_t>(d)] = place[static_cast<size_t>(d + added)] % std::max<int64_t>(shape[d], 1);
        return from;
      });
}

OpSample flipped(const char* label, const Shape& shape, const Shape& dims) {
  return rearranged(
      label, shape, shape, [dims](const Tensor& x) { return flip(x, dims); },
      [=](Place place) {
        for (const int64_t dim : dims) {
          const auto d = static_cast<int>(dim < 0 ? dim + shape.rank() : dim);
          place[static_cast<size_t>(d)] = shape[d] - 1 - place[static_cast<size_t>(d)];
        }
        return place;
      });
}

Tensor x23() { return zeros({2, 3}); }

const RegisterOpCases registered([] {
  const auto like = [](auto op, const Shape& shape) { return [op, shape](const Tensor& x) { return op(x, zeros(shape)); }; };
  const auto counts = [](const Tensor& x) { return repeat_interleave(x, tensor({2, 0, 1}), 1); };
  const auto move = [](const Shape& from, const Shape& to) { return [=](const Tensor& x) { return movedim(x, from, to); }; };
  return OpCases{
      {"view_as",
       {viewed("join", {2, 6}, {3, 4}, like(view_as, {3, 4})), viewed("flat", {2, 3}, {6}, like(view_as, {6})),
        viewed("empty", {0, 3}, {3, 0}, like(view_as, {3, 0}))},
       {}},
      {"reshape_as",
       {reshaped("join", {2, 6}, {3, 4}, like(reshape_as, {3, 4})),
        reshaped("empty", {0, 3}, {3, 0}, like(reshape_as, {3, 0}))},
       {}},
      {"expand_as",
       {along("rows", {1, 3}, {4, 3}, 0, like(expand_as, {4, 3}), [](int64_t) { return 0; }),
        along("empty", {0, 1}, {0, 3}, 1, like(expand_as, {0, 3}), [](int64_t) { return 0; })},
       {}},
      {"broadcast_to",
       {along(
            "rows", {1, 3}, {4, 3}, 0,
            [](const Tensor& x) {
              return broadcast_to(x, {4, 3});
            },
            [](int64_t) { return 0; }),
        along(
            "empty", {0, 1}, {0, 3}, 1,
            [](const Tensor& x) {
              return broadcast_to(x, {-1, 3});
            },
            [](int64_t) { return 0; })},
       {}},
      {"ravel",
       {reshaped("cube", {2, 3, 4}, {24}, [](const Tensor& x) { return ravel(x); }),
        reshaped("number", {}, {1}, [](const Tensor& x) { return ravel(x); }),
        reshaped("empty", {2, 0}, {0}, [](const Tensor& x) { return ravel(x); })},
       {}},
      {"unflatten",
       {viewed("middle", {2, 6, 3}, {2, 2, 3, 3},
               [](const Tensor& x) {
                 return unflatten(x, 1, {2, -1});
               }),
        viewed("last", {2, 6}, {2, 3, 1, 2},
               [](const Tensor& x) {
                 return unflatten(x, -1, {3, 1, 2});
               }),
        viewed("empty", {0, 4}, {0, 2, 2},
               [](const Tensor& x) {
                 return unflatten(x, 1, {2, 2});
               })},
       {refused(
            "sizes",
            [] {
              unflatten(x23(), 1, {2, 2});
            },
            "unflatten: sizes [2, 2] do not make up dim 1 of shape [2, 3]"),
        refused(
            "number", [] { unflatten(zeros({}), 0, {1}); }, "unflatten: a rank-0 tensor has no dim to split")}},
      {"swapaxes",
       {reordered("cube", {2, 3, 4}, {2, 1, 0}, [](const Tensor& x) { return swapaxes(x, 0, -1); }),
        reordered("empty", {0, 3}, {1, 0}, [](const Tensor& x) { return swapaxes(x, 0, 1); })},
       {}},
      {"swapdims",
       {reordered("cube", {2, 3, 4}, {1, 0, 2}, [](const Tensor& x) { return swapdims(x, 0, 1); }),
        reordered("empty", {0, 3}, {1, 0}, [](const Tensor& x) { return swapdims(x, 0, 1); })},
       {}},
      {"movedim",
       {reordered("first to last", {2, 3, 4}, {1, 2, 0}, move(0, -1)),
        reordered("last to first", {2, 3, 4}, {2, 0, 1}, move(2, 0)),
        reordered("two", {2, 3, 4, 5}, {2, 1, 3, 0}, move({0, 2}, {3, 0})), reordered("none", {2, 3}, {0, 1}, move({}, {})),
        reordered("number", {}, {}, move(0, 0)), reordered("empty", {0, 3}, {1, 0}, move(1, 0))},
       {refused(
            "lists",
            [] {
              movedim(x23(), {0, 1}, {0});
            },
            "movedim: lists of dims differ in length: [0, 1] and [0]"),
        refused(
            "repeated",
            [] {
              movedim(x23(), {0, 0}, {0, 1});
            },
            "movedim: ", is_a<ShapeError>),
        refused(
            "range", [] { movedim(x23(), 2, 0); }, "movedim: ", is_a<IndexError>)}},
      {"atleast_1d",
       {reshaped("number", {}, {1}, [](const Tensor& x) { return atleast_1d(x); }),
        reshaped("vector", {3}, {3}, [](const Tensor& x) { return atleast_1d(x) * 1; }),
        reshaped("empty", {0, 2}, {0, 2}, [](const Tensor& x) { return atleast_1d(x) * 1; })},
       {}},
      {"atleast_2d",
       {reshaped("number", {}, {1, 1}, [](const Tensor& x) { return atleast_2d(x); }),
        reshaped("vector", {3}, {1, 3}, [](const Tensor& x) { return atleast_2d(x); }),
        reshaped("empty", {0}, {1, 0}, [](const Tensor& x) { return atleast_2d(x); })},
       {}},
      {"atleast_3d",
       {reshaped("number", {}, {1, 1, 1}, [](const Tensor& x) { return atleast_3d(x); }),
        reshaped("vector", {3}, {1, 3, 1}, [](const Tensor& x) { return atleast_3d(x); }),
        reshaped("matrix", {2, 3}, {2, 3, 1}, [](const Tensor& x) { return atleast_3d(x); }),
        reshaped("empty", {0}, {1, 0, 1}, [](const Tensor& x) { return atleast_3d(x); })},
       {}},
      {"repeat",
       {repeated("matrix", {2, 3}, {2, 3}, {4, 9}, repeat), repeated("more dims", {2, 3}, {4, 1, 2}, {4, 2, 6}, repeat),
        repeated("number", {}, {3}, {3}, repeat), repeated("once", {2, 3}, {1, 1}, {2, 3}, repeat),
        repeated("not at all", {2, 3}, {0, 2}, {0, 6}, repeat), repeated("empty", {0, 2}, {2, 2}, {0, 4}, repeat),
        repeated("rank 6", {2, 1, 2, 1, 2, 2}, {1, 2, 2, 3, 1, 2}, {2, 2, 4, 3, 2, 4}, repeat)},
       {refused(
            "dims", [] { repeat(x23(), 2); }, "repeat: [2] names fewer dims than shape [2, 3] has"),
        refused(
            "negative",
            [] {
              repeat(x23(), {2, -1});
            },
            "repeat: a negative number in [2, -1]")}},
      {"tile",
       {repeated("fewer dims", {2, 3}, 2, {2, 6}, tile), repeated("more dims", {2, 3}, {2, 2, 1}, {2, 4, 3}, tile),
        repeated("empty", {0, 2}, 3, {0, 6}, tile)},
       {}},
      {"repeat_interleave",
       {along(
            "last", {2, 3}, {2, 6}, 1, [](const Tensor& x) { return repeat_interleave(x, 2, -1); },
            [](int64_t i) { return i / 2; }),
        along(
            "first", {2, 3}, {6, 3}, 0, [](const Tensor& x) { return repeat_interleave(x, 3, 0); },
            [](int64_t i) { return i / 3; }),
        rearranged(
            "flattened", {2, 3}, {12}, [](const Tensor& x) { return repeat_interleave(x, 2); },
            [](const Place& place) {
              return Place{place[0] / 6, place[0] / 2 % 3};
            }),
        along("counts", {2, 3}, {2, 3}, 1, counts, [](int64_t i) { return i < 2 ? 0 : 2; }),
        along(
            "one count", {2, 3}, {2, 6}, 1, [](const Tensor& x) { return repeat_interleave(x, tensor({2}), 1); },
            [](int64_t i) { return i / 2; }),
        along(
            "once", {2, 3}, {2, 3}, 1, [](const Tensor& x) { return repeat_interleave(x, 1, 1); }, [](int64_t i) { return i; }),
        along(
            "empty", {0, 3}, {0, 6}, 1, [](const Tensor& x) { return repeat_interleave(x, 2, 1); },
            [](int64_t i) { return i / 2; })},
       {refused(
            "counts",
            [] {
              repeat_interleave(x23(), tensor({1, 2}), 1);
            },
            "repeat_interleave: 2 numbers for dim 1 of shape [2, 3]"),
        refused(
            "negative", [] { repeat_interleave(x23(), -1); }, "repeat_interleave: a negative number: -1"),
        refused(
            "a negative count",
            [] {
              repeat_interleave(x23(), tensor({1, -2, 0}), 1);
            },
            "repeat_interleave: a negative number: -2"),
        refused(
            "floats", [] { repeat_interleave(x23(), tensor({1.0})); },
            "repeat_interleave: the numbers must be integers: got float32"),
        refused(
            "matrix",
            [] {
              repeat_interleave(x23(), zeros({1, 1}, DType::int64));
            },
            "repeat_interleave: the numbers must be a vector: got shape [1, 1]")}},
      {"flip",
       {flipped("last", {2, 3, 4}, -1), flipped("first", {2, 3}, 0), flipped("two", {2, 3, 4}, {0, 2}),
        flipped("none", {2, 3}, {}), flipped("number", {}, {}), flipped("empty", {0, 3}, 1),
        flipped("large", {300, 250}, {0, 1}), flipped("rank 6", {2, 1, 3, 1, 2, 2}, {1, 2, 5})},
       {refused(
           "repeated",
           [] {
             flip(x23(), {1, -1});
           },
           "flip: ", is_a<ShapeError>)}},
      {"fliplr",
       {along(
            "matrix", {2, 3}, {2, 3}, 1, [](const Tensor& x) { return fliplr(x); }, [](int64_t i) { return 2 - i; }),
        along(
            "empty", {0, 3}, {0, 3}, 1, [](const Tensor& x) { return fliplr(x); }, [](int64_t i) { return 2 - i; })},
       {refused(
           "vector", [] { fliplr(zeros({3})); }, "fliplr: needs at least 2 dims: got shape [3]")}},
      {"flipud",
       {along(
            "matrix", {2, 3}, {2, 3}, 0, [](const Tensor& x) { return flipud(x); }, [](int64_t i) { return 1 - i; }),
        along(
            "empty", {3, 0}, {3, 0}, 0, [](const Tensor& x) { return flipud(x); }, [](int64_t i) { return 2 - i; })},
       {refused(
           "number", [] { flipud(zeros({})); }, "flipud: needs at least 1 dim: got shape []")}},
      {"roll",
       {along(
            "last", {2, 5}, {2, 5}, 1, [](const Tensor& x) { return roll(x, 2, 1); },
            [](int64_t i) { return wrapped(i - 2, 5); }),
        along(
            "back", {5, 2}, {5, 2}, 0, [](const Tensor& x) { return roll(x, -7, 0); },
            [](int64_t i) { return wrapped(i + 7, 5); }),
        rearranged(
            "two dims", {3, 4}, {3, 4},
            [](const Tensor& x) {
              return roll(x, {1, -1}, {0, 1});
            },
            [](const Place& place) {
              return Place{wrapped(place[0] - 1, 3), wrapped(place[1] + 1, 4)};
            }),
        rearranged(
            "flattened", {2, 3}, {2, 3}, [](const Tensor& x) { return roll(x, 1); },
            [](const Place& place) {
              const int64_t i = wrapped(place[0] * 3 + place[1] - 1, 6);
              return Place{i / 3, i % 3};
            }),
        along(
            "not at all", {2, 5}, {2, 5}, 1, [](const Tensor& x) { return roll(x, 5, 1); }, [](int64_t i) { return i; }),
        along(
            "empty", {0, 3}, {0, 3}, 0, [](const Tensor& x) { return roll(x, 1, 0); }, [](int64_t i) { return i; })},
       {refused(
            "lists",
            [] {
              roll(x23(), {1, 2}, 0);
            },
            "roll: 2 shifts for 1 dims"),
        refused(
            "number", [] { roll(zeros({}), 1, 0); }, "roll: a rank-0 tensor has no dim 0")}},
      {"rot90",
       {rearranged(
            "once", {2, 3}, {3, 2}, [](const Tensor& x) { return rot90(x); },
            [](const Place& place) {
              return Place{place[1], 2 - place[0]};
            }),
        rearranged(
            "twice", {2, 3}, {2, 3}, [](const Tensor& x) { return rot90(x, 2); },
            [](const Place& place) {
              return Place{1 - place[0], 2 - place[1]};
            }),
        rearranged(
            "back", {2, 3}, {3, 2}, [](const Tensor& x) { return rot90(x, -1); },
            [](const Place& place) {
              return Place{1 - place[1], place[0]};
            }),
        rearranged(
            "four times", {2, 3}, {2, 3},
            [](const Tensor& x) {
              return rot90(x, 4, {1, 0});
            },
            same),
        rearranged(
            "empty", {0, 3}, {3, 0}, [](const Tensor& x) { return rot90(x); }, same)},
       {refused(
            "dims",
            [] {
              rot90(x23(), 1, {0, -2});
            },
            "rot90: ", is_a<ShapeError>),
        refused(
            "vector", [] { rot90(zeros({3})); }, "rot90: needs 2 dims of at least 2: got [0, 1] of shape [3]")}},
      {"unbind",
       {rearranged(
            "second column", {3, 4}, {3}, [](const Tensor& x) { return unbind(x, 1)[1]; },
            [](const Place& place) {
              return Place{place[0], 1};
            }),
        rearranged(
            "last row", {3, 4}, {4}, [](const Tensor& x) { return unbind(x).back(); },
            [](const Place& place) {
              return Place{2, place[0]};
            }),
        rearranged(
            "empty", {3, 0}, {0}, [](const Tensor& x) { return unbind(x)[2]; }, same)},
       {refused(
           "number", [] { unbind(zeros({})); }, "unbind: a rank-0 tensor has no places")}},
      {"tensor_split",
       {part("first", {2, 7}, 1, 3, 0, 0, 3, [](const Tensor& x) { return tensor_split(x, 3, 1); }),
        part("last", {2, 7}, 1, 3, 2, 5, 2, [](const Tensor& x) { return tensor_split(x, 3, -1); }),
        part("indices", {7, 2}, 0, 3, 1, 2, 3,
             [](const Tensor& x) {
               return tensor_split(x, std::vector<int64_t>{2, -2});
             }),
        part("crossing indices", {7, 2}, 0, 3, 1, 5, 0,
             [](const Tensor& x) {
               return tensor_split(x, std::vector<int64_t>{5, 3});
             }),
        part("empty", {0, 2}, 0, 2, 1, 0, 0, [](const Tensor& x) { return tensor_split(x, 2); })},
       {refused(
            "sections", [] { tensor_split(x23(), 0); }, "tensor_split: sections must be at least 1: got 0"),
        refused(
            "number", [] { tensor_split(zeros({}), 2); }, "tensor_split: a rank-0 tensor cannot be split")}},
      {"squeeze",
       {reshaped("two dims", {1, 2, 1, 3}, {2, 3},
                 [](const Tensor& x) {
                   return squeeze(x, {0, -2});
                 }),
        reshaped("not of size 1", {1, 2, 1}, {2, 1},
                 [](const Tensor& x) {
                   return squeeze(x, {0, 1});
                 })},
       {refused(
           "repeated",
           [] {
             squeeze(x23(), {0, -2});
           },
           "squeeze: ", is_a<ShapeError>)}},
  };
});

}  // namespace
}  // namespace onestep

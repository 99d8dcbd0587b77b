#include "autograd/operators.h"
#include "autograd/ops/shape_cases.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using namespace shapes;

OpSample transposed(const char* label, const Shape& shape, int64_t a, int64_t b) {
  Shape result = shape;
  const int rank = shape.rank();
  const auto i = static_cast<int>(a < 0 ? a + std::max(rank, 1) : a), j = static_cast<int>(b < 0 ? b + std::max(rank, 1) : b);
  if (rank > 0) std::swap(result[i], result[j]);
  return rearranged(
      label, shape, result, [a, b](const Tensor& x) { return transpose(x, a, b); },
      [i, j](const Place& place) { return swapped(place, static_cast<size_t>(i), static_cast<size_t>(j)); });
}

OpSample permuted(const char* label, const Shape& shape, const Shape& dims) {
  Shape result = shape, positive = dims;
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] < 0) positive[i] += dims.rank();
    result[i] = shape[static_cast<int>(positive[i])];
  }
  return rearranged(
      label, shape, result, [dims](const Tensor& x) { return permute(x, dims); },
      [positive](const Place& place) {
        Place from{};
        for (int i = 0; i < positive.rank(); ++i) from[static_cast<size_t>(positive[i])] = place[static_cast<size_t>(i)];
        return from;
      });
}

OpSample expanded(const char* label, const Shape& shape, const Shape& wanted, const Shape& result) {
  return {label,
          {{shape}},
          [wanted](const std::vector<Tensor>& in) { return expand(in[0], wanted); },
          [result](const std::vector<Values>& in) {
            Values y(result);
            for (int64_t i = 0; i < result.numel(); ++i) y[i] = naive::value_at(in[0], result, i);
            return y;
          }};
}

OpSample selected(const char* label, const Shape& shape, int64_t dim, int64_t index, size_t d, int64_t start) {
  Shape result = shape;
  result.erase(static_cast<int>(d));
  return rearranged(
      label, shape, result, [=](const Tensor& x) { return select(x, dim, index); },
      [=](const Place& place) {
        Place from{};
        for (size_t i = 0, j = 0; i < from.size(); ++i) from[i] = i == d ? start : place[j++];
        return from;
      });
}

/// Reads a transposed matrix back in rows.
template <class Op>
OpSample of_transposed(Op op) {
  return rearranged(
      "transposed", {3, 4}, {4, 3}, [op](const Tensor& x) { return op(transpose(x, 0, 1)); },
      [](const Place& place) { return swapped(place, 0, 1); });
}

Tensor x23() { return zeros({2, 3}); }

std::vector<OpSample> reshapes() {
  const auto to_shape = [](const char* label, const Shape& from, const Shape& result, const Shape& wanted) {
    return reshaped(label, from, result, [wanted](const Tensor& x) { return reshape(x, wanted); });
  };
  return {to_shape("join", {2, 3, 4}, {6, 4}, {6, 4}),
          to_shape("split", {6, 4}, {2, 3, 4}, {2, 3, -1}),
          to_shape("to a number", {1, 1}, {}, {}),
          to_shape("from a number", {}, {1, 1}, {1, -1}),
          to_shape("empty", {0, 3}, {3, 0}, {3, 0}),
          to_shape("rank 6", {4, 6, 2}, {2, 2, 3, 2, 1, 2}, {2, 2, 3, 2, 1, 2}),
          to_shape("rows of a cube", {2, 3, 4}, {8, 3}, {8, 3})};
}

std::vector<OpSample> views() {
  const auto to_shape = [](const char* label, const Shape& from, const Shape& result, const Shape& wanted) {
    return viewed(label, from, result, [wanted](const Tensor& x) { return view(x, wanted); });
  };
  return {to_shape("join", {2, 6}, {3, 4}, {3, 4}),
          to_shape("left over", {2, 3, 2}, {2, 6}, {2, -1}),
          to_shape("number", {1}, {}, {}),
          to_shape("empty", {2, 0}, {0, 5}, {0, 5}),
          to_shape("rank 6", {8, 3}, {2, 2, 1, 2, 3, 1}, {2, 2, 1, 2, 3, 1}),
          rearranged(
              "split a dim of a transposed matrix", {4, 3}, {3, 2, 2},
              [](const Tensor& x) {
                return view(transpose(contiguous(x), 0, 1), {3, 2, 2});
              },
              [](const Place& place) {
                return Place{place[1] * 2 + place[2], place[0]};
              })};
}

const auto kStart = [](int64_t start, int64_t end, int64_t step) {
  return [=](const Tensor& x) { return slice(x, 1, start, end, step); };
};

const RegisterOpCases registered([] {
  return OpCases{
      {"view",
       views(),
       {refused(
            "size",
            [] {
              view(x23(), {4, 2});
            },
            "view: shape [4, 2] does not fit 6 elements of shape [2, 3]"),
        refused(
            "two unknown",
            [] {
              view(x23(), {-1, -1});
            },
            "view: only one size can be -1: [-1, -1]"),
        refused(
            "strides", [] { view(transpose(x23(), 0, 1), 6); },
            "view: shape [3, 2] with strides [1, 3] cannot be seen as [6] without a copy (use reshape, or contiguous() "
            "first)")}},
      {"reshape",
       reshapes(),
       {refused(
            "size",
            [] {
              reshape(x23(), {-1, 4});
            },
            "reshape: ", is_a<ShapeError>),
        refused(
            "negative",
            [] {
              reshape(x23(), {-2, 3});
            },
            "reshape: invalid size -2 in [-2, 3]")}},
      {"flatten",
       {reshaped("all", {2, 3, 4}, {24}, [](const Tensor& x) { return flatten(x); }),
        reshaped("last two", {2, 3, 4}, {2, 12}, [](const Tensor& x) { return flatten(x, 1); }),
        reshaped("first two", {2, 3, 4}, {6, 4}, [](const Tensor& x) { return flatten(x, 0, -2); }),
        reshaped("one dim", {2, 3}, {2, 3}, [](const Tensor& x) { return flatten(x, 1, 1); }),
        reshaped("number", {}, {1}, [](const Tensor& x) { return flatten(x); }),
        reshaped("empty", {2, 0, 3}, {0}, [](const Tensor& x) { return flatten(x); }),
        reshaped("rank 6", {2, 1, 3, 1, 2, 2}, {2, 6, 2}, [](const Tensor& x) { return flatten(x, 1, 4); })},
       {refused(
           "order", [] { flatten(x23(), 1, 0); }, "flatten: start_dim 1 comes after end_dim 0 for shape [2, 3]")}},
      {"transpose",
       {transposed("matrix", {3, 4}, 0, 1), transposed("heads", {2, 3, 4, 2}, 1, 2), transposed("last two", {2, 3, 4}, -1, -2),
        transposed("same dim", {2, 3}, 1, 1), transposed("number", {}, 0, -1), transposed("empty", {0, 3}, 0, 1),
        transposed("rank 6", {2, 1, 3, 1, 2, 2}, 0, 5)},
       {refused(
           "dim", [] { transpose(x23(), 0, 2); }, "transpose: ", is_a<IndexError>)}},
      {"t",
       {rearranged(
            "matrix", {3, 4}, {4, 3}, [](const Tensor& x) { return t(x); },
            [](const Place& place) { return swapped(place, 0, 1); }),
        rearranged(
            "vector", {3}, {3}, [](const Tensor& x) { return t(x) * 1; }, same),
        rearranged(
            "empty", {0, 3}, {3, 0}, [](const Tensor& x) { return t(x); }, same)},
       {refused(
           "rank",
           [] {
             t(zeros({1, 2, 3}));
           },
           "t: needs a matrix or a vector: got shape [1, 2, 3] (use transpose or permute)")}},
      {"permute",
       {permuted("cube", {2, 3, 4}, {2, 0, 1}), permuted("negative", {2, 3, 4}, {-1, 0, -2}), permuted("number", {}, {}),
        permuted("empty", {2, 0, 3}, {1, 2, 0}), permuted("rank 6", {2, 1, 3, 1, 2, 2}, {5, 3, 1, 0, 2, 4})},
       {refused(
            "repeated",
            [] {
              permute(x23(), {0, -2});
            },
            "permute: ", is_a<ShapeError>),
        refused(
            "missing", [] { permute(x23(), {0}); }, "permute: dims [0] for a tensor of shape [2, 3] (name each dim once)")}},
      {"contiguous",
       {rearranged(
            "large transposed", {300, 250}, {250, 300}, [](const Tensor& x) { return contiguous(transpose(x, 0, 1)); },
            [](const Place& place) { return swapped(place, 0, 1); }),
        rearranged(
            "heads and back", {2, 20, 3, 5}, {2, 5, 3, 20}, [](const Tensor& x) { return contiguous(transpose(x, 1, 3)); },
            [](const Place& place) { return swapped(place, 1, 3); }),
        of_transposed([](const Tensor& x) { return contiguous(x); }),
        rearranged(
            "rows", {2, 3}, {2, 3}, [](const Tensor& x) { return contiguous(x) * 1; }, same),
        rearranged(
            "empty", {2, 0}, {0, 2}, [](const Tensor& x) { return contiguous(transpose(x, 0, 1)); },
            [](const Place& place) { return swapped(place, 0, 1); }),
        rearranged(
            "repeated", {3, 1}, {3, 2},
            [](const Tensor& x) {
              return contiguous(expand(x, {3, 2}));
            },
            [](const Place& place) {
              return Place{place[0], 0};
            })},
       {}},
      {"clone",
       {of_transposed([](const Tensor& x) { return clone(x); }), reshaped("cube", {2, 3, 4}, {2, 3, 4}, clone),
        reshaped("number", {}, {}, clone), reshaped("empty", {0, 2}, {0, 2}, clone),
        reshaped("rank 6", {2, 1, 2, 1, 3, 2}, {2, 1, 2, 1, 3, 2}, clone)},
       {}},
      {"squeeze",
       {reshaped("all", {1, 3, 1, 2}, {3, 2}, [](const Tensor& x) { return squeeze(x); }),
        reshaped("one", {1, 3, 1}, {1, 3}, [](const Tensor& x) { return squeeze(x, -1); }),
        reshaped("not of size 1", {2, 3}, {2, 3}, [](const Tensor& x) { return squeeze(x, 1) * 1; }),
        reshaped("number", {}, {}, [](const Tensor& x) { return squeeze(x); }),
        reshaped("empty", {1, 0}, {0}, [](const Tensor& x) { return squeeze(x, 0); }),
        reshaped("rank 6", {1, 2, 1, 2, 1, 2}, {2, 2, 2}, [](const Tensor& x) { return squeeze(x); })},
       {refused(
           "dim", [] { squeeze(x23(), 2); }, "squeeze: ", is_a<IndexError>)}},
      {"unsqueeze",
       {reshaped("first", {2, 3}, {1, 2, 3}, [](const Tensor& x) { return unsqueeze(x, 0); }),
        reshaped("middle", {2, 3}, {2, 1, 3}, [](const Tensor& x) { return unsqueeze(x, 1); }),
        reshaped("last", {2, 3}, {2, 3, 1}, [](const Tensor& x) { return unsqueeze(x, -1); }),
        reshaped("number", {}, {1}, [](const Tensor& x) { return unsqueeze(x, 0); }),
        reshaped("empty", {0}, {0, 1}, [](const Tensor& x) { return unsqueeze(x, 1); })},
       {refused(
            "dim", [] { unsqueeze(x23(), 3); }, "unsqueeze: ", is_a<IndexError>),
        refused(
            "rank",
            [] {
              unsqueeze(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0);
            },
            "shape: ", is_a<ShapeError>)}},
      {"expand",
       {expanded("columns", {3, 1}, {3, 4}, {3, 4}), expanded("new dims", {3, 1}, {2, 3, 4}, {2, 3, 4}),
        expanded("kept size", {3, 1}, {-1, 2}, {3, 2}), expanded("number", {}, {2, 3}, {2, 3}),
        expanded("to nothing", {1, 3}, {0, 3}, {0, 3}), expanded("empty", {0, 1}, {2, 0, 3}, {2, 0, 3}),
        expanded("rank 6", {2, 1, 2}, {2, 1, 3, 2, 2, 2}, {2, 1, 3, 2, 2, 2})},
       {refused(
            "size",
            [] {
              expand(x23(), {4, 3});
            },
            "expand: shape [2, 3] does not broadcast to [4, 3] (from the right, each size must be 1 or equal)"),
        refused(
            "new -1",
            [] {
              expand(x23(), {-1, 2, 3});
            },
            "expand: -1 in [-1, 2, 3] stands for a dim that shape [2, 3] does not have")}},
      {"slice",
       {windowed("inside", {2, 5}, 1, 1, 3, 1, kStart(1, 4, 1)), windowed("steps", {2, 5}, 1, 0, 3, 2, kStart(0, 5, 2)),
        windowed("from the end", {2, 5}, 1, 3, 2, 1, kStart(-2, 99, 1)),
        windowed("nothing", {2, 5}, 1, 0, 0, 1, kStart(4, 2, 1)), windowed("beyond", {2, 5}, 1, 0, 5, 1, kStart(-99, 99, 1)),
        windowed("empty", {0, 5}, 1, 2, 2, 2, kStart(2, 5, 2)),
        windowed("rank 6", {2, 4, 1, 2, 1, 2}, 1, 1, 2, 2, kStart(1, 4, 2))},
       {refused(
            "step", [] { slice(x23(), 0, 0, 2, 0); }, "slice: step must be at least 1: got 0"),
        refused(
            "number", [] { slice(zeros({}), 0, 0, 1); }, "slice: a rank-0 tensor has no dim to slice")}},
      {"select",
       {selected("row", {3, 4}, 0, 1, 0, 1), selected("last column", {3, 4}, -1, -1, 1, 3),
        selected("middle", {2, 3, 4}, 1, 2, 1, 2), selected("vector", {5}, 0, -2, 0, 3),
        selected("rank 6", {2, 1, 3, 1, 2, 2}, 2, 1, 2, 1), selected("empty", {2, 0}, 0, 1, 0, 1)},
       {refused(
            "index", [] { select(x23(), 1, 3); }, "select: index 3 is out of range for dim 1 of shape [2, 3]"),
        refused(
            "number", [] { select(zeros({}), 0, 0); }, "select: a rank-0 tensor has no dim to select from")}},
      {"narrow",
       {windowed("inside", {2, 5}, 1, 1, 3, 1, [](const Tensor& x) { return narrow(x, 1, 1, 3); }),
        windowed("from the end", {4, 2}, 0, 2, 1, 1, [](const Tensor& x) { return narrow(x, 0, -2, 1); }),
        windowed("nothing", {2, 3}, 1, 0, 0, 1, [](const Tensor& x) { return narrow(x, 1, 3, 0); }),
        windowed("empty", {0, 3}, 1, 1, 2, 1, [](const Tensor& x) { return narrow(x, 1, 1, 2); })},
       {refused(
           "length", [] { narrow(x23(), 1, 2, 2); }, "narrow: 2 places from 2 are out of range for dim 1 of shape [2, 3]")}},
      {"split",
       {part("equal", {4, 3}, 0, 2, 1, 2, 2, [](const Tensor& x) { return split(x, 2); }),
        part("smaller last", {2, 5}, 1, 3, 2, 4, 1, [](const Tensor& x) { return split(x, 2, -1); }),
        part("sizes", {2, 6}, 1, 3, 1, 1, 3,
             [](const Tensor& x) {
               return split(x, std::vector<int64_t>{1, 3, 2}, 1);
             }),
        part("empty", {0, 3}, 0, 1, 0, 0, 0, [](const Tensor& x) { return split(x, 2); }),
        part("nothing by nothing", {3, 0}, 1, 1, 0, 0, 0, [](const Tensor& x) { return split(x, 0, 1); })},
       {refused(
            "size", [] { split(x23(), 0); }, "split: split_size must be at least 1: got 0"),
        refused(
            "negative size", [] { split(zeros(0), -1); }, "split: ", is_a<ShapeError>),
        refused(
            "dim", [] { split(x23(), 1, 2); }, "split: ", is_a<IndexError>),
        refused(
            "sizes",
            [] {
              split(x23(), std::vector<int64_t>{1, 1}, 1);
            },
            "split: sizes add up to 2 for dim 1 of shape [2, 3]")}},
      {"chunk",
       {part("equal", {2, 6}, 1, 3, 1, 2, 2, [](const Tensor& x) { return chunk(x, 3, 1); }),
        part("smaller last", {5, 2}, 0, 3, 2, 4, 1, [](const Tensor& x) { return chunk(x, 3); }),
        part("fewer", {5, 2}, 0, 3, 1, 2, 2, [](const Tensor& x) { return chunk(x, 4); }),
        part("empty", {0, 2}, 0, 3, 0, 0, 0, [](const Tensor& x) { return chunk(x, 3); })},
       {refused(
            "chunks", [] { chunk(x23(), 0); }, "chunk: chunks must be at least 1: got 0"),
        refused(
            "dim", [] { chunk(x23(), 1, -3); }, "chunk: ", is_a<IndexError>)}},
  };
});

}  // namespace
}  // namespace onestep

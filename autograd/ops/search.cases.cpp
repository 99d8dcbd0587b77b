#include <cmath>
#include <map>
#include <set>
#include <string>

#include "autograd/ops/reduce_cases.h"
#include "autograd/ops_order.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using namespace reductions;

/// The number of elements of a row that lie before v, or not behind it with `right`; all of them for NaN.
double place_in(const double* row, int64_t n, double v, bool right) {
  int64_t place = 0;
  while (place < n && !(right ? row[place] > v : row[place] >= v)) ++place;
  return static_cast<double>(place);
}

OpSample searched(const char* label, InputSpec sorted, InputSpec values, bool right) {
  return {label,
          {std::move(sorted), std::move(values)},
          [=](const std::vector<Tensor>& in) { return searchsorted(in[0], in[1], false, right); },
          [=](const std::vector<Values>& in) {
            const int64_t n = in[0].shape.back(), count = in[0].shape.rank() > 1 ? in[1].shape.back() : in[1].shape.numel();
            Values y(in[1].shape);
            for (int64_t i = 0; i < y.shape.numel(); ++i)
              y[i] = place_in(in[0].data.data() + (count == 0 ? 0 : i / count) * n, n, in[1][i], right);
            return y;
          },
          false};
}

/// The same of another op on (sorted, values).
OpSample with(OpSample sample, std::function<Tensor(const std::vector<Tensor>&)> forward) {
  sample.forward = std::move(forward);
  return sample;
}

const InputSpec kSorted = values({6}, {-2, -1, -1, 0.5, 0.5, 3});
const InputSpec kWanted = values({2, 4}, {-1, 0.5, 4, -3, 0, kNan, kInf, 3});

/// Rows of sorted numbers, each of them three times.
InputSpec ascending(int rows, int n) {
  std::vector<double> x;
  for (int i = 0; i < rows * n; ++i) x.push_back((i % n / 3 - n / 6) * 0.25 + i / n);
  return values({rows, n}, x);
}

const RegisterOpCases searching([] {
  const InputSpec rows = values({2, 3}, {-2, 0, 1, 3, 3, 4}), three = values({2, 2}, {0, 5, 3, -1});
  const InputSpec whole{.shape = 4, .dtype = DType::int64, .values = {1, 3, 3, 7}};
  const InputSpec shuffled = values({4}, {3, -1, 7, 3});
  const OpSample number = searched("number", kSorted, values({}, {0.5}), true);
  const OpSample sorter{"sorter",
                        {shuffled, values({3}, {3, 0, 8})},
                        [](const std::vector<Tensor>& in) { return searchsorted(in[0], in[1], false, false, argsort(in[0])); },
                        [](const std::vector<Values>&) {
                          Values y(3);
                          y.data = {1, 1, 4};
                          return y;
                        },
                        false};
  return OpCases{
      {"searchsorted",
       {searched("first", kSorted, kWanted, false), searched("last", kSorted, kWanted, true),
        searched("rows", rows, three, false), searched("rows from the right", rows, three, true),
        searched("nothing", kSorted, {{0, 3}}, false), searched("in nothing", {{2, 0}}, values({2, 1}, {1, 2}), false),
        searched("int64", whole, integers({5}), true), searched("int64 in floats", kSorted, integers({5}), false), number,
        with(number, [](const std::vector<Tensor>& in) { return searchsorted(in[0], 0.5, true, true); }), sorter,
        searched("many", distinct({1}), drawn({3, 300}), false),
        searched("many in rows", ascending(2, 37), drawn({2, 100}), false),
        searched("many in rows", ascending(2, 64), drawn({2, 33}), true)},
       {{"rows",
         [] {
           searchsorted(zeros({2, 3}), zeros({3, 3}));
         },
         "searchsorted: values of shape [3, 3] do not fit sorted rows of shape [2, 3] (all sizes but the last must be equal, "
         "or "
         "the sorted sequence a vector)"},
        {"number in rows",
         [] {
           searchsorted(zeros({2, 3}), 1);
         },
         "searchsorted: a number in sorted rows of shape [2, 3] (they must be one vector)"},
        {"in a number", [] { searchsorted(zeros({}), zeros({3})); }, "searchsorted: a sorted sequence needs a dim"},
        {"sorter",
         [] {
           searchsorted(zeros({3}), 1, false, false, tensor({0, 1}));
         },
         "searchsorted: a sorter of shape [2] for a sequence of shape [3]"}}},
      {"bucketize",
       {with(searched("first", kSorted, kWanted, false), [](const auto& in) { return bucketize(in[1], in[0]); }),
        with(searched("last", kSorted, kWanted, true), [](const auto& in) { return bucketize(in[1], in[0], true, true); }),
        with(searched("nothing", kSorted, {{2, 0}}, true), [](const auto& in) { return bucketize(in[1], in[0], true, true); }),
        with(number, [](const auto& in) { return bucketize(0.5, in[0], false, true); })},
       {{"boundaries",
         [] {
           bucketize(zeros({3}), zeros({2, 3}));
         },
         "bucketize: boundaries must be a vector: got shape [2, 3]"}}}};
});

/// The slices along dim 0 of a tensor whose other dims come to `width` elements.
std::vector<Row> slices_of(const Values& x, int64_t width) {
  std::vector<Row> slices;
  for (int64_t i = 0; i < x.shape.numel(); i += width) slices.emplace_back(x.data.begin() + i, x.data.begin() + i + width);
  return slices;
}

enum class Part { values, inverse, counts };

OpSample distinct_elements(const std::string& label, InputSpec x, Part part) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) {
            const UniqueResult y = unique(in[0], true, part == Part::inverse, part == Part::counts);
            return part == Part::values ? y.values : part == Part::inverse ? y.inverse : y.counts;
          },
          [=](const std::vector<Values>& in) {
            std::map<double, double> counts;
            for (const double v : in[0].data) ++counts[v];
            const auto found = static_cast<int64_t>(counts.size());
            if (part == Part::inverse)
              return naive::map(in[0],
                                [&](double v) { return static_cast<double>(std::distance(counts.begin(), counts.find(v))); });
            Values y(found);
            y.data.clear();
            for (const auto& [value, count] : counts) y.data.push_back(part == Part::values ? value : count);
            return y;
          },
          false};
}

OpSample distinct_slices(const char* label, InputSpec x, int dim) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) {
            return transpose(unique(transpose(in[0], 0, dim), true, false, false, dim).values, 0, dim);
          },
          [](const std::vector<Values>& in) {
            Shape shape = in[0].shape;
            const std::vector<Row> all = slices_of(in[0], shape.numel() / std::max<int64_t>(shape[0], 1));
            const std::set<Row> found(all.begin(), all.end());
            shape[0] = static_cast<int64_t>(found.size());
            Values y(shape);
            y.data.clear();
            for (const Row& slice : found) y.data.insert(y.data.end(), slice.begin(), slice.end());
            return y;
          },
          false};
}

const RegisterOpCases uniques([] {
  std::vector<OpSample> all;
  for (const Part part : {Part::values, Part::inverse, Part::counts}) {
    const auto add = [&](const char* label, const InputSpec& x) { all.push_back(distinct_elements(label, x, part)); };
    add("matrix", values({2, 4}, {1, -3, 1, 2, 0, 2, kInf, -kInf}));
    add("number", {{}});
    add("nothing", {{0, 3}});
    add("int64", integers({5, 6}));
    add("bool", {.shape = 5, .dtype = DType::boolean, .values = {1, 0, 0, 1, 1}});
    add("many", integers({300}));
  }
  all.push_back({"every NaN is one of its own",
                 {values({4}, {kNan, 1, kNan, -0.0})},
                 [](const std::vector<Tensor>& in) { return unique(in[0]).values; },
                 [](const std::vector<Values>&) {
                   Values y(4);
                   y.data = {0, 1, kNan, kNan};
                   return y;
                 },
                 false});
  const InputSpec slices = values({5, 2}, {1, 2, 0, 5, 1, 2, 1, -2, 0, 5});
  all.push_back(distinct_slices("rows", slices, 0));
  all.push_back(distinct_slices("columns", slices, 1));
  all.push_back(distinct_slices("slices of three dims", {.shape = {6, 2, 1}, .high = 0, .dtype = DType::int64}, 0));
  all.push_back(distinct_slices("no slices", {{0, 3}}, 0));
  return OpCases{{"unique",
                  all,
                  {{"empty slices",
                    [] {
                      unique(zeros({3, 0}), true, false, false, 0);
                    },
                    "unique: the slices along dim 0 of shape [3, 0] have no elements"},
                   {"dim", [] { unique(zeros({3}), true, false, false, 1); }, "unique: ", is_a<IndexError>}}}};
});

}  // namespace
}  // namespace onestep

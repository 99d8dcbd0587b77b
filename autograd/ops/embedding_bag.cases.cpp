#include <algorithm>

#include "autograd/ops/cases.h"
#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

/// What a sample asks for: the index of its shape, where its bags start, and the index that does not count.
struct Asked {
  std::string label;
  Shape shape;
  std::vector<double> index;
  Shape weight;
  std::vector<double> starts = {};  ///< Of a flat index.
  std::optional<int64_t> padding_idx = {};
};

/// in: index, weight, offsets of a flat index, factors of a weighted sum.
Values bags_of(const std::vector<Values>& in, const Asked& asked, BagMode mode, bool weighted) {
  const Values &index = in[0], &weight = in[1];
  const bool flat = index.shape.rank() == 1;
  const int64_t d = weight.shape[1], n = index.shape.numel();
  const int64_t bags = flat ? static_cast<int64_t>(asked.starts.size()) : index.shape[0];
  const auto start = [&](int64_t b) { return !flat ? b * index.shape[1] : b == bags ? n : static_cast<int64_t>(in[2][b]); };
  Values y(Shape{bags, d});
  for (int64_t b = 0; b < bags; ++b)
    for (int64_t c = 0; c < d; ++c) {
      double sum = 0, most = -kInf, count = 0;
      for (int64_t i = start(b); i < start(b + 1); ++i) {
        if (asked.padding_idx && index[i] == static_cast<double>(*asked.padding_idx)) continue;
        const double value = weight[static_cast<int64_t>(index[i]) * d + c];
        sum += weighted ? in.back()[i] * value : value;
        most = std::max(most, value);
        ++count;
      }
      const double mean = count > 0 ? sum / count : 0, largest = count > 0 ? most : 0;
      y[b * d + c] = mode == BagMode::sum ? sum : mode == BagMode::mean ? mean : largest;
    }
  return y;
}

OpSample bags(const Asked& asked, BagMode mode, bool weighted = false) {
  const bool flat = asked.shape.rank() == 1;
  std::vector<InputSpec> inputs = {places(asked.shape, asked.index), {asked.weight}};
  if (flat) inputs.push_back(places(static_cast<int64_t>(asked.starts.size()), asked.starts));
  if (weighted) inputs.push_back({asked.shape});
  const char* const names[] = {"sum", "mean", "max"};
  return {asked.label + (weighted ? " weighted " : " ") + names[static_cast<int>(mode)], inputs,
          [=, padding_idx = asked.padding_idx](const std::vector<Tensor>& in) {
            return embedding_bag(in[0], in[1],
                                 {.mode = mode,
                                  .offsets = flat ? in[2] : Tensor(),
                                  .per_sample_weights = weighted ? in.back() : Tensor(),
                                  .padding_idx = padding_idx});
          },
          [=](const std::vector<Values>& in) { return bags_of(in, asked, mode, weighted); }};
}

std::vector<OpSample> samples() {
  const std::vector<Asked> all = {
      {"bags of three", {2, 3}, {0, 2, 2, 4, 0, 2}, {5, 3}},
      {"bags by offsets", {6}, {0, 2, 2, 4, 0, 2}, {5, 3}, {0, 2, 2, 5}},
      {"wide rows", {2, 12}, {1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 0}, {2, 70}},
      {"padding", {2, 3}, {0, 2, 1, 4, 0, 2}, {5, 3}, {}, 2},
      {"a bag of padding that is no row", {2, 2}, {-1, 1, -1, -1}, {3, 9}, {}, -1},
      {"no index", {2, 0}, {}, {5, 3}},
      {"no index into nothing", {0}, {}, {0, 3}, {0, 0}},
      {"no bag", {0}, {}, {5, 3}},
      {"empty rows", {2, 1}, {1, 0}, {3, 0}},
  };
  std::vector<OpSample> made;
  for (const Asked& asked : all) {
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) made.push_back(bags(asked, mode));
    made.push_back(bags(asked, BagMode::sum, true));
  }
  return made;
}

const RegisterOpCases registered([] {
  const auto call = [](const char* label, const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& options,
                       const char* message, ErrorType type = is_a<Error>) {
    return refused(
        label, [=] { embedding_bag(index, weight, options); }, message, type);
  };
  const Tensor row = tensor({1, 2}), rows = tensor({{1, 2}}), weight = zeros({5, 3});
  return OpCases{
      {"embedding_bag",
       samples(),
       {call("index above", tensor({{1, 5}}), weight, {}, "embedding_bag: ", is_a<IndexError>),
        call("negative index", tensor({{-1, 2}}), weight, {}, "embedding_bag: ", is_a<IndexError>),
        call("padding and an index below", tensor({{-1, 2}}), weight, {.padding_idx = 2}, "embedding_bag: ", is_a<IndexError>),
        call("padding of -1 and an index below", tensor({{-2, 2}}), weight, {.padding_idx = -1},
             "embedding_bag: ", is_a<IndexError>),
        call("index dtype", zeros({1, 2}), weight, {}, "embedding_bag: ", is_a<DTypeError>),
        call("weight dtype", rows, rows, {}, "embedding_bag: ", is_a<DTypeError>),
        call("dtype of factors", rows, weight, {.mode = BagMode::sum, .per_sample_weights = zeros({1, 2}, DType::float64)},
             "embedding_bag: ", is_a<DTypeError>),
        call("weight rank", rows, zeros(5), {}, "embedding_bag: weight must be [V, d]: got [5]"),
        call("no offsets", row, weight, {}, "embedding_bag: needs an index [B, N], or [N] with offsets: got [2]"),
        call("offsets of rows", rows, weight, {.offsets = tensor({0})},
             "embedding_bag: needs an index [B, N], or [N] with offsets: got [1, 2]"),
        call("first offset", row, weight, {.offsets = tensor({1})},
             "embedding_bag: offsets must ascend from 0 to at most 2: got 1 at place 0"),
        call("descending offsets", row, weight, {.offsets = tensor({0, 2, 1})},
             "embedding_bag: offsets must ascend from 0 to at most 2: got 1 at place 2"),
        call("offsets beyond", row, weight, {.offsets = tensor({0, 3})},
             "embedding_bag: offsets must ascend from 0 to at most 2: got 3 at place 1"),
        call("rows of offsets", row, weight, {.offsets = zeros({1, 1}, DType::int64)},
             "embedding_bag: offsets must be a vector: got shape [1, 1]"),
        call("factors of a mean", rows, weight, {.per_sample_weights = zeros({1, 2})},
             "embedding_bag: per_sample_weights are for sums"),
        call("shape of factors", rows, weight, {.mode = BagMode::sum, .per_sample_weights = zeros(2)},
             "embedding_bag: per_sample_weights of shape [2] for an index of shape [1, 2]")}}};
});

}  // namespace
}  // namespace onestep

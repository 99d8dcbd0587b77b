#include <algorithm>
#include <cmath>

#include "autograd/ops/loss_cases.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// The vectors of x along its last dim.
std::vector<std::vector<double>> rows(const Values& x) {
  const int64_t n = x.shape.back();
  std::vector<std::vector<double>> all(static_cast<size_t>(n == 0 ? 0 : x.shape.numel() / n));
  for (size_t i = 0; i < x.data.size(); ++i) all[i / static_cast<size_t>(std::max<int64_t>(n, 1))].push_back(x.data[i]);
  return all;
}

double norm_of(const std::vector<double>& x, double p = 2) {
  double total = 0, most = 0;
  for (double v : x) total += std::pow(std::abs(v), p), most = std::max(most, std::abs(v));
  return std::isinf(p) ? most : std::pow(total, 1 / p);
}

double distance(std::vector<double> a, const std::vector<double>& b, double p = 2, double eps = 1e-6) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += eps - b[i];
  return norm_of(a, p);
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total / (norm_of(a) * norm_of(b));
}

OpSample normalized(const std::string& label, const Shape& shape, double p, int64_t dim) {
  return {label,
          {{.shape = shape, .avoid = {0}}},
          [=](const std::vector<Tensor>& in) { return normalize(in[0], p, dim); },
          [=](const std::vector<Values>& in) {
            const auto size = [p](const std::vector<double>& x) { return norm_of(x, p); };
            return naive::zip(in[0], naive::reduce(in[0], {dim}, true, size), [](double v, double n) { return v / n; });
          }};
}

OpSample normalized_zeros() {
  return {.label = "a row of zeros",
          .inputs = {{.shape = {2, 2}, .values = {0, 0, 3, 4}}},
          .forward = [](const std::vector<Tensor>& in) { return normalize(in[0]); },
          .reference =
              [](const std::vector<Values>&) {
                Values y({2, 2});
                y.data = {0, 0, 0.6, 0.8};
                return y;
              },
          .differentiable = false};
}

/// Rows of a and b [N, d], from first to last of dims.
OpSample similarity(const std::string& label, const Shape& a, const Shape& b, const Shape& out, int64_t dim) {
  return {label,
          {{a}, {b}},
          [=](const std::vector<Tensor>& in) { return cosine_similarity(in[0], in[1], dim); },
          [=](const std::vector<Values>& in) {
            const auto square = [](const std::vector<double>& x) { return norm_of(x) * norm_of(x); };
            const auto times = [](double x, double y) { return x * y; };
            Values one(naive::broadcast(a, b)), dots(out);
            for (double& v : one.data) v = 1;
            const Values x = naive::zip(in[0], one, times), y = naive::zip(in[1], one, times);
            const auto sum = [](const std::vector<double>& v) {
              double total = 0;
              for (double e : v) total += e;
              return total;
            };
            dots = naive::reduce(naive::zip(x, y, times), {dim}, false, sum);
            const Values sizes =
                naive::zip(naive::reduce(x, {dim}, false, square), naive::reduce(y, {dim}, false, square), times);
            return naive::zip(dots, sizes, [](double d, double s) { return d / std::sqrt(s); });
          }};
}

OpSample similarity_to_nothing() {
  return {.label = "a vector of zeros",
          .inputs = {{.shape = {2, 2}, .values = {0, 0, 3, 4}}, {.shape = {2, 2}, .values = {1, 2, 0, 2}}},
          .forward = [](const std::vector<Tensor>& in) { return cosine_similarity(in[0], in[1]); },
          .reference =
              [](const std::vector<Values>&) {
                Values y(2);
                y.data = {0, 0.8};
                return y;
              },
          .differentiable = false};
}

OpSample distances(const std::string& label, const Shape& shape, double p, double eps, bool keepdim) {
  return {label,
          {{shape}, {shape}},
          [=](const std::vector<Tensor>& in) { return pairwise_distance(in[0], in[1], p, eps, keepdim); },
          [=](const std::vector<Values>& in) {
            Shape out = shape;
            out.erase(out.rank() - 1);
            if (keepdim) out.push_back(1);
            Values y(out);
            const auto a = rows(in[0]), b = rows(in[1]);
            for (size_t i = 0; i < a.size(); ++i) y.data[i] = distance(a[i], b[i], p, eps);
            return y;
          }};
}

OpSample ranking(const std::string& label, const Shape& shape, const MarginOptions& options) {
  return {label,
          {{shape}, {shape}, {shape}},
          [options](const std::vector<Tensor>& in) { return margin_ranking_loss(in[0], in[1], in[2], options); },
          [options](const std::vector<Values>& in) {
            const Values apart = naive::zip(in[0], in[1], [](double a, double b) { return a - b; });
            const auto loss = [&](double d, double y) { return std::max(0.0, options.margin - y * d); };
            return loss_cases::reduced(naive::zip(apart, in[2], loss), options.reduction);
          }};
}

InputSpec signs(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::int64, .values = std::move(values)};
}

OpSample embedding_sample(const std::string& label, const Shape& shape, const InputSpec& target, const MarginOptions& options) {
  return {label,
          {{shape}, {shape}, target},
          [options](const std::vector<Tensor>& in) { return cosine_embedding_loss(in[0], in[1], in[2], options); },
          [options](const std::vector<Values>& in) {
            Values losses(in[2].shape);
            const auto a = rows(in[0]), b = rows(in[1]);
            for (size_t i = 0; i < a.size(); ++i) {
              const double c = cosine(a[i], b[i]);
              losses.data[i] = in[2].data[i] == 1 ? 1 - c : std::max(0.0, c - options.margin);
            }
            return loss_cases::reduced(losses, options.reduction);
          }};
}

OpSample hinge(const std::string& label, const Shape& shape, std::vector<double> target, const HingeEmbeddingOptions& options) {
  return {label,
          {{.shape = shape, .avoid = {options.margin}}, signs(shape, std::move(target))},
          [options](const std::vector<Tensor>& in) { return hinge_embedding_loss(in[0], in[1], options); },
          [options](const std::vector<Values>& in) {
            const auto loss = [&](double x, double y) { return y == 1 ? x : std::max(0.0, options.margin - x); };
            return loss_cases::reduced(naive::zip(in[0], in[1], loss), options.reduction);
          }};
}

OpSample triplet(const std::string& label, const Shape& shape, const TripletMarginOptions& options) {
  return {label,
          {{shape}, {shape}, {shape}},
          [options](const std::vector<Tensor>& in) { return triplet_margin_loss(in[0], in[1], in[2], options); },
          [=](const std::vector<Values>& in) {
            const auto a = rows(in[0]), p = rows(in[1]), n = rows(in[2]);
            Shape out = shape;
            out.erase(out.rank() - 1);
            Values losses(out);
            for (size_t i = 0; i < a.size(); ++i) {
              double far = distance(a[i], n[i], options.p, options.eps);
              if (options.swap) far = std::min(far, distance(p[i], n[i], options.p, options.eps));
              losses.data[i] = std::max(0.0, distance(a[i], p[i], options.p, options.eps) - far + options.margin);
            }
            return loss_cases::reduced(losses, options.reduction);
          }};
}

/// Targets of each row up to the first -1.
OpSample multilabel(const std::string& label, const Shape& shape, const std::vector<double>& targets, Reduction reduction) {
  return {label,
          {{.shape = shape}, {.shape = shape, .dtype = DType::int64, .values = targets}},
          [=](const std::vector<Tensor>& in) { return multilabel_margin_loss(in[0], in[1], reduction); },
          [=](const std::vector<Values>& in) {
            const auto n = static_cast<size_t>(shape.rank() > 0 ? shape.back() : 1);
            Shape out = shape;
            if (shape.rank() > 0) out.erase(shape.rank() - 1);
            Values losses(out);
            for (size_t i = 0; i < losses.data.size(); ++i) {
              const double *x = &in[0].data[i * n], *t = &in[1].data[i * n], *end = std::find(t, t + n, -1);
              for (const double* j = t; j < end; ++j)
                for (size_t k = 0; k < n; ++k)
                  if (std::find(t, end, static_cast<double>(k)) == end)
                    losses.data[i] += std::max(0.0, 1 - x[static_cast<size_t>(*j)] + x[k]) / static_cast<double>(n);
            }
            return loss_cases::reduced(losses, reduction);
          }};
}

const RegisterOpCases registered([] {
  const MarginOptions sum{Reduction::sum, 0.2}, none{Reduction::none, 0.5};
  OpCases cases{
      {"normalize",
       {normalized("columns", {2, 3}, 2, 0), normalized("rows", {2, 3}, 2, 1), normalized("p = 1", {2, 3, 2}, 1, 1),
        normalized("p = 3", {2, 3}, 3, -1), normalized("infinity", {2, 3}, INFINITY, 1), normalized("no rows", {0, 3}, 2, 1),
        normalized_zeros()},
       {{"dim", [] { normalize(zeros(3)); }, "normalize: ", is_a<IndexError>},
        {"integers",
         [] {
           normalize(zeros({2, 3}, DType::int64));
         },
         "normalize: ", is_a<DTypeError>}}},
      {"cosine_similarity",
       {similarity("rows", {2, 3}, {2, 3}, {2}, 1), similarity("columns", {2, 3}, {2, 3}, {3}, 0),
        similarity("one against all", {2, 3}, {1, 3}, {2}, -1), similarity("nothing", {0, 3}, {0, 3}, 0, 1),
        similarity_to_nothing()},
       {{"shapes",
         [] {
           cosine_similarity(zeros({2, 3}), zeros({2, 4}));
         },
         "cosine_similarity: ", is_a<ShapeError>},
        {"dim", [] { cosine_similarity(zeros(3), zeros(3)); }, "cosine_similarity: ", is_a<IndexError>}}},
      {"pairwise_distance",
       {distances("rows", {2, 3}, 2, 1e-6, false), distances("vectors", 3, 2, 1e-6, false),
        distances("p = 1 with the dim kept", {2, 3}, 1, 0.1, true), distances("p = 3", {2, 2, 3}, 3, 1e-6, false),
        distances("nothing", {0, 3}, 2, 1e-6, false)},
       {{"rank", [] { pairwise_distance(zeros({}), zeros({})); }, "pairwise_distance: needs vectors: got shape []"}}},
      {"multilabel_margin_loss",
       {multilabel("mean", {2, 4}, {3, 0, -1, 1, 1, -1, 0, 0}, Reduction::mean),
        multilabel("none", {3, 3}, {2, 1, 0, -1, 0, 0, 1, 1, -1}, Reduction::none),
        multilabel("one row", 4, {1, 2, -1, 0}, Reduction::sum), multilabel("one score", {}, {0}, Reduction::mean),
        multilabel("nothing", {0, 3}, {}, Reduction::sum)},
       {{"shapes",
         [] {
           multilabel_margin_loss(zeros({2, 3}), zeros(3, DType::int64));
         },
         "multilabel_margin_loss: needs scores [C] or [N, C] and targets of the same shape: got [2, 3] and [3]"},
        {"class above",
         [] {
           multilabel_margin_loss(zeros(3), tensor({0, 3, -1}));
         },
         "multilabel_margin_loss: target 3 at position 1 is out of range for 3 classes"},
        {"floats", [] { multilabel_margin_loss(zeros(3), zeros(3)); },
         "multilabel_margin_loss: targets must be int64: got float32"}}},
      {"margin_ranking_loss",
       {ranking("mean", {2, 3}, {}), ranking("sum", 4, sum), ranking("none", 4, none), ranking("nothing", {0, 3}, sum)},
       {{"shapes", [] { margin_ranking_loss(zeros(2), zeros(2), zeros(3)); }, "margin_ranking_loss: ", is_a<ShapeError>}}},
      {"cosine_embedding_loss",
       {embedding_sample("mean", {4, 3}, signs(4, {1, -1, 1, -1}), {}),
        embedding_sample("sum", {4, 3}, signs(4, {1, -1, -1, -1}), {Reduction::sum, -0.9}),
        embedding_sample("one pair", 3, signs({}, {-1}), {Reduction::none, -0.9}),
        embedding_sample("nothing", {0, 3}, signs(0, {}), sum)},
       {{"shapes",
         [] {
           cosine_embedding_loss(zeros({2, 3}), zeros({2, 3}), zeros({}));
         },
         "cosine_embedding_loss: needs vectors [d] with a target [], or [N, d] with [N]: got [2, 3], [2, 3] and []"}}},
      {"hinge_embedding_loss",
       {hinge("mean", {2, 3}, {1, -1, 1, -1, -1, 1}, {}), hinge("sum", {2, 3}, {1, -1, 1, -1, -1, 1}, {Reduction::sum, 0.3}),
        hinge("none", {2, 3}, {1, -1, 1, -1, -1, 1}, {.reduction = Reduction::none}),
        hinge("nothing", {0, 3}, {}, {.reduction = Reduction::sum})},
       {{"batchmean", [] { hinge_embedding_loss(zeros(2), ones(2), {.reduction = Reduction::batchmean}); },
         "hinge_embedding_loss: ", is_a<ConfigError>}}},
      {"triplet_margin_loss",
       {triplet("mean", {3, 4}, {.margin = 5}), triplet("sum of p = 3", {3, 4}, {.reduction = Reduction::sum, .p = 3}),
        triplet("swapped", {3, 4}, {.reduction = Reduction::none, .margin = 4, .swap = true}),
        triplet("one", 4, {.reduction = Reduction::none, .margin = 5}),
        triplet("nothing", {0, 4}, {.reduction = Reduction::sum})},
       {{"margin",
         [] {
           triplet_margin_loss(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.margin = 0});
         },
         "triplet_margin_loss: the margin must be positive: got 0"}}}};
  for (OpCase& c : cases) c.samples = without(&OpSample::rounds_once, c.samples);  // made of ops that each round
  return cases;
});

}  // namespace
}  // namespace onestep

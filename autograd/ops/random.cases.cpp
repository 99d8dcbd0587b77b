#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>

#include "autograd/ops_order.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

constexpr uint32_t kSeed = 123;

double d53(std::mt19937& words) {
  const uint64_t high = words();
  return static_cast<double>((high << 32 | words()) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

/// An op without inputs, called with a fresh generator.
OpSample drawn(const std::string& label, const std::function<Tensor(Generator&)>& call,
               const std::function<Values(std::mt19937&)>& reference) {
  return {.label = label,
          .inputs = {},
          .forward =
              [call](const std::vector<Tensor>&) {
                Generator generator(kSeed);
                return call(generator);
              },
          .reference =
              [reference](const std::vector<Values>&) {
                std::mt19937 words(kSeed);
                return reference(words);
              },
          .differentiable = false};
}

template <class F>
Values filled(const Shape& shape, F next) {
  Values y(shape);
  for (double& v : y.data) v = next();
  return y;
}

/// Fewer than 16 normals: pairs by Box-Muller, cosine first.
Values few_normals(std::mt19937& words) {
  Values y(5);
  for (int64_t i = 0; i < 5; i += 2) {
    const double angle = 2 * std::numbers::pi * d53(words), radius = std::sqrt(-2 * std::log1p(-d53(words)));
    y[i] = radius * std::cos(angle);
    if (i + 1 < 5) y[i + 1] = radius * std::sin(angle);
  }
  return y;
}

/// 16 uniforms in place -> 16 normals: value j with value j + 8.
void normal_block(double* block) {
  for (int j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2 * std::log(1 - block[j])), angle = 2 * std::numbers::pi * block[j + 8];
    block[j] = radius * std::cos(angle);
    block[j + 8] = radius * std::sin(angle);
  }
}

/// 20 normals: one block of 16, then 16 fresh uniforms over the last 16 places.
Values many_normals(std::mt19937& words) {
  Values y = filled({4, 5}, [&] { return d53(words); });
  normal_block(y.data.data());
  for (int64_t i = 4; i < 20; ++i) y[i] = d53(words);
  normal_block(y.data.data() + 4);
  return y;
}

Values shuffled(std::mt19937& words) {
  Values y(10);
  for (int64_t i = 0; i < 10; ++i) y[i] = static_cast<double>(i);
  for (int64_t i = 0; i < 9; ++i) std::swap(y[i], y[i + static_cast<int64_t>(words() % static_cast<uint32_t>(10 - i))]);
  return y;
}

/// multinomial of given weights, with a fresh generator.
OpSample sampled(const char* label, const Shape& shape, std::vector<double> weights, int64_t samples, bool replacement) {
  const auto of_row = [=](const double* w, const std::vector<double>& race, std::mt19937& words) {
    std::vector<double> drawn_samples;
    const int64_t n = shape.back();
    if (!race.empty()) {  // descending order of weight / Exp(1)
      std::vector<double> order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](double a, double b) { return race[static_cast<size_t>(a)] > race[static_cast<size_t>(b)]; });
      drawn_samples.assign(order.begin(), order.begin() + samples);
      return drawn_samples;
    }
    const double total = std::accumulate(w, w + n, 0.0);
    for (int64_t s = 0; s < samples; ++s) {
      const double u = d53(words);
      int64_t i = 0;
      for (double sum = w[0]; sum / total < u; sum += w[++i]) continue;
      drawn_samples.push_back(static_cast<double>(i));
    }
    return drawn_samples;
  };
  return {label,
          {{.shape = shape, .values = std::move(weights)}},
          [=](const std::vector<Tensor>& in) {
            Generator generator(kSeed);
            return multinomial(in[0], samples, replacement, generator);
          },
          [=](const std::vector<Values>& in) {
            std::mt19937 words(kSeed);
            Shape result = shape;
            result[shape.rank() - 1] = samples;
            Values y(result);
            std::vector<double> race;
            if (!replacement || samples == 1)
              for (const double w : in[0].data) race.push_back(w / -std::log1p(-d53(words)));
            y.data.clear();
            for (int64_t i = 0; i < shape.numel(); i += shape.back()) {
              const std::vector<double> own =
                  race.empty() ? race : std::vector<double>(race.begin() + i, race.begin() + i + shape.back());
              for (const double s : of_row(in[0].data.data() + i, own, words)) y.data.push_back(s);
            }
            return y;
          },
          false};
}

/// Of the shape of an input, drawn in float64 whatever its dtype.
template <class Op, class F>
OpSample alike(const char* label, const Shape& shape, Op op, F f) {
  return {label,
          {{shape}},
          [op](const std::vector<Tensor>& in) {
            Generator generator(5);
            return op(in[0].to(DType::float64), generator).to(in[0].dtype());
          },
          [f](const std::vector<Values>&) {
            std::mt19937 words(5);
            return f(words);
          },
          false};
}

const RegisterOpCases multinomials([] {
  return OpCases{
      {"multinomial",
       {sampled("one", {4}, {1, 2, 3, 4}, 1, false), sampled("without replacement", {2, 4}, {1, 2, 3, 4, 4, 3, 2, 1}, 3, false),
        sampled("with replacement", {2, 3}, {1, 2, 3, 0, 5, 1}, 5, true), sampled("no rows", {0, 3}, {}, 2, true)},
       {{"rank",
         [] {
           multinomial(ones({1, 1, 2}), 1);
         },
         "multinomial: weights must be [n] or [rows, n]: got [1, 1, 2]"},
        {"dtype",
         [] {
           multinomial(tensor({1, 2}), 1);
         },
         "multinomial: ", is_a<DTypeError>},
        {"negative weight",
         [] {
           multinomial(tensor({1.0, -1.0}), 1);
         },
         "multinomial: ", is_a<ConfigError>},
        {"too many", [] { multinomial(ones(2), 3); }, "multinomial: ", is_a<ConfigError>},
        {"no samples", [] { multinomial(ones(2), 0); }, "multinomial: ", is_a<ConfigError>}}}};
});

const RegisterOpCases alike_registered([] {
  const auto uniforms = [](const Shape& shape) {
    return [shape](std::mt19937& words) { return filled(shape, [&] { return d53(words); }); };
  };
  const auto rand_op = [](const Tensor& x, Generator& g) { return rand_like(x, g); };
  const auto randn_op = [](const Tensor& x, Generator& g) { return randn_like(x, g); };
  return OpCases{
      {"rand_like",
       {alike("matrix", {2, 3}, rand_op, uniforms({2, 3})), alike("empty", {0, 3}, rand_op, uniforms({0, 3}))},
       {}},
      {"randn_like", {alike("vector", {5}, randn_op, few_normals), alike("empty", {0, 3}, randn_op, uniforms({0, 3}))}, {}}};
});

const RegisterOpCases registered([] {
  return OpCases{{"rand",
                  {drawn(
                       "float64",
                       [](Generator& g) {
                         return rand({2, 3}, g, DType::float64);
                       },
                       [](std::mt19937& words) {
                         return filled({2, 3}, [&] { return d53(words); });
                       }),
                   drawn(
                       "float32",
                       [](Generator& g) {
                         return rand({2, 3}, g);
                       },
                       [](std::mt19937& words) {
                         return filled({2, 3}, [&] { return static_cast<double>(words() & 0xffffff) * 0x1p-24; });
                       }),
                   drawn(
                       "nothing",
                       [](Generator& g) {
                         return rand({0, 3}, g);
                       },
                       [](std::mt19937&) {
                         return Values({0, 3});
                       })},
                  {{"negative size",
                    [] {
                      rand({2, -1});
                    },
                    "rand: ", is_a<ShapeError>},
                   {"integers", [] { rand(3, default_generator(), DType::int64); }, "rand: ", is_a<DTypeError>}}},
                 {"randn",
                  {drawn(
                       "few", [](Generator& g) { return randn(5, g, DType::float64); }, few_normals),
                   drawn(
                       "blocks of 16",
                       [](Generator& g) {
                         return randn({4, 5}, g, DType::float64);
                       },
                       many_normals)},
                  {{"negative size", [] { randn(-1); }, "randn: ", is_a<ShapeError>},
                   {"bool", [] { randn(3, default_generator(), DType::boolean); }, "randn: ", is_a<DTypeError>}}},
                 {"randint",
                  {drawn(
                       "small range",
                       [](Generator& g) {
                         return randint(-3, 7, {2, 3}, g);
                       },
                       [](std::mt19937& words) {
                         return filled({2, 3}, [&] { return static_cast<double>(words() % 10) - 3; });
                       }),
                   drawn(
                       "from 0",
                       [](Generator& g) {
                         return randint(10, {2, 3}, g);
                       },
                       [](std::mt19937& words) {
                         return filled({2, 3}, [&] { return static_cast<double>(words() % 10); });
                       }),
                   drawn(
                       "large range", [](Generator& g) { return randint(0, int64_t{1} << 30, 4, g); },
                       [](std::mt19937& words) {
                         return filled(4, [&] {
                           words();  // a power of two keeps the low bits of the low word
                           return static_cast<double>(words() % (uint32_t{1} << 30));
                         });
                       })},
                  {{"negative size", [] { randint(0, 3, -1); }, "randint: ", is_a<ShapeError>},
                   {"range", [] { randint(3, 3, 2); }, "randint: ", is_a<ConfigError>}}},
                 {"randperm",
                  {drawn(
                       "ten", [](Generator& g) { return randperm(10, g); }, shuffled),
                   drawn(
                       "none", [](Generator& g) { return randperm(0, g); }, [](std::mt19937&) { return Values(0); })},
                  {{"negative", [] { randperm(-1); }, "randperm: n must not be negative: -1"}}}};
});

}  // namespace
}  // namespace onestep

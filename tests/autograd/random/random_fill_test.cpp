// Edges and errors of the random fills; their agreement with PyTorch is in rng_goldens_test.cpp.
#include "autograd/random/random_fill.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/autograd/kernels/kernel_testing.h"
#include "tests/goldens.h"
#include "tests/support.h"

namespace onestep {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// The message of the E that `f` throws, after checking that it drew nothing.
template <class E, class F>
std::string refusal_without_draws(F f) {
  Generator g(1);
  const std::string before = g.state();
  const std::string message = testing::refusal<E>([&] { f(g); });
  const bool unchanged = g.state() == before;
  CHECK(unchanged);
  return message;
}

TEST_CASE("random fills: empty spans draw nothing") {
  Generator g(1);
  Generator before = g;
  fill_uniform<float>({}, 0, 1, g);
  fill_normal<double>({}, 0, 1, g);
  fill_exponential<float>({}, 1, g);
  fill_randint({}, 0, 2, g);
  fill_random<bool>({}, g);
  fill_randperm({}, g);
  fill_bernoulli({}, 0.5, g);
  fill_dropout_mask({}, 0.5, g);
  g.set_dialect(RngDialect::torch_mkl);
  fill_bernoulli({}, 0.5, g);
  fill_bernoulli<float>({}, {}, g);
  multinomial<float>({}, 0, 3, true, {}, g);
  CHECK(g.u64() == before.u64());
}

TEST_CASE("random fills: uniform stays below the upper bound even where it rounds") {
  std::vector<float> values(20000);
  Generator g(3);
  fill_uniform<float>(values, 1, std::nextafter(1.0f, 2.0f), g);  // half of the values round up to the bound
  CHECK(std::all_of(values.begin(), values.end(), [](float v) { return v == 1.0f; }));
  fill_uniform<float>(values, 2, 2, g);
  CHECK(std::all_of(values.begin(), values.end(), [](float v) { return v == 2.0f; }));
}

// FNV-1a of torch.manual_seed(5); torch.empty(n).normal_(0.3, 1.7) for n = 7, 1000 and 1003 (PyTorch 2.13, x86-64, with
// ATEN_CPU_CAPABILITY=avx2 and =default).
template <class T>
std::vector<std::string> normal_hashes(RngRounding rounding) {
  std::vector<std::string> hashes;
  for (const size_t n : {7u, 1000u, 1003u}) {
    Generator g(5, RngDialect::torch, rounding);
    std::vector<T> values(n);
    fill_normal<T>(values, 0.3, 1.7, g);
    hashes.push_back(testing::fnv1a(values));
  }
  return hashes;
}

TEST_CASE("random fills: normal rounds as PyTorch for a mean and a standard deviation that are not powers of two") {
  using Hashes = std::vector<std::string>;
  CHECK(normal_hashes<float>(RngRounding::fused) == Hashes{"f4f8307989237d3c", "eaf23e5cc73e9749", "29b5f0b410e03619"});
  CHECK(normal_hashes<double>(RngRounding::fused) == Hashes{"63e8f05ccb6546e3", "9931eddc746470f2", "836c653fa7774fd0"});
  CHECK(normal_hashes<float>(RngRounding::separate) == Hashes{"f4f8307989237d3c", "42b018c7ea893565", "6d1e3c0d20a96d00"});
  CHECK(normal_hashes<double>(RngRounding::separate) == Hashes{"4ace836c50e01284", "9931eddc746470f2", "836c653fa7774fd0"});
}

TEST_CASE("random fills: few normals are portable ones but for float64 which has the C library's an ulp or two away") {
  int differing = 0;
  for (int64_t seed = 0; seed < 2000; ++seed) {
    Generator portable(seed), single(seed), wide(seed);
    std::array<float, 5> floats;
    std::array<double, 5> doubles;
    fill_normal<float>(floats, 0, 1, single);
    fill_normal<double>(doubles, 0, 1, wide);
    for (size_t i = 0; i < floats.size(); ++i) {
      const double z = portable.normal();
      REQUIRE(floats[i] == static_cast<float>(z));
      REQUIRE(std::abs(doubles[i] - z) <= 0x1p-50 * std::abs(z));
      differing += doubles[i] != z;
    }
    REQUIRE(single.state() == portable.state());  // with the same second half of the last pair
    REQUIRE(wide.state() == portable.state());
  }
  CHECK(differing < 2000);
}

TEST_CASE("random fills: a dropout mask of probability 0 or 1 draws nothing") {
  for (const RngDialect dialect : {RngDialect::torch, RngDialect::torch_mkl}) {
    Generator g(1, dialect);
    Generator before = g;
    std::array<bool, 5> keep{};
    fill_dropout_mask(keep, 0, g);
    CHECK(keep == std::array{true, true, true, true, true});
    fill_dropout_mask(keep, 1, g);
    CHECK(keep == std::array{false, false, false, false, false});
    CHECK(g.u64() == before.u64());
  }
  CHECK(dropout_scale<float>(0.0) == 1.0f);
  CHECK(dropout_scale<float>(0.9) == 1.0f / 0.1f);
  CHECK(dropout_scale<double>(1.0) == 0.0);
}

TEST_CASE("random fills: bernoulli of probability 0 and 1 is certain") {
  for (const RngDialect dialect : {RngDialect::torch, RngDialect::torch_mkl}) {
    Generator g(1, dialect);
    std::array<bool, 300> out;
    fill_bernoulli(out, 1, g);
    CHECK(std::count(out.begin(), out.end(), true) == 300);
    fill_bernoulli(out, 0, g);
    CHECK(std::count(out.begin(), out.end(), true) == 0);
  }
}

// Both draws of n elements on one thread and on several must be the same and leave the generator at the same place.
template <class T, class Fill>
void check_same_on_any_threads(size_t n, Fill fill) {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);
  const auto drawn = [&](int threads, std::string& state) {
    kernels::set_num_threads(threads);
    Generator g(5);
    g.u32();  // pieces do not start where the generator's own blocks of words do
    auto values = std::make_unique<T[]>(n);
    fill(std::span(values.get(), n), g);
    state = g.state();
    return std::vector<T>(values.get(), values.get() + n);
  };
  std::string want_state, state;
  const std::vector<T> want = drawn(1, want_state);
  for (const int threads : {2, 3, 8}) {
    CAPTURE(threads);
    const bool same = drawn(threads, state) == want;
    CHECK(same);
    CHECK(state == want_state);
  }
}

TEST_CASE("random fills: the same on any number of threads") {
  for (const size_t n : std::initializer_list<size_t>{4095, 4096, 4097, 8195, 100003}) {
    CAPTURE(n);
    check_same_on_any_threads<float>(n, [](std::span<float> x, Generator& g) { fill_normal(x, 0.5, 2.0, g); });
    check_same_on_any_threads<double>(n, [](std::span<double> x, Generator& g) { fill_normal(x, 0.5, 2.0, g); });
    check_same_on_any_threads<float>(n, [](std::span<float> x, Generator& g) { fill_uniform(x, -1.0, 3.0, g); });
    check_same_on_any_threads<double>(n, [](std::span<double> x, Generator& g) { fill_exponential(x, 2.0, g); });
    check_same_on_any_threads<int64_t>(n, [](std::span<int64_t> x, Generator& g) { fill_randint(x, -5, 90, g); });
    check_same_on_any_threads<bool>(n, [](std::span<bool> x, Generator& g) { fill_dropout_mask(x, 0.3, g); });
  }
}

TEST_CASE("random fills: pieces of a long fill continue one stream of words") {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);
  kernels::set_num_threads(3);
  constexpr size_t kCount = 50001;
  Generator g(9), words(9);
  std::vector<float> uniforms(kCount);
  fill_uniform<float>(uniforms, 0, 1, g);
  size_t wrong = 0;
  for (const float u : uniforms) wrong += u != words.f24();
  const auto keep = std::make_unique<bool[]>(kCount);
  fill_bernoulli({keep.get(), kCount}, 0.7, g);
  for (size_t i = 0; i < kCount; ++i) wrong += keep[i] != (words.d53() < 0.7);
  CHECK(wrong == 0);
}

TEST_CASE("random fills: both dropout dialects keep the expected share") {
  for (const RngDialect dialect : {RngDialect::torch, RngDialect::torch_mkl}) {
    Generator g(11, dialect);
    const auto keep = std::make_unique<bool[]>(100000);
    fill_dropout_mask({keep.get(), 100000}, 0.1, g);
    CHECK(std::abs(std::count(keep.get(), keep.get() + 100000, true) - 90000) < 500);  // over 5 standard deviations
  }
}

TEST_CASE("random fills: randint covers the whole range of int64") {
  constexpr int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  Generator g(2);
  std::vector<int64_t> values(64);
  fill_randint(values, low, high, g);
  CHECK(std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; }));
  CHECK(std::any_of(values.begin(), values.end(), [](int64_t v) { return v > 0; }));
}

TEST_CASE("multinomial: rows are drawn as PyTorch draws them") {
  // torch.manual_seed(123); w = torch.tensor([[1., 2., 3.], [0., 5., 1.]]); multinomial of 4 with, then 2 and 1 without.
  const std::vector<float> weights{1, 2, 3, 0, 5, 1};
  Generator g(123);
  std::vector<int64_t> out(8);
  multinomial<float>(weights, 2, 4, true, out, g);
  CHECK(out == std::vector<int64_t>{1, 0, 2, 0, 1, 1, 1, 1});
  out.resize(4);
  multinomial<float>(weights, 2, 2, false, out, g);
  CHECK(out == std::vector<int64_t>{1, 2, 1, 2});
  out.resize(2);
  multinomial<float>(weights, 2, 1, false, out, g);
  CHECK(out == std::vector<int64_t>{0, 1});
}

TEST_CASE("multinomial: a category of weight 0 is never drawn") {
  const std::vector<double> weights{0, 1, 0, 0, 3, 0};
  Generator g(4);
  std::vector<int64_t> pair(2), many(5000);
  for (int i = 0; i < 500; ++i) {
    multinomial<double>(weights, 1, 2, false, pair, g);
    REQUIRE(((pair == std::vector<int64_t>{1, 4}) || (pair == std::vector<int64_t>{4, 1})));
  }
  multinomial<double>(weights, 1, 5000, true, many, g);
  const auto ones = std::count(many.begin(), many.end(), 1), fours = std::count(many.begin(), many.end(), 4);
  CHECK(ones + fours == 5000);
  CHECK(std::abs(ones - 1250) < 170);  // over 5 standard deviations
}

TEST_CASE("random fills: bad arguments are refused before anything is drawn") {
  std::array<float, 2> f;
  std::array<int64_t, 2> i;
  std::array<bool, 2> b;
  const auto uniform = [&](double from, double to) {
    return refusal_without_draws<ConfigError>([&](Generator& g) { fill_uniform<float>(f, from, to, g); });
  };
  CHECK(uniform(1, 0) == "uniform_: the range must not be empty: from 1 to 0");
  CHECK(uniform(kNan, 0).starts_with("uniform_: the range "));
  CHECK(uniform(0, kInf) == "uniform_: the range must be finite: from 0 to inf");
  CHECK(uniform(0, 1e39).starts_with("uniform_: the range "));
  CHECK(uniform(-3e38, 3e38).starts_with("uniform_: the range "));
  CHECK(refusal_without_draws<ConfigError>([&](Generator& g) { fill_normal<float>(f, 0, -1, g); }) ==
        "normal_: the standard deviation must be >= 0: got -1");
  CHECK(refusal_without_draws<ConfigError>([&](Generator& g) { fill_exponential<float>(f, 0, g); }) ==
        "exponential: the rate must be > 0: got 0");
  CHECK(refusal_without_draws<ConfigError>([&](Generator& g) { fill_randint(i, 3, 3, g); }) ==
        "randint: low must be below high: low 3 high 3");
  CHECK(refusal_without_draws<ConfigError>([&](Generator& g) { fill_bernoulli(b, kNan, g); }) ==
        "bernoulli: the probability must lie in [0, 1]: got nan");
  CHECK(refusal_without_draws<ConfigError>([&](Generator& g) {
          fill_dropout_mask(b, 1.5, g);
        }).starts_with("dropout: the probability "));
  const std::array<float, 2> p{0.5f, 2.0f};
  CHECK(refusal_without_draws<ConfigError>([&](Generator& g) {
          fill_bernoulli<float>(b, p, g);
        }).starts_with("bernoulli: the probability "));
  CHECK(refusal_without_draws<ShapeError>([&](Generator& g) { fill_bernoulli<float>(b, std::span(p).first(1), g); }) ==
        "bernoulli: one probability an element: 2 elements, 1 probabilities");
}

TEST_CASE("multinomial: bad weights and shapes are refused before anything is drawn") {
  const auto refused = [](std::vector<double> weights, int64_t rows, int64_t samples, bool replacement, size_t out_size) {
    return refusal_without_draws<Error>([&](Generator& g) {
      std::vector<int64_t> out(out_size);
      multinomial<double>(weights, rows, samples, replacement, out, g);
    });
  };
  CHECK(refused({1, 1}, 1, 0, true, 0) == "multinomial: needs at least one sample: got 0");
  CHECK(refused({1, -1}, 1, 1, true, 1) == "multinomial: weights must be finite and >= 0: got -1");
  CHECK(refused({1, kNan}, 1, 2, true, 2).starts_with("multinomial: weights "));
  CHECK(refused({1, kInf}, 1, 1, false, 1).starts_with("multinomial: weights "));
  CHECK(refused({1e308, 1e308}, 1, 1, false, 1) ==
        "multinomial: the sum of the weights overflows (divide them by the largest)");
  CHECK(refused({1, 1, 0, 0}, 2, 1, false, 2) ==
        "multinomial: cannot draw 1 samples without replacement from 0 positive weights of 2");
  CHECK(refused({1, 0, 0}, 1, 2, false, 2).starts_with("multinomial: cannot draw 2 samples without replacement "));
  CHECK(refused({}, 1, 2, true, 2).starts_with("multinomial: cannot draw 2 samples from 0 "));
  CHECK(refused({1, 1, 1}, 2, 1, true, 2) == "multinomial: 3 weights and 2 samples are not 2 rows of 1 samples");
  CHECK(refused({1, 1}, 1, 2, true, 1).starts_with("multinomial: 2 weights and 1 samples "));
  CHECK(refused({1, 1}, -1, 2, true, 2).starts_with("multinomial: 2 weights and 2 samples "));
}

}  // namespace
}  // namespace onestep

#include "autograd/random_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/error.h"

namespace onestep {
namespace {

constexpr size_t kChunk = 512;  // draws held on the stack between the generator and the loop that uses them

// Calls use(i, word_i) for i < n, a bulk draw at a time.
template <class Use>
void for_each_u32(Generator& g, size_t n, Use use) {
  std::array<uint32_t, kChunk> words;
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t count = std::min(kChunk, n - begin);
    g.draw({words.data(), count});
    for (size_t i = 0; i < count; ++i) use(begin + i, words[i]);
  }
}

// Calls use(i, u64_i) for i < n.
template <class Use>
void for_each_u64(Generator& g, size_t n, Use use) {
  std::array<uint32_t, 2 * kChunk> words;
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t count = std::min(kChunk, n - begin);
    g.draw({words.data(), 2 * count});
    for (size_t i = 0; i < count; ++i) use(begin + i, uint64_t{words[2 * i]} << 32 | words[2 * i + 1]);
  }
}

constexpr uint64_t low53(uint64_t word) { return word & ((uint64_t{1} << 53) - 1); }
double to_d53(uint64_t word) { return static_cast<double>(static_cast<int64_t>(low53(word))) * 0x1p-53; }
float to_f24(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word & 0xffffff)) * 0x1p-24f; }

// Calls use(i, u_i) for i < n with the uniforms of T's own kind.
template <class T, class Use>
void for_each_uniform(Generator& g, size_t n, Use use) {
  if constexpr (std::is_same_v<T, float>)
    for_each_u32(g, n, [&](size_t i, uint32_t word) { use(i, to_f24(word)); });
  else
    for_each_u64(g, n, [&](size_t i, uint64_t word) { use(i, to_d53(word)); });
}

// a x + b, rounded as the generator says.
template <class T>
T affine(T x, T a, T b, RngRounding rounding) {
  return rounding == RngRounding::fused ? std::fma(x, a, b) : x * a + b;
}

// log(x) for x in [2^-24, 1] by the polynomial of Cephes' logf (Stephen L. Moshier): x = 2^e m with m in [sqrt(1/2),
// sqrt(2)), log(m) = y + y^3 P(y) - y^2 / 2 for y = m - 1, and log(2) in two parts. Each fused step is PyTorch's.
float log_cephes(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  const float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // in [1/2, 1)
  const bool small = m < std::numbers::sqrt2_v<float> / 2;
  e -= small ? 1.0f : 0.0f;
  const float y = (m - 1.0f) + (small ? m : 0.0f), y2 = y * y;
  float p = 7.0376836292e-2f;
  p = std::fma(p, y, -1.1514610310e-1f);
  p = std::fma(p, y, 1.1676998740e-1f);
  p = std::fma(p, y, -1.2420140846e-1f);
  p = std::fma(p, y, 1.4249322787e-1f);
  p = std::fma(p, y, -1.6668057665e-1f);
  p = std::fma(p, y, 2.0000714765e-1f);
  p = std::fma(p, y, -2.4999993993e-1f);
  p = std::fma(p, y, 3.3333331174e-1f);
  p = std::fma(p * y, y2, e * -2.12194440e-4f);
  p = std::fma(y2, -0.5f, p);
  return std::fma(e, 0.693359375f, y + p);
}

// sin(x) and cos(x) for x in [0, 2 pi] by the polynomials of Cephes' sinf and cosf (Stephen L. Moshier): x minus the nearest
// even multiple j of pi / 4 (in three parts), then sine or cosine of the rest by j. Each fused step is PyTorch's.
std::pair<float, float> sincos_cephes(float x) {
  const int32_t j = (static_cast<int32_t>(x * (4 * std::numbers::inv_pi_v<float>)) + 1) & ~1;
  const float octant = static_cast<float>(j);
  x = std::fma(octant, -0.78515625f, x);
  x = std::fma(octant, -2.4187564849853515625e-4f, x);
  x = std::fma(octant, -3.77489497744594108e-8f, x);
  const float x2 = x * x;
  float c = 2.443315711809948e-5f;
  c = std::fma(c, x2, -1.388731625493765e-3f);
  c = std::fma(c, x2, 4.166664568298827e-2f);
  c = std::fma(c * x2, x2, -(x2 * 0.5f)) + 1.0f;
  float s = -1.9515295891e-4f;
  s = std::fma(s, x2, 8.3321608736e-3f);
  s = std::fma(s, x2, -1.6666654611e-1f);
  s = std::fma(s * x2, x, x);
  const bool swap = (j & 2) != 0, negative_sin = (j & 4) != 0, negative_cos = ((j + 2) & 4) != 0;
  const float sin = swap ? c : s, cos = swap ? s : c;
  return {negative_sin ? -sin : sin, negative_cos ? -cos : cos};
}

struct Polar {
  float radius, sin, cos;
};
// sqrt(-2 log u1) and the angle 2 pi u2 in single precision.
Polar polar(float u1, float u2, RngRounding rounding) {
  if (rounding == RngRounding::fused) {
    const auto [sin, cos] = sincos_cephes(2.0f * std::numbers::pi_v<float> * u2);
    return {std::sqrt(-2.0f * log_cephes(u1)), sin, cos};
  }
  const float theta = static_cast<float>(2.0 * std::numbers::pi * static_cast<double>(u2));
  return {std::sqrt(-2.0f * std::log(u1)), std::sin(theta), std::cos(theta)};
}

// Turns 16 uniforms into 16 normals: values j and j + 8 are the cosine and sine half of one Box-Muller pair. The last step
// is fused whatever the rounding.
void box_muller(float* d, float mean, float std, RngRounding rounding) {
  for (int j = 0; j < 8; ++j) {
    const auto [radius, sin, cos] = polar(1.0f - d[j], d[j + 8], rounding);
    d[j] = std::fma(radius * cos, std, mean);
    d[j + 8] = std::fma(radius * sin, std, mean);
  }
}
void box_muller(double* d, double mean, double std, RngRounding /*no difference in double*/) {
  for (int j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - d[j])), theta = 2.0 * std::numbers::pi * d[j + 8];
    d[j] = std::fma(radius * std::cos(theta), std, mean);
    d[j + 8] = std::fma(radius * std::sin(theta), std, mean);
  }
}

// MKL's MCG31m1 stream: x <- 1132489760 x mod (2^31 - 1); the seed itself (0 becomes 1) is the first value. `p` is compared
// in single precision.
void mkl_bernoulli(std::span<bool> out, double p, uint32_t seed) {
  constexpr uint64_t modulus = 0x7fffffff;
  uint64_t x = seed % modulus;
  if (x == 0) x = 1;
  for (bool& value : out) {
    value = static_cast<float>(static_cast<double>(x) / static_cast<double>(modulus)) < static_cast<float>(p);
    x = x * 1132489760 % modulus;
  }
}

void check_probability(std::string_view op, double p) {
  check<ConfigError>(p >= 0 && p <= 1, op, ": the probability must lie in [0, 1]: got ", p);
}

// The number of categories that can be drawn. Throws unless every element of `row` may be a category's weight.
template <class T>
int64_t count_positive(std::span<const T> row) {
  int64_t positive = 0;
  T total = 0;
  for (const T weight : row) {
    check<ConfigError>(weight >= 0 && std::isfinite(weight), "multinomial: weights must be finite and >= 0: got ", weight);
    positive += weight > 0;
    total += weight;
  }
  check<ConfigError>(std::isfinite(total), "multinomial: the sum of the weights overflows (divide them by the largest)");
  return positive;
}

// The categories of the `out.size()` largest weight / Exp(1) ratios in descending order.
template <class T>
void exponential_race(std::span<const T> weights, std::span<const T> exponentials, std::span<int64_t> out) {
  std::vector<T> ratio(weights.size());
  // A weight of zero loses even to an exponential that underflowed to zero.
  for (size_t i = 0; i < ratio.size(); ++i) ratio[i] = weights[i] > 0 ? weights[i] / exponentials[i] : T(-1);
  if (out.size() == 1) {
    out[0] = std::max_element(ratio.begin(), ratio.end()) - ratio.begin();
    return;
  }
  std::vector<int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [&ratio](int64_t a, int64_t b) {
    const T ra = ratio[static_cast<size_t>(a)], rb = ratio[static_cast<size_t>(b)];
    return ra > rb || (ra == rb && a < b);
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(out.size());
  std::partial_sort(order.begin(), end, order.end(), before);
  std::copy(order.begin(), end, out.begin());
}

// Independent samples: the first category whose cumulative share reaches a d53.
template <class T>
void sample_with_replacement(std::span<const T> weights, std::span<int64_t> out, Generator& g) {
  std::vector<T> share(weights.size());
  std::partial_sum(weights.begin(), weights.end(), share.begin());
  const T total = share.back();
  for (T& s : share) s /= total;
  for (int64_t& sample : out) sample = std::lower_bound(share.begin(), share.end(), g.d53()) - share.begin();
}

}  // namespace

template <class T>
void fill_uniform(std::span<T> out, double from, double to, Generator& g) {
  const T low = static_cast<T>(from), high = static_cast<T>(to), width = high - low;
  check<ConfigError>(from <= to, "uniform: the range must not be empty: from ", from, " to ", to);
  check<ConfigError>(std::isfinite(low) && std::isfinite(high) && std::isfinite(width),
                     "uniform: the range must be finite: from ", from, " to ", to);
  const RngRounding rounding = g.rounding();
  for_each_uniform<T>(g, out.size(), [=](size_t i, T u) {
    const T value = affine(u, width, low, rounding);
    out[i] = value == high ? low : value;
  });
}

template <class T>
void fill_normal(std::span<T> out, double mean, double std, Generator& g) {
  check<ConfigError>(std >= 0, "normal: the standard deviation must be >= 0: got ", std);
  if (out.size() < 16) {
    for (T& value : out) value = static_cast<T>(affine(g.normal(), std, mean, g.rounding()));
    return;
  }
  const auto draw_normals = [&](std::span<T> blocks) {
    for_each_uniform<T>(g, blocks.size(), [=](size_t i, T u) { blocks[i] = u; });
    for (size_t i = 0; i + 16 <= blocks.size(); i += 16) {
      box_muller(blocks.data() + i, static_cast<T>(mean), static_cast<T>(std), g.rounding());
    }
  };
  draw_normals(out);
  if (out.size() % 16 != 0) draw_normals(out.last(16));
}

template <class T>
void fill_exponential(std::span<T> out, double rate, Generator& g) {
  check<ConfigError>(rate > 0, "exponential: the rate must be > 0: got ", rate);
  const double scale = -1.0 / rate;
  for_each_uniform<double>(g, out.size(), [=](size_t i, double u) { out[i] = static_cast<T>(scale * std::log1p(-u)); });
}

void fill_randint(std::span<int64_t> out, int64_t low, int64_t high, Generator& g) {
  check<ConfigError>(low < high, "randint: low must be below high: low ", low, " high ", high);
  const uint64_t start = static_cast<uint64_t>(low), range = static_cast<uint64_t>(high) - start;
  if (range < uint64_t{1} << 28) {
    const uint32_t small = static_cast<uint32_t>(range);
    for_each_u32(g, out.size(), [=](size_t i, uint32_t r) { out[i] = static_cast<int64_t>(r % small + start); });
  } else {
    for_each_u64(g, out.size(), [=](size_t i, uint64_t r) { out[i] = static_cast<int64_t>(r % range + start); });
  }
}

template <class T>
void fill_random(std::span<T> out, Generator& g) {
  if constexpr (std::is_same_v<T, double>) {
    for_each_u64(g, out.size(), [=](size_t i, uint64_t r) { out[i] = static_cast<T>(r % ((uint64_t{1} << 53) + 1)); });
  } else if constexpr (std::is_same_v<T, float>) {
    for_each_u32(g, out.size(), [=](size_t i, uint32_t r) { out[i] = static_cast<T>(r % ((1u << 24) + 1)); });
  } else if constexpr (sizeof(T) == 8) {
    for_each_u64(g, out.size(), [=](size_t i, uint64_t r) { out[i] = static_cast<T>(r & (~uint64_t{0} >> 1)); });
  } else {
    constexpr uint32_t mask = static_cast<uint32_t>(std::numeric_limits<T>::max());
    for_each_u32(g, out.size(), [=](size_t i, uint32_t r) { out[i] = static_cast<T>(r & mask); });
  }
}

void fill_randperm(std::span<int64_t> out, Generator& g) {
  std::iota(out.begin(), out.end(), int64_t{0});
  const uint64_t n = out.size();
  if (n < std::numeric_limits<uint32_t>::max() / 20) {
    for (uint64_t i = 0; i + 1 < n; ++i) std::swap(out[i], out[i + g.u32() % (n - i)]);
  } else {
    for (uint64_t i = 0; i < n; ++i) std::swap(out[i], out[g.u64() % (i + 1)]);
  }
}

void fill_bernoulli(std::span<bool> out, double p, Generator& g) {
  check_probability("bernoulli", p);
  if (out.empty()) return;
  if (g.dialect() == RngDialect::torch_mkl) return mkl_bernoulli(out, p, g.u32());
  // k 2^-53 < p for an integer k is k < ceil(p 2^53): exact, and an integer comparison.
  const uint64_t threshold = static_cast<uint64_t>(std::ceil(p * 0x1p53));
  for_each_u64(g, out.size(), [=](size_t i, uint64_t word) { out[i] = low53(word) < threshold; });
}

template <class T>
void fill_bernoulli(std::span<bool> out, std::span<const T> p, Generator& g) {
  check<ShapeError>(out.size() == p.size(), "bernoulli: one probability an element: ", out.size(), " elements, ", p.size(),
                    " probabilities");
  for (const T probability : p) check_probability("bernoulli", static_cast<double>(probability));
  for_each_uniform<T>(g, out.size(), [=](size_t i, T u) { out[i] = u < p[i]; });
}

void fill_dropout_mask(std::span<bool> keep, double p, Generator& g) {
  check_probability("dropout", p);
  if (p == 0 || p == 1)
    std::fill(keep.begin(), keep.end(), p == 0);
  else
    fill_bernoulli(keep, 1 - p, g);
}

template <class T>
T dropout_scale(double p) {
  return p == 1 ? T(0) : T(1) / static_cast<T>(1 - p);
}

template <class T>
void multinomial(std::span<const T> weights, int64_t rows, int64_t num_samples, bool replacement, std::span<int64_t> out,
                 Generator& g) {
  check<ConfigError>(num_samples >= 1, "multinomial: needs at least one sample: got ", num_samples);
  const size_t row_count = static_cast<size_t>(rows), samples = static_cast<size_t>(num_samples);
  check<ShapeError>(rows > 0
                        ? weights.size() % row_count == 0 && out.size() % row_count == 0 && out.size() / row_count == samples
                        : rows == 0 && weights.empty() && out.empty(),
                    "multinomial: ", weights.size(), " weights and ", out.size(), " samples are not ", rows, " rows of ",
                    num_samples, " samples");
  if (rows == 0) return;
  const size_t categories = weights.size() / row_count;
  const auto row = [categories](auto values, int64_t r) {
    return values.subspan(static_cast<size_t>(r) * categories, categories);
  };
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t positive = count_positive(row(weights, r));
    check<ConfigError>(positive >= (replacement ? 1 : num_samples), "multinomial: cannot draw ", num_samples,
                       replacement ? " samples from " : " samples without replacement from ", positive, " positive weights of ",
                       categories);
  }
  std::vector<T> exponentials(replacement && num_samples > 1 ? 0 : weights.size());
  fill_exponential<T>(exponentials, 1.0, g);
  for (int64_t r = 0; r < rows; ++r) {
    const auto samples_of_row = out.subspan(static_cast<size_t>(r) * samples, samples);
    if (exponentials.empty())
      sample_with_replacement(row(weights, r), samples_of_row, g);
    else
      exponential_race(row(weights, r), row(std::span<const T>(exponentials), r), samples_of_row);
  }
}

template void fill_uniform(std::span<float>, double, double, Generator&);
template void fill_uniform(std::span<double>, double, double, Generator&);
template void fill_normal(std::span<float>, double, double, Generator&);
template void fill_normal(std::span<double>, double, double, Generator&);
template void fill_exponential(std::span<float>, double, Generator&);
template void fill_exponential(std::span<double>, double, Generator&);
template void fill_random(std::span<bool>, Generator&);
template void fill_random(std::span<uint8_t>, Generator&);
template void fill_random(std::span<int32_t>, Generator&);
template void fill_random(std::span<int64_t>, Generator&);
template void fill_random(std::span<float>, Generator&);
template void fill_random(std::span<double>, Generator&);
template void fill_bernoulli(std::span<bool>, std::span<const float>, Generator&);
template void fill_bernoulli(std::span<bool>, std::span<const double>, Generator&);
template float dropout_scale<float>(double);
template double dropout_scale<double>(double);
template void multinomial(std::span<const float>, int64_t, int64_t, bool, std::span<int64_t>, Generator&);
template void multinomial(std::span<const double>, int64_t, int64_t, bool, std::span<int64_t>, Generator&);

}  // namespace onestep

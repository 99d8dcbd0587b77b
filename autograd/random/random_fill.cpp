#include "autograd/random/random_fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "autograd/kernels/parallel.h"
#include "autograd/portable_math.h"
#include "base/error.h"

namespace onestep {
namespace {

constexpr size_t kPiece = 4096;  // elements; a multiple of the 16 that make a block of normals

// Calls use(begin, count, outputs) for the pieces of [0, n), `outputs_each` 32-bit outputs an element. They are drawn in
// order, by one thread at a time; meanwhile the others use what they drew.
template <class Use>
void for_each_piece(Generator& g, size_t n, size_t outputs_each, Use use) {
  size_t drawn = 0;
  std::mutex drawing;
  const auto piece = [&](int64_t, int) {
    size_t begin = 0, count = 0;
    const auto outputs = std::make_unique_for_overwrite<uint32_t[]>(outputs_each * kPiece);  // a thread's stack may be small
    {
      const std::lock_guard lock(drawing);
      begin = drawn;
      count = std::min(kPiece, n - begin);
      g.draw({outputs.get(), outputs_each * count});
      drawn += count;
    }
    use(begin, count, outputs.get());
  };
  const auto pieces = static_cast<int64_t>((n + kPiece - 1) / kPiece);
  kernels::parallel_pieces(kernels::threads_for(pieces, 2.0 * static_cast<double>(n)), pieces, piece);
}

// Calls use(i, u32_i) for i < n, pieces of them on several threads.
template <class Use>
void for_each_u32(Generator& g, size_t n, Use use) {
  for_each_piece(g, n, 1, [&use](size_t begin, size_t count, const uint32_t* outputs) {
    for (size_t i = 0; i < count; ++i) use(begin + i, outputs[i]);
  });
}

// Element i of outputs that are drawn two an element, the first one high.
constexpr uint64_t u64_of(const uint32_t* outputs, size_t i) { return uint64_t{outputs[2 * i]} << 32 | outputs[2 * i + 1]; }

// Calls use(i, u64_i) for i < n, pieces of them on several threads.
template <class Use>
void for_each_u64(Generator& g, size_t n, Use use) {
  for_each_piece(g, n, 2, [&use](size_t begin, size_t count, const uint32_t* outputs) {
    for (size_t i = 0; i < count; ++i) use(begin + i, u64_of(outputs, i));
  });
}

constexpr uint64_t low53(uint64_t bits) { return bits & ((uint64_t{1} << 53) - 1); }
double to_d53(uint64_t bits) { return static_cast<double>(static_cast<int64_t>(low53(bits))) * 0x1p-53; }
float to_f24(uint32_t bits) { return static_cast<float>(static_cast<int32_t>(bits & 0xffffff)) * 0x1p-24f; }

// The uniforms in [0, 1) of T's own kind that `count` elements' outputs make.
template <class T>
constexpr size_t kOutputsEach = sizeof(T) / sizeof(uint32_t);
template <class T, class Use>
void use_uniforms(size_t count, const uint32_t* outputs, Use use) {
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, float>)
      use(i, to_f24(outputs[i]));
    else
      use(i, to_d53(u64_of(outputs, i)));
  }
}

// Calls use(i, u_i) for i < n with the uniforms of T's own kind.
template <class T, class Use>
void for_each_uniform(Generator& g, size_t n, Use use) {
  for_each_piece(g, n, kOutputsEach<T>, [&use](size_t begin, size_t count, const uint32_t* outputs) {
    use_uniforms<T>(count, outputs, [&](size_t i, T u) { use(begin + i, u); });
  });
}

// kernels::box_muller as PyTorch computes it in float32 without AVX2. Only the last step is fused.
void baseline_box_muller(std::span<float> d, float mean, float std) {
  for (size_t i = 0; i < d.size(); i += i % 16 == 7 ? 9 : 1) {
    const float r = std::sqrt(-2.0f * std::log(1.0f - d[i]));
    const auto t = static_cast<float>(2.0 * std::numbers::pi * static_cast<double>(d[i + 8]));
    d[i] = std::fma(r * std::cos(t), std, mean);
    d[i + 8] = std::fma(r * std::sin(t), std, mean);
  }
}

// Draws uniforms in [0, 1) of T's own kind.
template <class T>
void draw_uniforms(std::span<T> out, Generator& g) {
  for_each_uniform<T>(g, out.size(), [=](size_t i, T u) { out[i] = u; });
}

// Standard normals in double. For float64 they have PyTorch's own bits, which are those of the C library's functions; the
// generator's own are portable, also the second half of a pair that it keeps for the next fill.
template <class T>
void draw_normals(std::span<double> z, Generator& g) {
  if (std::is_same_v<T, float>) {
    for (double& value : z) value = g.normal();
    return;
  }
  for (size_t i = 0; i < z.size(); ++i) {
    Generator before = g;
    z[i] = g.normal();
    if (before.drawn() == g.drawn()) continue;
    const double u1 = before.d53(), u2 = before.d53();
    const double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * std::numbers::pi * u1;
    z[i] = r * std::cos(theta);
    if (i + 1 == z.size()) return;
    g.normal();
    z[++i] = r * std::sin(theta);
  }
}

// Turns uniforms into normals, in blocks of 16.
template <class T>
void to_normals(std::span<T> d, T mean, T std, RngRounding rounding) {
  if constexpr (std::is_same_v<T, float>) {
    if (rounding == RngRounding::separate) return baseline_box_muller(d, mean, std);
  }
  kernels::box_muller(d.data(), static_cast<int64_t>(d.size()), mean, std);
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
  ONESTEP_CHECK(ConfigError, p >= 0 && p <= 1, op, ": the probability must lie in [0, 1]: got ", p);
}

// The number of categories that can be drawn. Throws unless every element of `row` may be a category's weight.
template <class T>
int64_t count_positive(std::span<const T> row) {
  int64_t positive = 0;
  T total = 0;
  for (const T weight : row) {
    ONESTEP_CHECK(ConfigError, weight >= 0 && std::isfinite(weight), "multinomial: weights must be finite and >= 0: got ",
                  weight);
    positive += weight > 0;
    total += weight;
  }
  ONESTEP_CHECK(ConfigError, std::isfinite(total),
                "multinomial: the sum of the weights overflows (divide them by the largest)");
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

// Of the two dtypes that are drawn in themselves.
template <class T>
void fill_wide_uniform(std::span<T> out, double from, double to, Generator& g) {
  const T low = static_cast<T>(from), high = static_cast<T>(to), width = high - low;
  ONESTEP_CHECK(ConfigError, from <= to, "uniform_: the range must not be empty: from ", from, " to ", to);
  ONESTEP_CHECK(ConfigError, std::isfinite(low) && std::isfinite(high) && std::isfinite(width),
                "uniform_: the range must be finite: from ", from, " to ", to);
  draw_uniforms(out, g);
  if (low == 0 && high == 1) return;
  if (g.rounding() == RngRounding::fused) return kernels::uniform(out.data(), static_cast<int64_t>(out.size()), low, high);
  for (T& value : out) {
    value = value * width + low;
    if (value == high) value = low;
  }
}

template <class T>
void fill_wide_normal(std::span<T> out, double mean, double std, Generator& g) {
  ONESTEP_CHECK(ConfigError, std >= 0, "normal_: the standard deviation must be >= 0: got ", std);
  const size_t n = out.size();
  const RngRounding rounding = g.rounding();
  if (n < 16) {
    std::array<double, 16> normals;
    const std::span<double> z = std::span(normals).first(n);
    draw_normals<T>(z, g);
    for (size_t i = 0; i < n; ++i)
      out[i] = static_cast<T>(rounding == RngRounding::fused ? std::fma(z[i], std, mean) : z[i] * std + mean);
    return;
  }
  const T center = static_cast<T>(mean), scale = static_cast<T>(std);
  for_each_piece(g, n, kOutputsEach<T>, [=](size_t begin, size_t count, const uint32_t* outputs) {
    const std::span<T> piece = out.subspan(begin, count);
    use_uniforms<T>(count, outputs, [=](size_t i, T u) { piece[i] = u; });
    to_normals(piece.first(count - count % 16), center, scale, rounding);
  });
  if (n % 16 == 0) return;
  const std::span<T> last = out.last(16);
  draw_uniforms(last, g);
  to_normals(last, center, scale, rounding);
}

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

}  // namespace

template <class T>
void fill_uniform(std::span<T> out, double from, double to, Generator& g) {
  if constexpr (kIsHalf<T>) {
    std::vector<float> draws(out.size());
    fill_uniform<float>(draws, from, to, g);
    const float end = T(to);
    std::transform(draws.begin(), draws.end(), out.begin(), [=](float v) { return T(v) == end ? T(from) : T(v); });
  } else {
    fill_wide_uniform(out, from, to, g);
  }
}

template <class T>
void fill_normal(std::span<T> out, double mean, double std, Generator& g) {
  if constexpr (kIsHalf<T>) {
    std::vector<float> draws(out.size());
    const size_t ragged = draws.size() < 16 ? 0 : draws.size() % 16;
    fill_normal<float>(std::span(draws).first(draws.size() - ragged), mean, std, g);
    if (ragged > 0) fill_normal<float>(std::span(draws).last(16), mean, std, g);
    std::copy(draws.begin(), draws.end(), out.begin());
  } else {
    fill_wide_normal(out, mean, std, g);
  }
}

template <class T>
void fill_exponential(std::span<T> out, double rate, Generator& g) {
  ONESTEP_CHECK(ConfigError, rate > 0, "exponential: the rate must be > 0: got ", rate);
  const double scale = -1.0 / rate;
  for_each_uniform<double>(g, out.size(), [=](size_t i, double u) {
    if constexpr (std::is_same_v<T, float>)
      out[i] = static_cast<T>(scale * portable::log(1.0 - u));
    else
      out[i] = scale * std::log1p(-u);  // PyTorch's own bits
  });
}

void fill_randint(std::span<int64_t> out, int64_t low, int64_t high, Generator& g) {
  ONESTEP_CHECK(ConfigError, low < high, "randint: low must be below high: low ", low, " high ", high);
  const uint64_t start = static_cast<uint64_t>(low), range = static_cast<uint64_t>(high) - start;
  if (range < uint64_t{1} << 28) {
    const auto small = static_cast<uint32_t>(range);
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
    constexpr auto mask = static_cast<uint32_t>(std::numeric_limits<T>::max());
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
  const auto threshold = static_cast<uint64_t>(std::ceil(p * 0x1p53));
  for_each_u64(g, out.size(), [=](size_t i, uint64_t r) { out[i] = low53(r) < threshold; });
}

template <class T>
void fill_bernoulli(std::span<bool> out, std::span<const T> p, Generator& g) {
  ONESTEP_CHECK(ShapeError, out.size() == p.size(), "bernoulli: one probability an element: ", out.size(), " elements, ",
                p.size(), " probabilities");
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
  ONESTEP_CHECK(ConfigError, num_samples >= 1, "multinomial: needs at least one sample: got ", num_samples);
  const auto row_count = static_cast<size_t>(rows), samples = static_cast<size_t>(num_samples);
  ONESTEP_CHECK(ShapeError,
                rows > 0 ? weights.size() % row_count == 0 && out.size() % row_count == 0 && out.size() / row_count == samples
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
    ONESTEP_CHECK(ConfigError, positive >= (replacement ? 1 : num_samples), "multinomial: cannot draw ", num_samples,
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
template void fill_uniform(std::span<Half>, double, double, Generator&);
template void fill_uniform(std::span<BFloat16>, double, double, Generator&);
template void fill_normal(std::span<Half>, double, double, Generator&);
template void fill_normal(std::span<BFloat16>, double, double, Generator&);
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

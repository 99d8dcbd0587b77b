#pragma once
// Shared by the kernel tests: numbers, distances in ulp, and the same bits for every instruction set and thread count.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/kernels/kernels.h"

namespace onestep::kernels::testing {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Restores instruction set, threads and what is worth one at the end of a test.
class Settings {
 public:
  ~Settings() {
    set_isa(isa_);
    set_num_threads(threads_);
    set_min_work_per_thread(min_work_);
    set_bf16_instructions(bf16_instructions_);
    set_bf16_in_tiles(bf16_in_tiles_);
  }

 private:
  Isa isa_ = active_isa();
  int threads_ = num_threads();
  double min_work_ = min_work_per_thread();
  Bf16Instructions bf16_instructions_ = bf16_instructions();
  bool bf16_in_tiles_ = bf16_in_tiles();
};

/// Uniform in [low, high).
inline Floats random_floats(int64_t n, float low, float high, uint32_t seed = 1) {
  std::mt19937 engine(seed);
  Floats x(static_cast<size_t>(n));
  for (float& v : x) v = low + (high - low) * static_cast<float>(engine() >> 8) * 0x1p-24f;
  return x;
}

inline Doubles widened(const Floats& x) { return {x.begin(), x.end()}; }

/// |got - want| in units in the last place of `want` rounded to float; 0 for equal infinities and for two NaN.
inline double ulp_error(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  const float rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e30;
  const uint32_t exponent = std::max(std::bit_cast<uint32_t>(rounded) >> 23 & 0xff, 1u);  // 0 and subnormals share that of 1
  return std::fabs(static_cast<double>(got) - want) / std::bit_cast<double>(uint64_t{exponent + 1023 - 150} << 52);
}

/// Index of the first element whose bits differ (any NaN equals any other), -1 for none.
template <class T>
int64_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if (a.size() != b.size()) return static_cast<int64_t>(std::min(a.size(), b.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<Bits>(a[i]) != std::bit_cast<Bits>(b[i]) && !(std::isnan(a[i]) && std::isnan(b[i]))) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

/// Checks that run() returns the same bits for every instruction set of this machine and 1 to 4 threads, among which
/// the smallest work is split.
template <class F>
void check_same_bits(F run) {
  const Settings restore;
  set_min_work_per_thread(0);
  set_isa(Isa::generic);
  set_num_threads(1);
  const auto want = run();
  for (const Isa isa : kAllIsas) {
    if (!isa_supported(isa)) continue;
    for (const int threads : {1, 2, 3, 4}) {
      set_isa(isa);
      set_num_threads(threads);
      CAPTURE(std::string(name(isa)));
      CAPTURE(threads);
      CHECK(first_difference(run(), want) == -1);
    }
  }
}

/// Calls f() with every instruction set that this machine has.
template <class F>
void for_each_isa(F f) {
  const Settings restore;
  for (const Isa isa : kAllIsas) {
    if (!isa_supported(isa)) continue;
    set_isa(isa);
    CAPTURE(std::string(name(isa)));
    f();
  }
}

/// Checks |got - want| <= absolute + relative |want| element by element.
inline void check_close(const Floats& got, const Doubles& want, double relative, double absolute) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool close = std::isnan(want[i])
                           ? std::isnan(got[i])
                           : got[i] == want[i] || std::fabs(got[i] - want[i]) <= absolute + relative * std::fabs(want[i]);
    CAPTURE(i);
    CAPTURE(got[i]);
    CAPTURE(want[i]);
    if (!close) CHECK(close);
  }
}

/// y = f(y, row, col) for every element of a product; f must live on.
template <class T, class F>
Epilogue elementwise(const F& f) {
  return {&f, [](const void* context, void* c, int64_t ldc, int64_t row, int64_t rows, int64_t col, int64_t cols) {
            for (int64_t i = 0; i < rows; ++i)
              for (int64_t j = 0; j < cols; ++j) {
                T& y = static_cast<T*>(c)[i * ldc + j];
                y = (*static_cast<const F*>(context))(y, row + i, col + j);
              }
          }};
}

/// Sizes around the vector length, and one that is worth several threads.
inline std::vector<int64_t> sizes() {
  std::vector<int64_t> n(71);
  for (size_t i = 0; i < n.size(); ++i) n[i] = static_cast<int64_t>(i);
  n.push_back(1000);
  n.push_back(300001);
  return n;
}

}  // namespace onestep::kernels::testing

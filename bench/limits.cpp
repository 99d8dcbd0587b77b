// The limits of the machine: fused multiply-adds on registers, and memory bandwidth.
#include <array>
#include <atomic>
#include <numeric>
#include <vector>

#include "autograd/creation.h"
#include "autograd/kernels/isa.h"
#include "autograd/kernels/kernels.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "bench/header.h"
#include "bench/workloads.h"

#if defined(__x86_64__)
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12's own header (GCC bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace onestep::bench {
namespace {

constexpr int64_t kSteps = 1 << 18;
constexpr int kChains = 12;  // enough to hide the latency of an fma

/// Independent chains of y = y a + b in registers; returns the floating-point operations done.
double chains_generic() {
  float y[4 * kChains] = {};
  for (int64_t i = 0; i < kSteps; ++i)
    for (float& one : y) one = one * 0.999f + 0.001f;
  volatile float sink = y[0];
  static_cast<void>(sink);
  return 2.0 * 4 * kChains * kSteps;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double chains_avx2() {
  __m256 y[kChains], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
#pragma GCC unroll 12
  for (__m256& one : y) one = a;
  for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m256& one : y) asm volatile("vfmadd231ps %1, %2, %0" : "+x"(one) : "x"(a), "x"(b));
  }
  return 2.0 * 8 * kChains * kSteps;
}

__attribute__((target("avx512f"))) double chains_avx512() {
  __m512 y[kChains], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
#pragma GCC unroll 12
  for (__m512& one : y) one = a;
  for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (__m512& one : y) asm volatile("vfmadd231ps %1, %2, %0" : "+v"(one) : "v"(a), "v"(b));
  }
  return 2.0 * 16 * kChains * kSteps;
}
#endif

double chains() {
#if defined(__x86_64__)
  if (kernels::active_isa() == kernels::Isa::avx512) return chains_avx512();
  if (kernels::active_isa() == kernels::Isa::avx2) return chains_avx2();
#endif
  return chains_generic();
}

/// Sums n numbers, read as eight streams, a cache line of each in turn: several streams get more bandwidth than one.
float read(const float* numbers, int64_t n) {
  constexpr int64_t kStreams = 8, kLine = 16;
  // An odd number of lines: streams a multiple of 4 KiB apart alias the same L1 sets.
  const int64_t part = (n / kStreams / kLine - 1) / 2 * 2 * kLine + kLine;
  std::array<float, kLine> total{};
  for (int64_t i = 0; i < part; i += kLine)
    for (int64_t stream = 0; stream < kStreams; ++stream)
      for (int64_t lane = 0; lane < kLine; ++lane) total[static_cast<size_t>(lane)] += numbers[stream * part + i + lane];
  return std::accumulate(total.begin(), total.end(), 0.0f);
}

}  // namespace

nlohmann::ordered_json bench_limits(double seconds) {
  const int threads = kernels::num_threads();
  double operations = 0;
  const auto multiply_add = [&] {
    std::atomic<double> total = 0;
    kernels::parallel_pieces(threads, threads, [&](int64_t, int) { total += chains(); });
    operations = total;
  };
  multiply_add();
  const double first = process_age();
  const Timing arithmetic = time_calls(multiply_add, {.seconds = seconds / 2});

  const Tensor numbers = ones(int64_t{1} << 26);  // 256 MiB: more than any cache
  const int64_t size = numbers.numel();
  const auto* const first_number = numbers.data<float>();
  std::vector<float> sums(static_cast<size_t>(threads) * 64);
  const Timing reading = time_calls(
      [&] {
        kernels::parallel_pieces(threads, threads, [&](int64_t t, int) {
          sums[static_cast<size_t>(t) * 64] = read(first_number + size * t / threads, size / threads);
        });
      },
      {.seconds = seconds / 2});
  auto result = header("limits");
  result["gflops"] = 1e-6 * operations / arithmetic.median_ms;
  result["best_gflops"] = 1e-6 * operations / arithmetic.min_ms;
  result["gb_per_s"] = 4e-6 * static_cast<double>(size) / reading.median_ms;
  return report(std::move(result), arithmetic, first);
}

}  // namespace onestep::bench

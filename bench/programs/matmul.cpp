// GFLOP/s of the float32 matrix product beside OpenBLAS, in one run: the two take turns on each shape, and the table gives
// the medians. Usage: matmul [rounds] [threads...]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "base/error.h"
#include "base/machine.h"
#include "bench/measure.h"

#ifdef ONESTEP_OPENBLAS
extern "C" {  // cblas.h, declared here since its place differs between distributions
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                 int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int threads);
char* openblas_get_config();
char* openblas_get_corename();
}
#endif

namespace {

using onestep::bench::take_turns;

struct Shape {
  int m, n, k;
  bool trans_a, trans_b;

  std::string layout() const { return std::string(trans_a ? "T" : "N") + (trans_b ? "T" : "N"); }
  double flops() const { return 2.0 * m * n * k; }
};

/// Squares, and the products of one training step (forward NT, gradient of the input NN, gradient of the weight TN).
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const int n : {64, 128, 256, 384, 512, 768, 1024}) all.push_back({n, n, n, false, false});
  for (const int n : {256, 512}) {
    all.push_back({n, n, n, false, true});
    all.push_back({n, n, n, true, false});
  }
  for (const Shape& s :
       {Shape{768, 768, 384, false, true}, Shape{1024, 384, 1536, false, true}, Shape{1024, 1536, 384, false, true},
        Shape{2048, 1152, 384, false, true}, Shape{384, 1536, 1024, true, false}, Shape{1024, 384, 1536, false, false},
        Shape{256, 3072, 768, false, true}, Shape{256, 65, 384, false, true}, Shape{1, 768, 768, false, true},
        Shape{8, 768, 768, false, true}}) {
    all.push_back(s);
  }
  return all;
}

std::vector<float> numbers(int rows, int cols) {
  std::vector<float> x(static_cast<size_t>(rows) * static_cast<size_t>(cols));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) / 97 - 0.5f;
  return x;
}

void print_table(int threads, int rounds) {
  onestep::kernels::set_num_threads(threads);
  std::printf("\n%d thread%s\n%-6s %6s %6s %6s %12s", threads, threads == 1 ? "" : "s", "layout", "m", "n", "k", "onestep");
#ifdef ONESTEP_OPENBLAS
  openblas_set_num_threads(threads);
  std::printf(" %12s %8s", "OpenBLAS", "ratio");
#endif
  std::printf("   GFLOP/s\n");
  double log_ratios = 0;
  for (const Shape& s : shapes()) {
    const std::vector<float> a = numbers(s.m, s.k), b = numbers(s.k, s.n);
    std::vector<float> c = numbers(s.m, s.n);
    const int lda = s.trans_a ? s.m : s.k, ldb = s.trans_b ? s.k : s.n;
    std::vector<std::function<void()>> contestants = {[&] {
      onestep::kernels::gemm(s.trans_a, s.trans_b, s.m, s.n, s.k, a.data(), lda, b.data(), ldb, c.data(), s.n, false);
    }};
#ifdef ONESTEP_OPENBLAS
    constexpr int row_major = 101, plain = 111, transposed = 112;
    contestants.push_back([&] {
      cblas_sgemm(row_major, s.trans_a ? transposed : plain, s.trans_b ? transposed : plain, s.m, s.n, s.k, 1.0f, a.data(), lda,
                  b.data(), ldb, 0.0f, c.data(), s.n);
    });
#endif
    const std::vector<double> seconds = take_turns(contestants, std::max(1, static_cast<int>(2e9 / s.flops())), rounds);
    std::printf("%-6s %6d %6d %6d %12.1f", s.layout().c_str(), s.m, s.n, s.k, s.flops() / seconds[0] * 1e-9);
    if (seconds.size() > 1) {
      std::printf(" %12.1f %8.2f", s.flops() / seconds[1] * 1e-9, seconds[1] / seconds[0]);
      log_ratios += std::log(seconds[1] / seconds[0]);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
#ifdef ONESTEP_OPENBLAS
  std::printf("geometric mean of the ratios: %.2f\n", std::exp(log_ratios / static_cast<double>(shapes().size())));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
    ONESTEP_CHECK(onestep::ConfigError, rounds >= 1, "matmul: rounds must be a positive number: ", argc > 1 ? argv[1] : "");
    std::printf("%s, %u CPUs, onestep with %s, median of %d rounds\n", onestep::processor_name().c_str(),
                std::thread::hardware_concurrency(), onestep::kernels::name(onestep::kernels::active_isa()), rounds);
#ifdef ONESTEP_OPENBLAS
    std::printf("%s, its %s kernels\n", openblas_get_config(), openblas_get_corename());
#else
    std::printf("OpenBLAS is not installed (libopenblas-dev): its columns are left out\n");
#endif
    std::vector<int> threads;
    for (int i = 2; i < argc; ++i) threads.push_back(std::atoi(argv[i]));
    if (threads.empty()) threads = {1, 2};
    for (const int t : threads) print_table(t, rounds);
    return 0;
  } catch (const onestep::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

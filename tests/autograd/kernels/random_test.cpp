// The kernels behind the random fills: PyTorch's bits (rng_goldens_test.cpp) whatever the instruction set and the threads.
#include "autograd/random/random_fill.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

TEST_CASE("kernels: random fills give the same bits for every instruction set and number of threads") {
  for (const size_t n : {16u, 17u, 32u, 48u, 1000u, 200003u}) {
    CAPTURE(n);
    check_same_bits([n] {
      Generator g(5);
      Floats x(n);
      fill_uniform<float>(x, -0.1, 0.3, g);
      return x;
    });
    check_same_bits([n] {
      Generator g(5);
      Floats x(n);
      fill_normal<float>(x, 0.3, 1.7, g);
      return x;
    });
  }
}

TEST_CASE("kernels: box_muller in float agrees with double") {
  constexpr int64_t n = 1 << 18;
  Floats d = random_floats(n, 0.0f, 1.0f, 3);
  // The ends of the grid: radius 0 and the largest; angles 0, next to 2 pi, and the octants.
  const Floats corners{0, 0x1p-24f, 1 - 0x1p-24f, 0.5f, 0.125f, 0.25f, 0.375f, 0.625f};
  for (size_t i = 0; i < 64; ++i) {
    d[i / 8 * 16 + i % 8] = corners[i / 8];
    d[i / 8 * 16 + i % 8 + 8] = corners[i % 8];
  }
  Doubles want = widened(d);
  box_muller(want.data(), n, 0.5, 2.0);
  box_muller(d.data(), n, 0.5f, 2.0f);
  check_close(d, want, 2e-6, 4e-6);
}

}  // namespace
}  // namespace onestep::kernels

// std::fma is what the kernels' fused multiply-adds must be.
#include <doctest/doctest.h>

#include "tests/autograd/kernels/fma_inputs.h"

namespace onestep::kernels::testing {

TEST_CASE("kernels: fmaf rounds once: ties and subnormal results among others") {
  for (size_t kind = 0; kind < kFmaHashes.size(); ++kind) {
    CAPTURE(kind);
    const uint64_t hash = fma_hash(static_cast<FmaInputs>(kind), [](const float* a, const float* b, const float* c, float* y) {
      for (int i = 0; i < 16; ++i) y[i] = std::fma(a[i], b[i], c[i]);
    });
    CHECK(hash == kFmaHashes[kind]);
  }
}

}  // namespace onestep::kernels::testing

// The fused multiply-adds of WebAssembly's instruction sets, one made of doubles, one relaxed.
#include "web/tests/fma.h"

#include <doctest/doctest.h>

#include <string>

#include "autograd/kernels/isa.h"
#include "tests/autograd/kernels/fma_inputs.h"

namespace onestep::kernels::testing {
namespace {

template <class F>
void check_all(const char* what, F fma) {
  for (size_t kind = 0; kind < kFmaHashes.size(); ++kind) {
    CAPTURE(std::string(what));
    CAPTURE(kind);
    CHECK(fma_hash(static_cast<FmaInputs>(kind), fma) == kFmaHashes[kind]);
  }
}

}  // namespace

TEST_CASE("web: fma of doubles rounds once: ties and subnormal results among others") {
  check_all("vectors", wasm::fma_vector);
  check_all("registers", wasm::fma_register);
  check_all("in doubt", wasm::fma_careful);
}

TEST_CASE("web: the relaxed fma rounds once where the probe says so") {
  if (!isa_supported(Isa::wasm_relaxed)) return;
  check_all("vectors", wasm_relaxed::fma_vector);
  check_all("registers", wasm_relaxed::fma_register);
}

TEST_CASE("web: a sum is in doubt wherever a double rounded to float is wrong") {
  for (const FmaInputs kind : {FmaInputs::ties, FmaInputs::subnormal_ties, FmaInputs::tiny, FmaInputs::any_bits}) {
    int64_t wrong = 0, missed = 0;
    fma_hash(kind, [&](const float* a, const float* b, const float* c, float* y) {
      bool differs = false;
      for (int i = 0; i < 16; ++i) {
        y[i] = std::fma(a[i], b[i], c[i]);
        const double sum = static_cast<double>(a[i]) * static_cast<double>(b[i]) + static_cast<double>(c[i]);
        differs |= !std::isnan(y[i]) && static_cast<float>(sum) != y[i];
      }
      wrong += differs;
      missed += differs && !wasm::fma_in_doubt(a, b, c);
    });
    CAPTURE(static_cast<int>(kind));
    CHECK(missed == 0);
    if (kind == FmaInputs::ties || kind == FmaInputs::subnormal_ties) CHECK(wrong > 100);
  }
}

}  // namespace onestep::kernels::testing

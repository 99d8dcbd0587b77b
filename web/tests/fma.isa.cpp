// The fused multiply-adds of an instruction set, to be tested.
#include "web/tests/fma.h"

#include "autograd/kernels/simd.h"

namespace onestep::kernels::ONESTEP_ISA_NAME {

void fma_vector(const float* a, const float* b, const float* c, float* y) { store(y, fma(load(a), load(b), load(c))); }

void fma_register(const float* a, const float* b, const float* c, float* y) {
  for (int64_t i = 0; i < 16; i += kRegLanes<float>) store_reg(y + i, fma(load_reg(a + i), load_reg(b + i), load_reg(c + i)));
}

void fma_careful(const float* a, const float* b, const float* c, float* y) {
  for (int64_t i = 0; i < 16; i += kRegLanes<float>)
    store_reg(y + i, careful_fma(load_reg(a + i), load_reg(b + i), load_reg(c + i)));
}

bool fma_in_doubt(const float* a, const float* b, const float* c) {
  Doubt doubt;
  for (int64_t i = 0; i < 16; i += kRegLanes<float>) {
    [[maybe_unused]] const FloatReg sum = fma(load_reg(a + i), load_reg(b + i), load_reg(c + i), doubt);
  }
  return is_doubtful(doubt);
}

}  // namespace onestep::kernels::ONESTEP_ISA_NAME

// What relaxed_madd does on this machine.
#include "autograd/kernels/table.h"

#ifdef ONESTEP_ISA_wasm_relaxed
#include <wasm_simd128.h>

namespace onestep::kernels::wasm_relaxed {

bool madd_is_fused() {
  // The square of x = 1 + 2^-k has a last bit that its rounding drops: x x - rounded(x x) is that bit, or 0 if x x was rounded.
  const volatile float x = 0x1.001p0f;
  const volatile double y = 0x1.0000001p0;
  const v128_t xs = wasm_f32x4_splat(x), ys = wasm_f64x2_splat(y);
  const v128_t in_float = wasm_f32x4_relaxed_madd(xs, xs, wasm_f32x4_neg(wasm_f32x4_mul(xs, xs)));
  const v128_t in_double = wasm_f64x2_relaxed_madd(ys, ys, wasm_f64x2_neg(wasm_f64x2_mul(ys, ys)));
  return wasm_f32x4_extract_lane(in_float, 0) == 0x1p-24f && wasm_f64x2_extract_lane(in_double, 0) == 0x1p-56;
}

}  // namespace onestep::kernels::wasm_relaxed
#endif

#pragma once
// Fused multiply-add by WebAssembly's relaxed instructions, which round once or twice as the machine likes: the table is used
// only where madd_is_fused().

namespace onestep::kernels {
namespace {

/// a b + c with one rounding.
ONESTEP_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return quads<Vec>([&](int i) { return wasm_f32x4_relaxed_madd(a.q[i], b.q[i], c.q[i]); });
}
/// c - a b with one rounding.
ONESTEP_INLINE Vec fnma(Vec a, Vec b, Vec c) {
  return quads<Vec>([&](int i) { return wasm_f32x4_relaxed_nmadd(a.q[i], b.q[i], c.q[i]); });
}
ONESTEP_INLINE DoubleReg fma(DoubleReg a, DoubleReg b, DoubleReg c) {
  return quads<DoubleReg>([&](int i) { return wasm_f64x2_relaxed_madd(a.v[i], b.v[i], c.v[i]); });
}

/// See simd.h.
struct FloatReg {
  v128_t v[2];
};
ONESTEP_INLINE FloatReg splat_reg(float x) { return {{wasm_f32x4_splat(x), wasm_f32x4_splat(x)}}; }
ONESTEP_INLINE FloatReg load_reg(const float* p) { return {{wasm_v128_load(p), wasm_v128_load(p + 4)}}; }
ONESTEP_INLINE FloatReg load_reg_first(const float* p, int64_t n) {
  float lanes[8] = {};
  for (int64_t i = 0; i < 8 && i < n; ++i) lanes[i] = p[i];
  return load_reg(lanes);
}
ONESTEP_INLINE void store_reg(float* p, FloatReg x) {
  wasm_v128_store(p, x.v[0]);
  wasm_v128_store(p + 4, x.v[1]);
}
ONESTEP_INLINE void store_reg_first(float* p, FloatReg x, int64_t n) {
  float lanes[8];
  store_reg(lanes, x);
  for (int64_t i = 0; i < 8 && i < n; ++i) p[i] = lanes[i];
}
ONESTEP_INLINE FloatReg operator+(FloatReg a, FloatReg b) {
  return {{wasm_f32x4_add(a.v[0], b.v[0]), wasm_f32x4_add(a.v[1], b.v[1])}};
}
ONESTEP_INLINE FloatReg fma(FloatReg a, FloatReg b, FloatReg c) {
  return {{wasm_f32x4_relaxed_madd(a.v[0], b.v[0], c.v[0]), wasm_f32x4_relaxed_madd(a.v[1], b.v[1], c.v[1])}};
}
ONESTEP_INLINE void keep(FloatReg) {}

}  // namespace
}  // namespace onestep::kernels

#pragma once
// a b + c of 16 numbers by the instruction sets of WebAssembly: by vectors, by registers of products, and by what takes over
// where there is doubt; and whether there is. See fma.isa.cpp.

#define ONESTEP_DECLARE_FMA(ISA)                                               \
  namespace onestep::kernels::ISA {                                            \
  void fma_vector(const float* a, const float* b, const float* c, float* y);   \
  void fma_register(const float* a, const float* b, const float* c, float* y); \
  void fma_careful(const float* a, const float* b, const float* c, float* y);  \
  bool fma_in_doubt(const float* a, const float* b, const float* c);           \
  }
ONESTEP_DECLARE_FMA(wasm)
ONESTEP_DECLARE_FMA(wasm_relaxed)
#undef ONESTEP_DECLARE_FMA

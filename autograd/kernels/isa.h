#pragma once

namespace onestep::kernels {

/// The instruction sets the float32 kernels are compiled for. All give the same bits. The last two are WebAssembly's: without
/// and with its relaxed instructions, among which is a fused multiply-add.
enum class Isa { generic, avx2, avx512, wasm, wasm_relaxed };
inline constexpr Isa kAllIsas[] = {Isa::generic, Isa::avx2, Isa::avx512, Isa::wasm, Isa::wasm_relaxed};  // slowest first

/// "generic", "avx2" and so on.
const char* name(Isa isa);

/// Whether this build holds the kernels of `isa` and this machine (CPU and operating system) can run them.
bool isa_supported(Isa isa);

/// The instruction set in use: the best supported one, or what ONESTEP_ISA asks for by name.
/// Throws ConfigError when the variable names an unknown or unsupported one.
Isa active_isa();

/// Switches to `isa` (for tests and benchmarks; not while kernels run). Throws ConfigError when it is not supported.
void set_isa(Isa isa);

/// Whether this machine has the dot products of AVX512-BF16 and they give the bits of the products made of fma.
bool bf16_dot_supported();
/// Whether this machine multiplies tiles of bfloat16 by AMX, likewise.
bool amx_bf16_supported();

/// What products of bfloat16 are made of, with the same bits: the CPU's instructions for them where avx512 is in use, fma, or
/// whichever is faster.
enum class Bf16Instructions { faster, own, fma };
Bf16Instructions bf16_instructions();
/// For tests and benchmarks; not while kernels run. Throws ConfigError for `own` where bf16_dot_supported() is false.
void set_bf16_instructions(Bf16Instructions instructions);
/// Whether products of bfloat16 are made of AVX512-BF16's dot products, or of tiles.
bool bf16_dot_in_use();
bool amx_bf16_in_use();

/// Whether products of bfloat16 that this thread computes, or threads that help it, have the bits of AMX's TDPBF16PS instead of
/// those of AVX512-BF16's VDPBF16PS (kernels.h).
bool bf16_in_tiles();
void set_bf16_in_tiles(bool on);

}  // namespace onestep::kernels

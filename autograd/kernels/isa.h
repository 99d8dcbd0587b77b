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

/// Whether products of bfloat16 use them: where avx512 is in use, they are supported, and they were the faster of the two.
bool bf16_dot_in_use();

/// Uses them or not (for tests and benchmarks; not while kernels run). Throws ConfigError when they are not supported.
void set_bf16_dot(bool use);

}  // namespace onestep::kernels

#pragma once

namespace onestep::kernels {

/// The instruction sets the float32 kernels are compiled for. All give the same bits.
enum class Isa { generic, avx2, avx512 };

/// "generic", "avx2" or "avx512".
const char* name(Isa isa);

/// Whether this build holds the kernels of `isa` and this machine (CPU and operating system) can run them.
bool isa_supported(Isa isa);

/// The instruction set in use: the best supported one, or what `ONESTEP_ISA=generic|avx2|avx512` asks for.
/// Throws ConfigError when the variable names an unknown or unsupported one.
Isa active_isa();

/// Switches to `isa` (for tests and benchmarks; not while kernels run). Throws ConfigError when it is not supported.
void set_isa(Isa isa);

}  // namespace onestep::kernels

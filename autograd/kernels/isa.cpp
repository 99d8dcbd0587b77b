#include "autograd/kernels/isa.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "autograd/kernels/table.h"
#include "base/error.h"

namespace onestep::kernels {
namespace {

Isa chosen_isa() {
  const char* asked = std::getenv("ONESTEP_ISA");
  if (!asked || !*asked) {
    const auto best = std::find_if(std::rbegin(kAllIsas), std::rend(kAllIsas), isa_supported);
    ONESTEP_CHECK(ConfigError, best != std::rend(kAllIsas), "this machine cannot run any instruction set of this build");
    return *best;
  }
  for (const Isa isa : kAllIsas) {
    if (std::string_view(asked) != name(isa)) continue;
    ONESTEP_CHECK(ConfigError, isa_supported(isa), "ONESTEP_ISA: this machine cannot run ", asked);
    return isa;
  }
  throw ConfigError(std::string("ONESTEP_ISA: unknown instruction set: ") + asked + " (generic, avx2 or avx512)");
}

Isa& current() {
  static Isa isa = chosen_isa();
  return isa;
}

}  // namespace

const char* name(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::wasm:
      return "wasm";
    case Isa::wasm_relaxed:
      return "wasm_relaxed";
    case Isa::generic:
      break;
  }
  return "generic";
}

bool isa_supported(Isa isa) {
  switch (isa) {
#ifdef ONESTEP_X86
    // These look at the operating system's support for the wide registers too.
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
#ifdef ONESTEP_EMULATE_AVX512
      return isa_supported(Isa::avx2);
#else
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && isa_supported(Isa::avx2);
#endif
#endif
#ifdef ONESTEP_WASM
    // A module holds what it was linked with.
    case Isa::wasm:
      return wasm::fill_maps != nullptr;
    case Isa::wasm_relaxed:
      return wasm_relaxed::fill_maps != nullptr && wasm_relaxed::madd_is_fused();
    case Isa::generic:
      return generic::fill_maps != nullptr;
#else
    case Isa::generic:
      return true;
#endif
    default:
      return false;
  }
}

Isa active_isa() { return current(); }

void set_isa(Isa isa) {
  ONESTEP_CHECK(ConfigError, isa_supported(isa), "set_isa: this machine cannot run ", name(isa));
  current() = isa;
}

}  // namespace onestep::kernels

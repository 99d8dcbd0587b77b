#include "autograd/kernels/table.h"

#include "autograd/kernels/isa.h"
#include "autograd/kernels/kernels.h"

#ifdef ONESTEP_X86
#include <cpuid.h>
#endif
#ifdef ONESTEP_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Cases of a switch on active_isa(). A table is filled only when it is asked for: filling it is code of its instruction set
// too.
#define ONESTEP_FLOAT_TABLE(ISA)                                                                                \
  case Isa::ISA: {                                                                                              \
    static const Table<float> t =                                                                               \
        filled(ISA::fill_maps, ISA::fill_rows, ISA::fill_gemm<float>, ISA::fill_random, ISA::fill_convolution); \
    return t;                                                                                                   \
  }
#define ONESTEP_DOUBLE_TABLE(ISA)                                         \
  case Isa::ISA: {                                                        \
    static const Table<double> t = with_products(ISA::fill_gemm<double>); \
    return t;                                                             \
  }

namespace onestep::kernels {
namespace {

using Fill = void (*)(Table<float>&);

Table<float> filled(Fill maps, Fill rows, Fill gemm, Fill random, Fill convolution) {
  Table<float> t;
  maps(t);
  rows(t);
  gemm(t);
  random(t);
  convolution(t);
  return t;
}

Table<double> with_products(void (*gemm)(Table<double>&)) {
  Table<double> t = reference_table();
  gemm(t);
  return t;
}

}  // namespace

template <>
const Table<double>& table() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    ONESTEP_DOUBLE_TABLE(avx512)
    ONESTEP_DOUBLE_TABLE(avx2)
#endif
#ifdef ONESTEP_WASM
    ONESTEP_DOUBLE_TABLE(wasm)
    ONESTEP_DOUBLE_TABLE(wasm_relaxed)
#endif
    default:
      ONESTEP_DOUBLE_TABLE(generic)
  }
}

template <>
const Products<float>& products() {
  return table<float>().products;
}
template <>
const Products<double>& products() {
  return table<double>().products;
}

template <Products<BFloat16> (*make)()>
static const Products<BFloat16>& made_once() {
  static const Products<BFloat16> products = make();
  return products;
}

/// Those in the order of bf16_in_tiles().
template <Products<BFloat16> (*pairs)(), Products<BFloat16> (*tiles)()>
static const Products<BFloat16>& made_in_order() {
  return bf16_in_tiles() ? made_once<tiles>() : made_once<pairs>();
}

template <>
const Products<BFloat16>& products() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    case Isa::avx512:
#ifdef ONESTEP_AMX
      if (bf16_in_tiles() && amx_bf16_in_use()) return made_once<avx512amx::tiled_bf16_products>();
#endif
#ifdef ONESTEP_BF16_DOT
      if (!bf16_in_tiles() && bf16_dot_in_use()) return made_once<avx512bf16::bf16_products>();
#endif
      return made_in_order<avx512::bf16_products, avx512::tiled_bf16_products>();
    case Isa::avx2:
      return made_in_order<avx2::bf16_products, avx2::tiled_bf16_products>();
#endif
    default:
      return made_once<generic::tiled_bf16_products>();  // of either order
  }
}

#ifdef ONESTEP_AMX
/// Whether the CPU has these bits of CPUID's leaf 7, EDX, and the system lets this process multiply tiles: Linux wants to be
/// asked, since it keeps 8 KiB more for every thread that does. From then on stacks for signals (sigaltstack) must have room
/// for them.
static bool may_multiply_tiles(unsigned bits) {
  constexpr unsigned kTiles = 1u << 24;
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of <asm/prctl.h> since Linux 5.16
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (kTiles | bits)) == (kTiles | bits) &&
         syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}
#endif

bool may_multiply_bf16_tiles() {
#ifdef ONESTEP_AMX
  return __builtin_cpu_supports("avx512bf16") && may_multiply_tiles(1u << 22);
#else
  return false;
#endif
}

#ifdef ONESTEP_AVX_VNNI
/// Whether a CPU with AVX2 has AVX-VNNI, which no version of Clang before 17 has a name for.
static bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}
#endif

std::vector<WeightProducts> usable_weight_products(Isa isa) {
  std::vector<WeightProducts> usable;
  switch (isa) {
#ifdef ONESTEP_X86
    case Isa::avx512:
#ifdef ONESTEP_AMX
      if (__builtin_cpu_supports("avx512vnni") && may_multiply_tiles(1u << 25)) usable.push_back(avx512amx::weight_products());
#endif
#ifdef ONESTEP_AVX512_VNNI
      if (__builtin_cpu_supports("avx512vnni")) usable.push_back(avx512vnni::weight_products());
#endif
      usable.push_back(avx512::weight_products());
      break;
    case Isa::avx2:
#ifdef ONESTEP_AVX_VNNI
      if (has_avx_vnni()) usable.push_back(avxvnni::weight_products());
#endif
      usable.push_back(avx2::weight_products());
      break;
#endif
    default:
      usable.push_back(generic::weight_products());
  }
  return usable;
}

template <Isa isa>
static const WeightProducts& widest_weight_products() {
  static const WeightProducts products = usable_weight_products(isa).front();
  return products;
}

const WeightProducts& weight_products() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    case Isa::avx512:
      return widest_weight_products<Isa::avx512>();
    case Isa::avx2:
      return widest_weight_products<Isa::avx2>();
#endif
    default:
      return widest_weight_products<Isa::generic>();
  }
}

template <>
const Table<float>& table() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    ONESTEP_FLOAT_TABLE(avx512)
    ONESTEP_FLOAT_TABLE(avx2)
#endif
#ifdef ONESTEP_WASM
    ONESTEP_FLOAT_TABLE(wasm)
    ONESTEP_FLOAT_TABLE(wasm_relaxed)
#endif
    default:
      ONESTEP_FLOAT_TABLE(generic)
  }
}

#undef ONESTEP_FLOAT_TABLE
#undef ONESTEP_DOUBLE_TABLE

}  // namespace onestep::kernels

// Which instructions products of bfloat16 use. The dot products of AVX512-BF16 do twice as much a cycle as fma on some CPUs, on
// others half as much (Intel's Sapphire Rapids); AMX does many times as much on all that have it. The bits are those of fma.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/half.h"
#include "autograd/kernels/isa.h"
#include "autograd/kernels/table.h"
#include "autograd/memory.h"
#include "base/error.h"

namespace onestep::kernels {
namespace {

#ifdef ONESTEP_BF16_DOT

constexpr int64_t kRows = 28, kCols = 64, kDepth = 512;
/// In turns of some 10 us each, so that a core that is taken away meanwhile slows both kinds; dot products are chosen where
/// they are clearly faster. On an Intel Xeon, where they do half as much a cycle, they are 0.75 times as fast, but up to 1.2
/// times in one of ten trials, in which fma is slow for a millisecond.
constexpr int kTurns = 16;
constexpr double kClearly = 1.4;

/// Bit patterns of all kinds: ordinary numbers, wide ones, those whose products are subnormal; and where `special`, zeros,
/// subnormals, infinities and NaN.
std::vector<uint16_t> patterns(int64_t n, uint32_t state, bool special) {
  constexpr uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x8080,
                                   0x7f7f, 0xff80, 0x7f80, 0x7fc0, 0x1a80, 0x9a80};
  std::vector<uint16_t> x(static_cast<size_t>(n));
  for (uint16_t& value : x) {
    state = state * 1664525u + 1013904223u;
    const uint32_t bits = state >> 8;
    const uint32_t exponent = state >> 30 == 0 ? 52 + (bits >> 16) % 14 : 120 + (bits >> 16) % 10;
    value = static_cast<uint16_t>((bits & 0x807fu) | exponent << 7);
    if (special && (state >> 24) % 8 == 0) value = kSpecial[(state >> 16) % std::size(kSpecial)];
  }
  return x;
}

/// Products of such numbers by one kind of kernels: the last result, and the least nanoseconds.
class Trial {
 public:
  Trial(const Products<BFloat16>& products, bool special)
      : products_(products),
        a_(patterns(kRows * kDepth, 1, special)),
        b_(patterns(kDepth * kCols, 2, special)),
        scratch_(static_cast<size_t>(products.workspace(kRows, kCols, kDepth, false))),
        result_(kRows * kCols) {
    run();
  }

  void run() {
    const auto start = std::chrono::steady_clock::now();
    products_.gemm(false, false, kRows, kCols, kDepth, {a_.data(), true}, kDepth, {b_.data(), true}, kCols, nullptr,
                   result_.data(), kCols, false, {}, scratch_.data());
    ns_ = std::min(ns_, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  const std::vector<float>& result() const { return result_; }
  double ns() const { return ns_; }

 private:
  Products<BFloat16> products_;
  std::vector<uint16_t> a_, b_;
  std::vector<float, memory::Allocator<float>> scratch_;
  std::vector<float> result_;
  double ns_ = 1e300;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}

struct Probe {
  bool supported = false, faster = false;
};
Probe probe() {
  if (!isa_supported(Isa::avx512) || !__builtin_cpu_supports("avx512bf16")) return {};
  const Products<BFloat16> dots = avx512bf16::bf16_products(), fmas = avx512::bf16_products();
  if (!same_bits(Trial(dots, true).result(), Trial(fmas, true).result())) return {};
  Trial with_dots(dots, false), with_fmas(fmas, false);
  for (int turn = 0; turn < kTurns; ++turn) {
    with_dots.run();
    with_fmas.run();
  }
  return {same_bits(with_dots.result(), with_fmas.result()), kClearly * with_dots.ns() < with_fmas.ns()};
}

const Probe& probed() {
  static const Probe result = probe();
  return result;
}

#endif

Bf16Instructions chosen = Bf16Instructions::faster;
thread_local bool in_tiles = false;

}  // namespace

bool bf16_dot_supported() {
#ifdef ONESTEP_BF16_DOT
  return probed().supported;
#else
  return false;
#endif
}

bool amx_bf16_supported() {
#ifdef ONESTEP_AMX
  static const bool supported = [] {
    if (!isa_supported(Isa::avx512) || !may_multiply_bf16_tiles()) return false;
    const Products<BFloat16> tiles = avx512amx::tiled_bf16_products(), fmas = avx512::tiled_bf16_products();
    return same_bits(Trial(tiles, true).result(), Trial(fmas, true).result()) &&
           same_bits(Trial(tiles, false).result(), Trial(fmas, false).result());
  }();
  return supported;
#else
  return false;
#endif
}

Bf16Instructions bf16_instructions() { return chosen; }

void set_bf16_instructions(Bf16Instructions instructions) {
  ONESTEP_CHECK(ConfigError, instructions != Bf16Instructions::own || bf16_dot_supported(),
                "set_bf16_instructions: this machine has no AVX512-BF16");
  chosen = instructions;
}

bool bf16_dot_in_use() {
#ifdef ONESTEP_BF16_DOT
  if (active_isa() != Isa::avx512 || chosen == Bf16Instructions::fma) return false;
  return probed().supported && (chosen == Bf16Instructions::own || probed().faster);
#else
  return false;
#endif
}

bool amx_bf16_in_use() { return active_isa() == Isa::avx512 && chosen != Bf16Instructions::fma && amx_bf16_supported(); }

bool bf16_in_tiles() { return in_tiles; }

void set_bf16_in_tiles(bool on) { in_tiles = on; }

}  // namespace onestep::kernels

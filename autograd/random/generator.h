#pragma once
// PyTorch's CPU random generator: mt19937 and the few ways in which its 32-bit outputs become numbers. The fills of whole
// tensors are in random_fill.h.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace onestep {

/// Whose `bernoulli_(p)` stream a generator follows; dropout masks are drawn with it.
enum class RngDialect : uint8_t {
  torch,      ///< One d53 an element: PyTorch 2.7 and later, and every version on CPUs that are not Intel's.
  torch_mkl,  ///< One u32 in all, which seeds MKL's MCG31m1 stream: earlier PyTorch with MKL on Intel CPUs.
};
constexpr auto names(RngDialect /*all*/) { return std::to_array<std::string_view>({"torch", "torch-mkl"}); }

/// How `a x + b` rounds in uniform and normal fills.
enum class RngRounding {
  fused,     ///< Once, as PyTorch's AVX2 and AVX-512 kernels.
  separate,  ///< Twice, as PyTorch on a CPU without AVX2, where float32 normals also use the C library's log, sin and cos.
};

/// The seed of a generator nobody has seeded (PyTorch's default).
inline constexpr int64_t kDefaultSeed = 67280421310721;

/// PyTorch's CPU generator (at::CPUGeneratorImpl), output for output: mt19937 seeded with the low 32 bits of a seed, and the
/// second half of the last pair of normals. A copy continues the same stream on its own. Not for use by two threads at once.
class Generator {
 public:
  explicit Generator(int64_t seed = kDefaultSeed, RngDialect dialect = RngDialect::torch,
                     RngRounding rounding = RngRounding::fused);

  /// Restarts the stream; dialect and rounding stay.
  Generator& manual_seed(int64_t seed);
  /// The seed the stream was started with.
  int64_t initial_seed() const { return seed_; }

  RngDialect dialect() const { return dialect_; }
  RngRounding rounding() const { return rounding_; }
  void set_dialect(RngDialect dialect) { dialect_ = dialect; }
  void set_rounding(RngRounding rounding) { rounding_ = rounding; }

  /// The next 32-bit output.
  uint32_t u32() {
    if (position_ == kWords) refill();
    return outputs_[position_++];
  }
  /// Two outputs, the first one high.
  uint64_t u64() {
    const uint64_t high = u32();
    return high << 32 | u32();
  }
  /// (u32 mod 2^24) 2^-24: the uniform float32 in [0, 1).
  float f24() { return static_cast<float>(u32() & 0xffffff) * 0x1p-24f; }
  /// (u64 mod 2^53) 2^-53: the uniform float64 in [0, 1).
  double d53() { return static_cast<double>(u64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }

  /// A standard normal by Box-Muller from two d53: with r = sqrt(-2 log1p(-u2)) it returns r cos(2 pi u1) and keeps
  /// r sin(2 pi u1) for the next call (at::normal_distribution<double>).
  double normal();
  /// The same of which `pair`(u1, u2) makes both: what it returns first, and what it keeps.
  template <class Pair>
  double normal_by(Pair pair) {
    if (cached_normal_) return *std::exchange(cached_normal_, std::nullopt);
    const double u1 = d53(), u2 = d53();
    const auto [first, second] = pair(u1, u2);
    cached_normal_ = second;
    return first;
  }

  /// The next out.size() outputs: as that many u32(), faster.
  void draw(std::span<uint32_t> out);
  /// Advances the generator by so many outputs, as std::mt19937::discard.
  void discard(uint64_t outputs);
  /// The difference of two says how many outputs were drawn between them, unless the stream was restarted.
  uint64_t drawn() const { return refills_ * kWords + position_; }

  /// The position in the stream as one line of printable ASCII, without dialect and rounding.
  std::string state() const;
  /// Continues from what state() returned; throws Error, leaving the generator as it was, for any other text.
  void set_state(std::string_view state);

 private:
  static constexpr uint32_t kWords = 624;
  void refill();
  void twist();
  void temper();

  std::array<uint32_t, kWords> words_{};    // the recurrence
  std::array<uint32_t, kWords> outputs_{};  // words_, tempered: what u32() returns
  uint32_t position_ = kWords;              // next of outputs_; kWords asks for a refill
  uint64_t refills_ = 0;
  std::optional<double> cached_normal_;
  int64_t seed_ = kDefaultSeed;
  RngDialect dialect_;
  RngRounding rounding_;
};

/// The generator used where none is given.
Generator& default_generator();

/// Seeds the default generator (torch.manual_seed).
Generator& manual_seed(int64_t seed);

}  // namespace onestep

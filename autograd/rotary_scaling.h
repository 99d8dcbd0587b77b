#pragma once
// Rotary position embedding for contexts that are longer than those of the training.
#include <array>
#include <cstdint>
#include <string_view>

namespace onestep {

/// What stretches the wavelengths of rotary_embedding beyond the context that a model was first trained on: `linear` divides
/// every frequency by `factor` (Chen et al. 2023); `llama3` divides those whose waves are longer than original_context /
/// low_freq_factor, keeps those shorter than original_context / high_freq_factor, and blends the two in between (Llama 3.1).
struct RotaryScaling {
  enum class Kind : uint8_t { none, linear, llama3 };
  Kind kind = Kind::none;
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  ///< llama3 alone, as original_context
  int64_t original_context = 8192;
  bool operator==(const RotaryScaling&) const = default;
};

/// What becomes of the frequency, in radians a token, of one pair of features. ops/rotary.cpp
double scaled_frequency(double frequency, const RotaryScaling& scaling);

constexpr auto names(RotaryScaling::Kind /*all*/) { return std::to_array<std::string_view>({"none", "linear", "llama3"}); }

}  // namespace onestep

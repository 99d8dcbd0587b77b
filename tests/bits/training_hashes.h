#pragma once
// Training runs whose parameters are known to the bit (tests/configs/bits_*.json, tests/goldens/training_hashes.json).
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace onestep::testing {

/// The configs that are trained, by name.
inline constexpr const char* kBitConfigs[] = {"bits_attention", "bits_gpt", "bits_gpt_bf16", "bits_gpt_bf16_amx",
                                              "bits_gqa_rope"};
/// The numbers of steps after which hashes are known: one for the suite, one for the long test.
inline constexpr int64_t kBitSteps[] = {5, 25, 500};

/// Trains tests/configs/CONFIG.json and gives the hash of every parameter, all that the optimizer remembers and the generator
/// after each of these numbers of steps (ascending).
nlohmann::json training_hashes(const std::string& config, std::span<const int64_t> steps);

/// Trains all configs for `steps` steps with the instruction set and threads in use; a line for each that ends with another
/// hash than tests/goldens/training_hashes.json says, so none if all is well.
std::string differing_hashes(int64_t steps);

}  // namespace onestep::testing

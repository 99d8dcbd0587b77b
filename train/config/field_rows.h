#pragma once
// What the rows of the table of keys are written with.
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "train/config/config_fields.h"

namespace onestep::train {

inline constexpr double kMaxWidth = 1 << 16;   // d_model, heads
inline constexpr double kMaxLength = 1 << 20;  // tokens a window, windows a batch
inline constexpr double kMaxVocab = 1 << 24;
inline constexpr double kMaxSteps = 1e12;

/// The rows of a section. A row is a statement of its own: as an element of one long list, each would need code that destroys
/// all before it where it throws.
struct FieldRows {
  std::vector<Field> all;

  Field& row(std::string_view path, std::string_view doc);

  /// The row of a member of a section; that of an enumeration takes the names of its values.
  template <auto SECTION, auto MEMBER>
  Field& add(std::string_view path, std::string_view doc) {
    using T = std::remove_cvref_t<decltype(std::declval<Config&>().*SECTION.*MEMBER)>;
    Field& added = row(path, doc);
    if constexpr (NamedEnum<T>) {
      static constexpr auto kNames = names(T());
      added.value = [](Config& config) -> FieldValue {
        return Choice{reinterpret_cast<unsigned char*>(&(config.*SECTION.*MEMBER)), kNames};
      };
      added.one_of(kNames);
    } else {
      added.value = [](Config& config) -> FieldValue { return &(config.*SECTION.*MEMBER); };
    }
    return added;
  }

  /// The row of a member of model.lora.
  template <auto MEMBER>
  Field& add_lora(std::string_view path, std::string_view doc) {
    Field& added = row(path, doc);
    added.value = [](Config& config) -> FieldValue { return &(config.model.lora.*MEMBER); };
    return added;
  }
};

/// The rows of the section `model`, and of the one within it.
std::vector<Field> model_fields();

}  // namespace onestep::train

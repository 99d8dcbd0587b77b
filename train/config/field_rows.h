#pragma once
// What the rows of the table of keys are written with.
#include <string>
#include <utility>
#include <vector>

#include "train/config/config_fields.h"

namespace onestep::train {

inline constexpr double kMaxWidth = 1 << 16;   // d_model, heads
inline constexpr double kMaxLength = 1 << 20;  // tokens a window, windows a batch
inline constexpr double kMaxVocab = 1 << 24;
inline constexpr double kMaxSteps = 1e12;

/// The row of a member of a section; that of an enumeration takes the names of its values.
template <class Section, class T>
Field field(std::string path, Section Config::*section, T Section::*member, std::string doc) {
  Field row;
  row.path = std::move(path);
  row.doc = std::move(doc);
  if constexpr (NamedEnum<T>) {
    static constexpr auto all = names(T());
    row.value = [=](Config& config) -> FieldValue {
      return Choice{reinterpret_cast<unsigned char*>(&(config.*section.*member)), all};
    };
    row.one_of({all.begin(), all.end()});
  } else {
    row.value = [=](Config& config) -> FieldValue { return &(config.*section.*member); };
  }
  return row;
}

/// The row of a member of model.lora.
template <class T>
Field lora_field(std::string path, T LoraConfig::*member, std::string doc) {
  Field row;
  row.path = std::move(path);
  row.doc = std::move(doc);
  row.value = [=](Config& config) -> FieldValue { return &(config.model.lora.*member); };
  return row;
}

/// The rows of the section `model`, and of the one within it.
std::vector<Field> model_fields();

}  // namespace onestep::train

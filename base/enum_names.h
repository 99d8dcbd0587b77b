#pragma once
// Enumerations whose values have names: the words of configs, files and messages.
#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>

namespace onestep {

/// An enumeration in one byte with a function `names(E)` beside it, which returns the names of its values, in their order from
/// 0.
template <class E>
concept NamedEnum = std::is_enum_v<E> && sizeof(E) == 1 && requires(E value) {
  names(value)[0];
};

/// The name of a value.
template <NamedEnum E>
std::string_view name_of(E value) {
  static constexpr auto all = names(E());
  return all[static_cast<size_t>(value)];
}

/// All values, in their order.
template <NamedEnum E>
constexpr auto values_of() {
  std::array<E, names(E()).size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<E>(i);
  return all;
}

/// The value of that name, if there is one.
template <NamedEnum E>
std::optional<E> value_named(std::string_view name) {
  size_t i = 0;
  for (const std::string_view each : names(E())) {
    if (each == name) return static_cast<E>(i);
    ++i;
  }
  return {};
}

}  // namespace onestep

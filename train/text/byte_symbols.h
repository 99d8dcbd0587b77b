#pragma once
// GPT-2's way to write a byte as one printable character, so that a symbol of a vocabulary holds neither spaces nor controls.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onestep::train {

/// The code point that stands for each byte.
const std::array<uint32_t, 256>& byte_alphabet();

/// The symbol of these bytes.
std::string symbol_of_bytes(std::string_view bytes);

/// The bytes that a symbol of UTF-8 stands for; nullopt if a character stands for none.
std::optional<std::string> bytes_of_symbol(std::string_view symbol);

}  // namespace onestep::train

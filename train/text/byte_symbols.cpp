#include "train/text/byte_symbols.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace onestep::train {

// The printable character of each byte: printable Latin-1 stands for itself, the others follow from U+0100. [GPT-2, encoder.py]
const std::array<uint32_t, 256>& byte_alphabet() {
  static const std::array<uint32_t, 256> codes = [] {
    std::array<uint32_t, 256> out{};
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      out[byte] = printable ? byte : next++;
    }
    return out;
  }();
  return codes;
}

std::string symbol_of_bytes(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += to_utf8(byte_alphabet()[static_cast<unsigned char>(byte)]);
  return out;
}

std::optional<std::string> bytes_of_symbol(std::string_view symbol) {
  static const std::vector<int> byte_of_code = [] {
    std::vector<int> out(*std::max_element(byte_alphabet().begin(), byte_alphabet().end()) + 1, -1);
    for (int byte = 0; byte < 256; ++byte) out[byte_alphabet()[static_cast<size_t>(byte)]] = byte;
    return out;
  }();
  std::string bytes;
  for (size_t at = 0, length = 0; at < symbol.size(); at += length) {
    length = utf8_length(symbol, at);
    const uint32_t code = code_point(symbol.substr(at, length));
    if (code >= byte_of_code.size() || byte_of_code[code] < 0) return {};
    bytes += static_cast<char>(byte_of_code[code]);
  }
  return bytes;
}

}  // namespace onestep::train

#pragma once
// UTF-8 as the Unicode standard defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onestep {

/// Length in bytes of the well-formed code point at `text[at]`, or 0 if there is none. [Unicode 15, table 3-7]
size_t utf8_length(std::string_view text, size_t at);

/// Offset of the first byte that is not part of a well-formed code point; `npos` if the text is UTF-8.
size_t find_invalid_utf8(std::string_view text);

/// The code point of one whole well-formed sequence: "é" -> 0xE9.
uint32_t code_point(std::string_view symbol);

/// The sequence of a code point up to U+10FFFF: 0xE9 -> "é".
std::string to_utf8(uint32_t code);

/// Text that arrives in pieces of bytes, given back in whole characters. What cannot become one is U+FFFD, byte by byte.
class Utf8Stream {
 public:
  /// Takes further bytes; returns the characters that are now complete.
  std::string add(std::string_view bytes);
  /// What an unfinished character at the end becomes.
  std::string finish();

 private:
  std::string rest_;
};

/// For the terminal: the text with controls and broken bytes escaped, so that it does nothing there but take one line.
std::string escaped(std::string_view text);

/// For messages: the same, cut after about 60 bytes.
std::string printable(std::string_view text);

/// The same in quotes, with those of the text escaped, too.
std::string quote(std::string_view text);

}  // namespace onestep

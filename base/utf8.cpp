#include "base/utf8.h"

#include <algorithm>

namespace onestep {

size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  if (at >= text.size()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  // The second byte excludes overlong forms (E0, F0), surrogates (ED) and values above U+10FFFF (F4).
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = byte(1) >= (lead == 0xE0 ? 0xA0u : 0x80u) && byte(1) <= (lead == 0xED ? 0x9Fu : 0xBFu);
    return second && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = byte(1) >= (lead == 0xF0 ? 0x90u : 0x80u) && byte(1) <= (lead == 0xF4 ? 0x8Fu : 0xBFu);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

/// Whether `bytes`, which are no whole character, are the beginning of one.
bool is_beginning(const std::string& bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return lead >= 0xC2 && lead <= 0xF4;
  return utf8_length(bytes + "\x80\x80", 0) > bytes.size();  // any continuation goes from the third byte on
}

}  // namespace

std::string Utf8Stream::add(std::string_view bytes) {
  rest_ += bytes;
  std::string whole;
  size_t at = 0;
  while (at < rest_.size()) {
    const size_t length = utf8_length(rest_, at);
    if (length == 0 && is_beginning(rest_.substr(at))) break;
    whole += length > 0 ? rest_.substr(at, length) : kReplacement;
    at += std::max<size_t>(length, 1);
  }
  rest_.erase(0, at);
  return whole;
}

std::string Utf8Stream::finish() {
  std::string replaced;
  for (size_t i = 0; i < rest_.size(); ++i) replaced += kReplacement;
  rest_.clear();
  return replaced;
}

uint32_t code_point(std::string_view symbol) {
  const auto lead = static_cast<unsigned char>(symbol[0]);
  uint32_t code = symbol.size() == 1 ? lead : lead & (0x7Fu >> symbol.size());
  for (const char c : symbol.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

std::string to_utf8(uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

namespace {

constexpr size_t kLongest = 60;

std::string escape(std::string_view text, bool between_quotes, size_t longest = kLongest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (at >= longest) return out + "...";
    const size_t length = utf8_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (between_quotes && (text[at] == '"' || text[at] == '\\')) {
      out += {'\\', text[at]};
    } else if (text[at] == '\n') {
      out += "\\n";
    } else if (text[at] == '\t') {
      out += "\\t";
    } else if (length == 0) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else if (const uint32_t code = code_point(text.substr(at, length)); code < 0x20 || (code >= 0x7F && code < 0xA0)) {
      out += {'\\', 'u', '0', '0', kHex[code >> 4], kHex[code & 15]};
    } else {
      out += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) { return escape(text, false, std::string_view::npos); }

std::string printable(std::string_view text) { return escape(text, false); }

std::string quote(std::string_view text) { return '"' + escape(text, true) + '"'; }

}  // namespace onestep

// What libc++ prints with a given precision, and large integers, by the C library's printf: as exact, without its own 100 KB of
// tables, for which every visitor of the page would wait.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

_LIBCPP_BEGIN_NAMESPACE_STD

namespace {

to_chars_result print(char* first, char* last, const char* format, double value, uint32_t precision) {
  const int length = snprintf(nullptr, 0, format, static_cast<int>(precision), value);
  if (length > last - first) return {last, errc::value_too_large};
  string text(static_cast<size_t>(length) + 1, '\0');
  snprintf(text.data(), text.size(), format, static_cast<int>(precision), value);
  memcpy(first, text.data(), static_cast<size_t>(length));
  return {first + length, errc()};
}

}  // namespace

to_chars_result __d2fixed_buffered_n(char* first, char* last, double value, uint32_t precision) {
  return print(first, last, "%.*f", value, precision);
}

to_chars_result __d2exp_buffered_n(char* first, char* last, double value, uint32_t precision) {
  return print(first, last, "%.*e", value, precision);
}

/// The last `count` decimal digits of a number.
void __append_n_digits(uint32_t count, uint32_t digits, char* to) {
  for (; count > 0; digits /= 10) to[--count] = static_cast<char>('0' + digits % 10);
}

void __append_nine_digits(uint32_t digits, char* to) { __append_n_digits(9, digits, to); }

_LIBCPP_END_NAMESPACE_STD

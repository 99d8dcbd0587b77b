// How libc++ prints and reads a double: by the C library's printf and strtod, as exact, without its own tables and code, for
// which every visitor of the page would wait.
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "include/to_chars_floating_point.h"

_LIBCPP_BEGIN_NAMESPACE_STD

namespace {

string printed(const char* format, int precision, double value) {
  string text(static_cast<size_t>(snprintf(nullptr, 0, format, precision, value)), '\0');
  snprintf(text.data(), text.size() + 1, format, precision, value);
  return text;
}

/// With as few digits as read back: those nearest to the value or, where it is a power of two and the numbers below are denser
/// than those above, the next above.
string shortest(const char* format, double value) {
  for (int precision = 0;; ++precision) {
    string text = printed(format, precision, value);
    if (strtod(text.c_str(), nullptr) == value) return text;
    char& last = text[min(text.find('e'), text.size()) - 1];
    if (last != '9' && (++last, strtod(text.c_str(), nullptr) == value)) return text;
  }
}

}  // namespace

to_chars_result __d2s_buffered_n(char* first, char* last, double value, chars_format format) {
  const string text = shortest(format == chars_format::fixed ? "%.*f" : "%.*e", value);
  if (last - first < static_cast<ptrdiff_t>(text.size())) return {last, errc::value_too_large};
  return {copy(text.begin(), text.end(), first), errc()};
}

to_chars_result to_chars(char* first, char* last, double value, chars_format format) {
  return _Floating_to_chars<_Floating_to_chars_overload::_Format_only>(first, last, value, format, 0);
}

to_chars_result to_chars(char* first, char* last, float value) {
  return _Floating_to_chars<_Floating_to_chars_overload::_Plain>(first, last, value, chars_format(), 0);
}

/// The last `count` decimal digits of a number.
void __append_n_digits(uint32_t count, uint32_t digits, char* to) {
  for (; count > 0; digits /= 10) to[--count] = static_cast<char>('0' + digits % 10);
}

void __append_nine_digits(uint32_t digits, char* to) { __append_n_digits(9, digits, to); }

template <class T>
__from_chars_result<T> __from_chars_floating_point(_LIBCPP_NOESCAPE const char* first, _LIBCPP_NOESCAPE const char* last,
                                                   chars_format) {
  const string text(first, find_if(first, last, [](char c) { return !memchr("0123456789.eE+-", c, 15); }));
  char* end = nullptr;
  errno = 0;
  const T value = text.starts_with('+') ? T() : strtod(text.c_str(), &end);
  if (!end || end == text.c_str()) return {T(), 0, errc::invalid_argument};
  const bool fits = isfinite(value) && (value != 0 || errno != ERANGE);
  return {value, end - text.c_str(), fits ? errc() : errc::result_out_of_range};
}
template __from_chars_result<double> __from_chars_floating_point(_LIBCPP_NOESCAPE const char*, _LIBCPP_NOESCAPE const char*,
                                                                 chars_format);

_LIBCPP_END_NAMESPACE_STD

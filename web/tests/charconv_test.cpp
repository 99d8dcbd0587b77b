// What web/toolchain/charconv.cpp prints and reads is what the libraries of other machines do.
#include <doctest/doctest.h>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace {

std::string printed(double value, std::chars_format format) {
  char text[400];
  return {text, std::to_chars(text, text + sizeof text, value, format).ptr};
}

struct Read {
  double value = -1;
  std::string_view rest;
  std::errc error;
};

Read read(std::string_view text) {
  Read result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
  result.rest = text.substr(static_cast<size_t>(end - text.data()));
  result.error = error;
  return result;
}

}  // namespace

TEST_CASE("web: a double is printed with as few digits as read back") {
  const auto fixed = std::chars_format::fixed, scientific = std::chars_format::scientific;
  CHECK(printed(0, fixed) == "0");
  CHECK(printed(-0.1, fixed) == "-0.1");
  CHECK(printed(0.1 + 0.2, fixed) == "0.30000000000000004");
  CHECK(printed(1e15, fixed) == "1000000000000000");
  CHECK(printed(1e23, fixed) == "99999999999999991611392");
  CHECK(printed(1e23, scientific) == "1e+23");
  CHECK(printed(5e-324, scientific) == "5e-324");
  CHECK(printed(0x1p-44, scientific) == "5.684341886080802e-14");  // the nearest of 16 digits reads as the number below
  CHECK(printed(0x1p-44, fixed) == "0.00000000000005684341886080802");
  char narrow[3];
  CHECK(std::to_chars(narrow, narrow + 3, 0.25, fixed).ec == std::errc::value_too_large);
}

TEST_CASE("web: a double is read as far as it goes") {
  CHECK(read("0.30000000000000004x").value == 0.1 + 0.2);
  CHECK(read("-1.5e-3+2").rest == "+2");
  CHECK(read("1e+").rest == "e+");
  CHECK(read("0x10").rest == "x10");
  for (const char* const none : {"", "+1", " 1", "e1", "-"}) CHECK(read(none).error == std::errc::invalid_argument);
  for (const char* const beyond : {"1e400", "1e-400"}) CHECK(read(beyond).error == std::errc::result_out_of_range);
  CHECK(read("4e-320").error == std::errc());
}

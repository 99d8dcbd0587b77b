// Numbers and lists for people.
#include "base/format.h"

#include <doctest/doctest.h>

namespace onestep {

TEST_CASE("format: durations") {
  CHECK(duration(-1) == "0s");
  CHECK(duration(59.4) == "59s");
  CHECK(duration(59.5) == "1min 0s");
  CHECK(duration(3723) == "1h 2min 3s");
  CHECK(duration(90061) == "25h 1min 1s");
}

TEST_CASE("format: grouped digits") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(grouped(1234567.891, 2) == "1,234,567.89");
}

TEST_CASE("format: bytes in the largest unit that takes a whole number") {
  CHECK(format_bytes(0) == "0 bytes");
  CHECK(format_bytes(1000) == "1000 bytes");
  CHECK(format_bytes(1024) == "1 KiB");
  CHECK(format_bytes(3 << 20) == "3 MiB");
  CHECK(format_bytes((int64_t{1} << 40) + 1) == "1099511627777 bytes");
}

TEST_CASE("format: joined words") {
  CHECK(join({}, ", ") == "");
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "b", "c"}, " or ") == "a or b or c");
}

TEST_CASE("format: a table has its first column on the left and the others on the right") {
  CHECK(text_table({{"name", "loss"}, {"a", "10.5"}, {"longer", "2"}}) == "name    loss\na       10.5\nlonger     2\n");
  CHECK(text_table({{"a", ""}, {"b", "c"}}) == "a\nb  c\n");
}

}  // namespace onestep

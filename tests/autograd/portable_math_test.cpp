#include "autograd/portable_math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "tests/goldens.h"

using namespace onestep;
using onestep::testing::golden;

namespace {

double hex_number(const nlohmann::json& text) { return std::strtod(text.get<std::string>().c_str(), nullptr); }

}  // namespace

TEST_CASE("portable math: pow sin and cos are correctly rounded and log nearly so") {
  for (const nlohmann::json& row : golden("portable_math.json")["cases"]) {
    const std::string name = row[0];
    const double x = hex_number(row[1][0]), want = hex_number(row[2]);
    CAPTURE(name);
    CAPTURE(x);
    if (name == "pow") {
      const double y = hex_number(row[1][1]);
      CHECK(portable::pow(x, y) == want);
      if (y == std::floor(y) && y >= 0) CHECK(portable::pown(x, static_cast<int64_t>(y)) == want);
    } else if (name == "log") {
      const double got = portable::log(x);
      CHECK((got == want || got == std::nextafter(want, got)));
    } else {
      CHECK((name == "sin" ? portable::sin : portable::cos)(x) == want);
    }
  }
}

TEST_CASE("portable math: special values are C's") {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double x : {0.0, 0.5, 1.0, 3.0, infinity, nan})
    for (const double y : {-infinity, -2000.0, -1.0, -0.0, 0.0, 0.5, 2.0, 2000.0, infinity, nan}) {
      CAPTURE(x);
      CAPTURE(y);
      const double got = portable::pow(x, y), want = std::pow(x, y);
      CHECK((got == want || (std::isnan(got) && std::isnan(want))));
    }
  CHECK(std::isnan(portable::pow(-2.0, 3.0)));
  CHECK(portable::pown(-2, 3) == -8);
  CHECK(portable::pown(0, 0) == 1);
  CHECK(portable::pown(0, 1000) == 0);
  CHECK(portable::pown(0.9, 1000000) == 0);
  CHECK(portable::log(0) == -infinity);
  CHECK(portable::log(infinity) == infinity);
  CHECK(std::isnan(portable::log(-1)));
  CHECK(std::isnan(portable::log(nan)));
  CHECK(std::signbit(portable::sin(-0.0)));
  CHECK(portable::sin(0) == 0);
  CHECK(portable::cos(0) == 1);
  CHECK(std::isnan(portable::sin(infinity)));
  CHECK(std::isnan(portable::cos(nan)));
  CHECK(std::isnan(portable::cos(0x1.8p20)));
}

// Values of an object in a file: each refusal names the file, the pointer, what must be there and what is.
#include "base/json_object.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/support.h"

using namespace onestep;
using nlohmann::json;
using onestep::testing::refusal;

TEST_CASE("json object: values that are there come back") {
  const json value = json::parse(R"({"name": "a", "on": true, "none": null, "in": {"x": 1}, "all": [{"y": 2}, {"y": 3}]})");
  const JsonObject object(value, "f.json: ");
  CHECK(object.text("name") == "a");
  CHECK(object.flag("on"));
  CHECK(object.flag("absent", true));
  CHECK(!object.flag("none"));  // null is as absent
  CHECK(!object.has("none"));
  CHECK(object.has("in"));
  CHECK(object["in"]["x"] == 1);
  CHECK(object.object("in").place() == "f.json: /in");
  const std::vector<JsonObject> all = object.objects("all");
  REQUIRE(all.size() == 2);
  CHECK(all[1]["y"] == 3);
  CHECK(all[1].place() == "f.json: /all/1");
}

TEST_CASE("json object: a value that is absent or of another type is refused by its pointer") {
  const json value = json::parse(R"({"name": 1, "on": "yes", "in": [], "all": [{}, 5], "none": null})");
  const JsonObject object(value, "f.json: ");
  const auto refused = [&](auto read) { return refusal<IoError>([&] { read(object); }); };
  CHECK(refused([](const JsonObject& o) { o.text("name"); }) == "f.json: /name: must be a string: got 1");
  CHECK(refused([](const JsonObject& o) { o.text("absent"); }) == "f.json: /absent: must be a string: got nothing");
  CHECK(refused([](const JsonObject& o) { static_cast<void>(o["none"]); }) == "f.json: /none: must be there: got nothing");
  CHECK(refused([](const JsonObject& o) { o.flag("on"); }) == "f.json: /on: must be true or false: got \"yes\"");
  CHECK(refused([](const JsonObject& o) { o.object("in"); }) == "f.json: /in: must be an object: got []");
  CHECK(refused([](const JsonObject& o) { o.objects("name"); }) == "f.json: /name: must be a list: got 1");
  CHECK(refused([](const JsonObject& o) { o.objects("all"); }) == "f.json: /all/1: must be an object: got 5");
  CHECK(refusal<IoError>([] { JsonObject(json(3), "f.json: "); }) == "f.json: must be an object: got 3");
}

// safetensors files that break one rule of the format each, and those that other readers mishandled. safetensors_test.cpp pins
// the sentence of each rule.
#include <doctest/doctest.h>

#include <optional>

#include "tests/train/hostile.h"
#include "train/checkpoint/safetensors.h"

using namespace onestep;
using namespace onestep::testing;

namespace {

using Cases = std::vector<Hostile>;

void expect_refused(const Cases& files) {
  testing::expect_refused(files, [](const std::string& path) { train::read_safetensors(path); });
}

/// A file of this header and `data_bytes` zero bytes; `claimed` replaces the header's length.
std::string file_of(const std::string& header, size_t data_bytes = 0, std::optional<uint64_t> claimed = {}) {
  const uint64_t length = claimed.value_or(header.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

/// One tensor w.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data_bytes) {
  return file_of(R"({"w":)" + entry(dtype, shape, offsets) + "}", data_bytes);
}

const std::string kW = ": tensor \"w\": ", kB = ": tensor \"b\": ";

}  // namespace

TEST_CASE("hostile safetensors: the length of the header") {
  Cases cases;
  for (const uint64_t claimed : {uint64_t{0}, uint64_t{3}, uint64_t{100'000'000}, uint64_t{100'000'001}, uint64_t{1} << 31,
                                 uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7})  // 8 + N wraps around
    cases.push_back({file_of("{}", 0, claimed), ": "});
  cases.push_back({file_of("{}", 0, 1), ":1:2: "});
  for (size_t bytes = 0; bytes < 8; ++bytes) cases.push_back({std::string(bytes, 'x'), ": "});
  expect_refused(cases);
  // More than 100 MB of header that are really there: refused before they are read.
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "large").string();
  write(path, file_of("{}", 0, 100'000'001));
  std::filesystem::resize_file(path, 100'000'100);  // holes: no disk is used
  const MemoryLimit limit(memory_for(0));
  expect_refusal(refusal<IoError>([&] { train::read_safetensors(path); }), path + ": ");
}

TEST_CASE("hostile safetensors: a header that is not a JSON object") {
  Cases cases = hostile_json();
  for (Hostile& file : cases) file.bytes = file_of(file.bytes);
  for (const char* header : {"", " {}", "\n{}", "[]", "null", "1", "\"{}\"", "\xef\xbb\xbf{}", "\t"})
    cases.push_back({file_of(header), ": "});
  cases.push_back({file_of(std::string("{}\0\0", 4)), ":1:3: "});  // padded with NUL instead of spaces
  std::string many = "{\"a\":[";
  for (int i = 0; i < (1 << 20); ++i) many += "[],";
  cases.push_back({file_of(many + "[]]}"), ": too many values: they would take more than 48 MiB of memory"});
  expect_refused(cases);
}

TEST_CASE("hostile safetensors: malformed entries") {
  Cases cases;
  for (const char* value :
       {"null", "1", "true", "\"F32\"", "[]", "{}", R"({"dtype":"F32"})", R"({"dtype":"F32","shape":[]})",
        R"({"shape":[],"data_offsets":[0,0]})", R"({"dtype":"F32","data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[],"offsets":[0,4]})", R"({"dtype":"F32","shape":[],"data_offsets":[0,4],"x":1})"})
    cases.push_back({file_of(std::string(R"({"w":)") + value + "}", 4), kW});
  for (const char* dtype : {"F8_E4M3", "F8_E5M2", "I8", "I16", "U16", "U32", "U64", "C64", "f32", "F32 ", "", "FLOAT32"})
    cases.push_back({one('"' + std::string(dtype) + '"', "[1]", "[0,4]", 4), kW});
  for (const char* dtype : {"null", "32", "true", "[\"F32\"]", "{}"}) cases.push_back({one(dtype, "[1]", "[0,4]", 4), kW});
  for (const char* metadata : {"null", "1", "\"x\"", "[]", "true"})
    cases.push_back({file_of(std::string(R"({"__metadata__":)") + metadata + "}"), ": "});
  for (const char* value : {"null", "1", "true", "[]", "{}"})
    cases.push_back({file_of(std::string(R"({"__metadata__":{"k":)") + value + "}}"), ": "});
  expect_refused(cases);
}

TEST_CASE("hostile safetensors: shapes") {
  Cases cases;
  for (const char* shape : {"null", "1", "\"[1]\"", "{}", "true"}) cases.push_back({one("\"F32\"", shape, "[0,4]", 4), kW});
  for (const std::string size :
       {"-1", "-9223372036854775808", "1.0", "1e0", "0.5", "1e300", "18446744073709551616", "null", "true", "\"1\"", "[1]"})
    cases.push_back({one("\"F32\"", "[" + size + "]", "[0,4]", 4), kW});
  for (const char* shape :
       {"[18446744073709551615]", "[9223372036854775808]", "[4611686018427387904]", "[4611686018427387904,4]",
        "[4294967296,4294967296]", "[2147483648,2147483648,4]", "[0,4611686018427387904,4]", "[4611686018427387904,4,0]",
        "[65536,65536,65536,65536]", "[1,1,1,1,1,4611686018427387904]", "[4611686013427387904,0]", "[576460752303423489]"})
    cases.push_back({one("\"F32\"", shape, "[0,0]", 0), kW});
  cases.push_back({one("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]", 4), kW});
  std::string long_shape = "[1";
  for (int i = 1; i < 100'000; ++i) long_shape += ",1";
  cases.push_back({one("\"F32\"", long_shape + "]", "[0,4]", 4), kW});
  expect_refused(cases);
}

TEST_CASE("hostile safetensors: offsets") {
  Cases cases;
  for (const char* offsets : {"null", "0", "[]", "[0]", "[0,4,4]", "{}", "\"[0,4]\"", "true"})
    cases.push_back({one("\"F32\"", "[1]", offsets, 4), kW});
  for (const std::string bad : {"-1", "0.5", "4.0", "null", "\"0\"", "1e30", "[0]"}) {
    cases.push_back({one("\"F32\"", "[1]", "[" + bad + ",4]", 4), kW});
    cases.push_back({one("\"F32\"", "[1]", "[0," + bad + "]", 4), kW});
  }
  for (const char* offsets : {"[4,0]", "[0,8]", "[4,8]", "[8,12]", "[0,18446744073709551615]", "[18446744073709551612,4]",
                              "[18446744073709551615,18446744073709551615]", "[0,9223372036854775808]", "[1,0]"})
    cases.push_back({one("\"F32\"", "[1]", offsets, 4), kW});
  const auto holds = [&](const std::string& dtype, const std::string& shape,
                         size_t bytes) {  // other than its shape and dtype need
    cases.push_back({one(dtype, shape, "[0," + std::to_string(bytes) + "]", bytes), kW});
  };
  holds("\"F32\"", "[2]", 4);
  holds("\"F32\"", "[1]", 8);
  holds("\"F64\"", "[1]", 4);
  holds("\"I64\"", "[]", 4);
  holds("\"BOOL\"", "[3]", 4);
  holds("\"F32\"", "[0]", 4);
  holds("\"F32\"", "[1,0,7]", 4);
  holds("\"F32\"", "[2,3]", 0);
  holds("\"F32\"", "[1000000000000]", 4);
  expect_refused(cases);
}

TEST_CASE("hostile safetensors: gaps and overlaps and trailing bytes") {
  const auto two = [](const std::string& a, const std::string& b, size_t bytes) {
    return file_of(R"({"a":)" + entry("\"F32\"", "[1]", a) + R"(,"b":)" + entry("\"F32\"", "[1]", b) + "}", bytes);
  };
  expect_refused({
      {two("[0,4]", "[0,4]", 8), kB},
      {two("[0,4]", "[2,6]", 8), kB},
      {two("[0,4]", "[5,9]", 9), kB},
      {two("[4,8]", "[8,12]", 12), ": tensor \"a\": "},
      {two("[4,8]", "[0,4]", 9), ": "},
      {two("[0,4]", "[4,8]", 1000), ": "},
      {file_of("{}", 1), ": "},
      {file_of(R"({"__metadata__":{}})", 4), ": "},
      {one("\"F32\"", "[0]", "[4,4]", 4), kW},
      {one("\"BOOL\"", "[1]", "[0,1]", 0) + "\x02", kW},
      {one("\"BOOL\"", "[2]", "[0,2]", 0) + std::string("\0\xff", 2), kW},
  });
}

#include "train/checkpoint/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "autograd/ops.h"
#include "tests/process.h"
#include "tests/support.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::TemporaryFolder;

namespace {

/// A file of this header and this many zero bytes of data; `claimed` replaces the header's length.
std::string file_of(const std::string& header, size_t data_bytes, std::optional<uint64_t> claimed = {}) {
  const uint64_t length = claimed.value_or(header.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

void expect_unreadable(const std::string& bytes, const std::string& message) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "x.safetensors").string();
  std::ofstream(path, std::ios::binary) << bytes;
  CAPTURE(message);
  testing::expect_refusal(testing::refusal<IoError>([&] { read_safetensors(path); }), path + message);
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST_CASE("safetensors: what is written is read back to the bit") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "x.safetensors").string();
  const Tensor a = randn({3, 4}), b = transpose(arange(6).view({2, 3}), 0, 1), c = tensor({true, false}),
               d = full({}, 0.1, DType::float64);
  const NamedTensors tensors{{"a", a}, {"layer.b", b}, {"c", c}, {"d", d}, {"none", zeros({0, 5})}};
  write_safetensors(path, tensors, {{"format", "pt"}});
  const TensorFile file = read_safetensors(path);
  CHECK(file.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  REQUIRE(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const std::string& label = name;  // clang 14 captures no binding
    CAPTURE(label);
    const auto wanted =
        std::find_if(tensors.begin(), tensors.end(), [&, &key = name](const auto& t) { return t.first == key; });
    REQUIRE(wanted != tensors.end());
    CHECK(equal(tensor, wanted->second));
  }
}

TEST_CASE("safetensors: every rule of the format is checked and named") {
  expect_unreadable("", ": 0 bytes are too few for a safetensors file");
  expect_unreadable("1234567", ": ");
  expect_unreadable(file_of("{}", 0, 3), ": its header claims 3 bytes, the file has 2 left (and 100000000 is the limit)");
  expect_unreadable(file_of("{}", 0, UINT64_MAX), ": ");
  expect_unreadable(file_of("[]", 0), ": its header does not begin with {");
  expect_unreadable(file_of("", 8), ": ");
  expect_unreadable(file_of(" {}", 0), ": ");
  const std::string w = ": tensor \"w\": ";
  expect_unreadable(file_of(R"({"w":1})", 0), w + "needs exactly dtype, shape and data_offsets");
  expect_unreadable(file_of(R"({"w":{"dtype":"F32","shape":[]}})", 0), w);
  expect_unreadable(file_of(one("I16", "[1]", "[0,2]"), 2),
                    w + "dtype \"I16\" is not one of F32, F64, F16, BF16, I64, I32, U8, BOOL");
  expect_unreadable(file_of(one("F32", "1", "[0,4]"), 4), w + "shape must be a list of counts");
  expect_unreadable(file_of(one("F32", "[-1]", "[0,4]"), 4), w + "shape: -1 is not a count (a whole number from 0)");
  expect_unreadable(file_of(one("F32", "[1.0]", "[0,4]"), 4), w);
  expect_unreadable(file_of(one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), w + "rank 9 is above the limit of 8");
  expect_unreadable(file_of(one("F32", "[4611686018427387904,4]", "[0,0]"), 0),
                    w + "shape [4611686018427387904,4] has more elements than can be counted");
  expect_unreadable(file_of(one("F32", "[0,4611686018427387904,4]", "[0,0]"), 0), w);
  expect_unreadable(file_of(one("F32", "[1]", "[0]"), 4), w + "data_offsets must be [begin, end]");
  expect_unreadable(file_of(one("F32", "[1]", "[4,0]"), 4), w + "data_offsets [4,0] are not within the 4 bytes of data");
  expect_unreadable(file_of(one("F32", "[2]", "[0,8]"), 4), w);
  expect_unreadable(file_of(one("F32", "[2]", "[0,4]"), 4), w + "data_offsets [0,4] hold 4 bytes, its shape and dtype need 8");
  expect_unreadable(file_of(one("F32", "[1]", "[4,8]"), 8),
                    w + "begins at byte 4 of the data where byte 0 is due (no holes, no overlaps)");
  expect_unreadable(file_of(one("F32", "[1]", "[0,4]"), 6), ": 2 bytes after the last tensor belong to none");
  expect_unreadable(
      file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              8),
      ": tensor \"b\": ");
  expect_unreadable(file_of(R"({"__metadata__":{"a":1}})", 0), ": __metadata__ \"a\" must be a string");
  expect_unreadable(file_of(R"({"__metadata__":[]})", 0), ": __metadata__ must be an object of strings");
  expect_unreadable(file_of(one("BOOL", "[1]", "[0,1]"), 0) + "\x02", w + "a BOOL byte is neither 0 nor 1");
}

TEST_CASE("safetensors: a header may end in spaces, names may not repeat, only regular files are read") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "x.safetensors").string();
  std::ofstream(path, std::ios::binary) << file_of(one("F32", "[]", "[0,4]") + "   ", 4);
  CHECK(read_safetensors(path).tensors.at(0).second.item() == 0);
  const std::string entry = R"("w":{"dtype":"F32","shape":[],"data_offsets":[0,4]})";
  std::ofstream(path, std::ios::binary) << file_of("{" + entry + "," + entry + "}", 4);
  CHECK_THROWS_AS(read_safetensors(path), IoError);
  CHECK_THROWS_AS(read_safetensors(folder.path().string()), IoError);
  CHECK_THROWS_AS(read_safetensors(path + ".none"), IoError);
  CHECK_THROWS_AS(write_safetensors(path, {{"a", ones(1)}, {"a", ones(1)}}), IoError);
}

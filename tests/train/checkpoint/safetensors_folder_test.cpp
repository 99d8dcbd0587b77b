// Weights in several files with an index, whole and wrong.
#include "train/checkpoint/safetensors_folder.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/process.h"
#include "tests/support.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::TemporaryFolder;
using onestep::testing::write;
namespace fs = std::filesystem;

namespace {

/// A folder with a.safetensors (x, y), b.safetensors (z) and an index.
class Shards {
 public:
  Shards() {
    write_safetensors((path() / "a.safetensors").string(), {{"x", arange(6).view({3, 2})}, {"y", ones({2})}});
    write_safetensors((path() / "b.safetensors").string(), {{"z", zeros({4})}});
    index(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"})");
  }
  const fs::path& path() const { return folder_.path(); }
  void index(const std::string& map) {
    write(path() / "model.safetensors.index.json", R"({"metadata": {"total_size": 1}, "weight_map": )" + map + "}");
  }
  /// What is wrong, without the name of the folder.
  std::string error() const {
    return testing::without_folder(testing::refusal<IoError>([&] { SafetensorsFolder folder(path()); }), path());
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("safetensors folder: tensors are found in all files of the index and read in blocks") {
  const Shards shards;
  const SafetensorsFolder folder(shards.path());
  CHECK(folder.tensors().size() == 3);
  CHECK(folder.bytes() == 6 * 8 + 2 * 4 + 4 * 4);
  const auto& x = folder.tensors().at("x");
  CHECK(equal(x.file->read(*x.entry), arange(6).view({3, 2})));
  CHECK(fs::path(x.file->path()).filename() == "a.safetensors");
  int64_t rows = 0;
  x.file->for_each_block(*x.entry, [&](const Tensor& block, int64_t first) {
    CHECK(equal(block, arange(6).view({3, 2}).slice(0, first, first + block.size(0))));
    rows += block.size(0);
  });
  CHECK(rows == 3);
}

TEST_CASE("safetensors folder: a tensor of many MiB comes in several blocks of whole rows") {
  const TemporaryFolder folder;
  const Tensor large = arange(3 << 20).to(DType::float32).view({3 << 10, 1 << 10});
  write_safetensors((folder.path() / "model.safetensors").string(), {{"large", large}}, {}, true, DType::bfloat16);
  const SafetensorsFolder files(folder.path());
  const auto& found = files.tensors().at("large");
  CHECK(found.entry->dtype == DType::bfloat16);
  int64_t next = 0, blocks = 0;
  found.file->for_each_block(*found.entry, [&](const Tensor& block, int64_t first) {
    CHECK(first == next);
    CHECK(equal(block, large.slice(0, first, first + block.size(0)).to(DType::bfloat16)));
    next += block.size(0);
    ++blocks;
  });
  CHECK(next == 3 << 10);
  CHECK(blocks == 2);
}

TEST_CASE("safetensors folder: an index that its files contradict is refused") {
  Shards shards;
  CHECK(shards.error() == "");
  shards.index(R"({"x": "a.safetensors", "y": "b.safetensors", "z": "b.safetensors"})");
  CHECK(shards.error() == "model.safetensors.index.json: /weight_map/y: the tensor is not in \"b.safetensors\"");
  shards.index(R"({"x": "a.safetensors", "z": "b.safetensors"})");
  CHECK(shards.error() == "a.safetensors: tensor \"y\": is not listed in model.safetensors.index.json");
  shards.index(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors", "w": "a.safetensors"})");
  CHECK(shards.error().starts_with("model.safetensors.index.json: /weight_map/w: "));
  for (const char* file :
       {"\"../a.safetensors\"", "\"/etc/passwd\"", "\"sub/a.safetensors\"", "\"a.bin\"", "3", "null", "\"\""}) {
    shards.index(std::string(R"({"x": )") + file + "}");
    CHECK_MESSAGE(shards.error().starts_with("model.safetensors.index.json: /weight_map/x: must be a file NAME.safetensors: "),
                  file);
  }
  shards.index("[]");
  CHECK(shards.error() == "model.safetensors.index.json: /weight_map: must be an object of tensors and files");
  shards.index(R"({"x": "none.safetensors"})");
  CHECK(shards.error().starts_with("none.safetensors: "));
  write_safetensors((shards.path() / "b.safetensors").string(), {{"x", zeros({4})}});
  shards.index(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"})");
  CHECK(shards.error().starts_with("b.safetensors: tensor \"x\": is in "));
  fs::remove(shards.path() / "model.safetensors.index.json");
  CHECK(shards.error().starts_with("model.safetensors: "));
}

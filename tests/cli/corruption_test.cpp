// A checkpoint with a part cut off or a bit turned over, met by the program; tests/train/checkpoint/checkpoint_test.cpp has
// every length and every bit.
#include <doctest/doctest.h>

#include <random>

#include "tests/cli/stopped_run.h"

using namespace onestep::testing;

TEST_CASE("corruption: a checkpoint cut short or with a bit turned over is refused with file and reason and status 2") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", checkpoint = run / "checkpoints/step-2";
  std::ofstream(folder.path() / "config.json") << "{" + kModel + ", " + kText + R"(, "train": {"steps": 2}})";
  REQUIRE(run_onestep({"train", (folder.path() / "config.json").string(), "--quiet", "--out", run.string()}).status == 0);
  std::mt19937 random(3);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const fs::path file = checkpoint / name;
    const std::string good = read(file);
    const auto refused = [&](const std::string& bytes, const std::string& reason) {
      std::ofstream(file, std::ios::binary) << bytes;
      const ProcessResult result = run_onestep({"train", "--resume", run.string(), "--quiet", "--set", "train.steps=3"});
      CHECK(result.status == 2);
      CHECK(result.out == "");
      CHECK(result.err.starts_with("onestep: " + file.string() + ": is damaged: " + reason));
      CHECK(result.err.ends_with(" (and there is no older checkpoint)\n"));
    };
    const bool is_state = name == std::string("state.json");
    for (int i = 0; i < 5; ++i) {
      const size_t length = random() % good.size(), bit = random() % (8 * good.size());
      CAPTURE(name);
      CAPTURE(length);
      CAPTURE(bit);
      const std::string no_hash = "its text ";
      refused(good.substr(0, length),
              is_state ? no_hash : "has " + std::to_string(length) + " bytes, was written with " + std::to_string(good.size()));
      std::string turned = good;
      turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ (1 << bit % 8));
      refused(turned, is_state ? no_hash : "its hash is ");
    }
    std::ofstream(file, std::ios::binary) << good;
  }
  CHECK(run_onestep({"train", "--resume", run.string(), "--quiet", "--set", "train.steps=3"}).status == 0);
}

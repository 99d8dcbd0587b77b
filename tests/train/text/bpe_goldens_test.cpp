// Token ids against an independent encoder (tests/goldens/bpe.mjs) on 20,000 strings.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::golden;

namespace {

// The strings of tests/goldens/bpe_strings.json, drawn as bpe.mjs draws them.
class Strings {
 public:
  Strings() : spec_(golden("bpe_strings.json")), state_(spec_["seed"]) {
    for (const auto& pool : spec_["pools"]) pools_.push_back(pool.get<std::vector<std::string>>());
    for (const auto& range : spec_["ranges"]) ranges_.emplace_back(range[0], range[1]);
  }

  std::string next() {
    std::string text;
    for (uint32_t pieces = random(spec_["longest"]) + 1; pieces > 0; --pieces) {
      const uint32_t kind = random(static_cast<uint32_t>(pools_.size()) + 8);
      if (kind < pools_.size()) {
        text += pools_[kind][random(static_cast<uint32_t>(pools_[kind].size()))];
        continue;
      }
      const auto [low, high] = ranges_[random(static_cast<uint32_t>(ranges_.size()))];
      if (random(2) == 0) text += ' ';
      for (uint32_t length = random(6) + 1; length > 0; --length) text += to_utf8(low + random(high - low + 1));
    }
    return text;
  }

 private:
  uint32_t random(uint32_t below) {  // mulberry32
    state_ += 0x6d2b79f5u;
    uint32_t t = (state_ ^ (state_ >> 15)) * (state_ | 1u);
    t ^= t + (t ^ (t >> 7)) * (t | 61u);
    return (t ^ (t >> 14)) % below;
  }

  const nlohmann::json& spec_;
  uint32_t state_;
  std::vector<std::vector<std::string>> pools_;
  std::vector<std::pair<uint32_t, uint32_t>> ranges_;
};

void check_ids(const BpeTokenizer& tokenizer, const nlohmann::json& expected) {
  Strings strings;
  const size_t block = golden("bpe_strings.json")["block"];
  size_t count = 0;
  for (const auto& hash : expected["blocks"]) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < block; ++i) {
      const std::string text = strings.next();
      const std::vector<int64_t> encoded = tokenizer.encode(text);
      CHECK(tokenizer.decode(encoded) == text);
      ids.insert(ids.end(), encoded.begin(), encoded.end());
      ids.push_back(-1);
    }
    count += ids.size();
    CHECK(onestep::testing::fnv1a(ids) == hash);
  }
  CHECK(count == expected["ids"]);
  CHECK(expected["blocks"].size() * block >= 20000);
}

}  // namespace

TEST_CASE("bpe goldens: the ids of 20000 strings are those of an independent encoder") {
  check_ids(BpeTokenizer(read_bpe_folder(ONESTEP_SOURCE_DIR "/tests/goldens/bpe")), golden("bpe.json")["own"]);
}

TEST_CASE("bpe goldens: with GPT-2's vocabulary too where ONESTEP_GPT2 names its folder") {
  const char* folder = std::getenv("ONESTEP_GPT2");
  if (folder == nullptr) return;  // its files are not this project's: tests/goldens/bpe.mjs says where they are
  const BpeTokenizer tokenizer(read_bpe_folder(folder));
  CHECK(tokenizer.vocab_size() == 50257);
  CHECK(tokenizer.encode("Hello world<|endoftext|>") == std::vector<int64_t>{15496, 995, 50256});
  check_ids(tokenizer, golden("bpe.json")["gpt2"]);
}

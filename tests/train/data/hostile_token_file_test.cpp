// Malicious token files: invalid header fields under a valid hash, every bit flipped, every length. token_file_test.cpp pins
// the sentences.
#include <doctest/doctest.h>

#include "base/hash.h"
#include "base/read_file.h"
#include "tests/train/hostile.h"
#include "train/data/token_file.h"
#include "train/data/token_file_writer.h"
#include "train/text/tokenizer.h"

using namespace onestep;
using namespace onestep::testing;

namespace {

constexpr size_t kHeader = 144;

std::string good_file() {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.tokens").string();
  train::TokenFileWriter writer(path, train::ByteTokenizer(), std::string(32, 's'));
  writer.write(std::vector<int64_t>{1, 2, 3});
  writer.finish();
  return read_file(path, 1 << 20);
}

/// Puts `value` at `offset`; the header's own hash is recomputed.
template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes.replace(136, 8, hash_of(bytes.substr(0, 136)).substr(0, 8));
}

void read_all_tokens(const std::string& path) {
  const train::TokenFile file(path);
  std::vector<int64_t> ids;
  file.read(0, file.size(), ids);
}

}  // namespace

TEST_CASE("hostile token file: every bit of header and tokenizer and every length are refused") {
  const std::string good = good_file();
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.tokens").string();
  const size_t tokenizer_end = kHeader + train::ByteTokenizer().to_json().size();
  int64_t accepted = 0, misplaced = 0;
  const auto try_it = [&](const std::string& bytes) {
    write(path, bytes);
    const MemoryLimit limit(memory_for(bytes.size()));
    const std::string message = refusal<IoError>([&] { read_all_tokens(path); });
    accepted += message.empty();
    misplaced += !message.starts_with(path + ": ");
  };
  for (size_t bit = 0; bit < 8 * tokenizer_end; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    try_it(bytes);
  }
  for (size_t length = 0; length < good.size(); ++length) try_it(good.substr(0, length));
  for (const size_t more : {1u, 2u, 64u, 4096u}) try_it(good + std::string(more, '\0'));
  CHECK(accepted == 0);
  CHECK(misplaced == 0);
  write(path, good);
  CHECK(refusal<IoError>([&] { read_all_tokens(path); }) == "");
}

TEST_CASE("hostile token file: invalid header fields") {
  const std::string good = good_file();
  std::vector<Hostile> cases;
  const auto add = [&]<class T>(size_t offset, const std::vector<T>& values) {
    for (const T value : values) cases.push_back({with(good, offset, value), ": "});
  };
  using Words = std::vector<uint32_t>;
  using Longs = std::vector<uint64_t>;
  constexpr uint64_t kOne = 1, kHighest = ~uint64_t{0};
  add(8, Words{0, 2, 256, 0x01000000, ~0u});    // the version
  add(12, Words{0, 1, 3, 4, 8, 0x10002, ~0u});  // bytes an id
  // The number of ids; the last but one is 3 ids when doubled in 64 bits.
  add(16, Longs{0, 2, 4, kOne << 32, kOne << 62, kOne << 63, (kOne << 63) + 3, kHighest});
  // The size of the vocabulary; 1 to 3 are too few for the ids in the file.
  add(24, Longs{0, 1, 2, 3, 65537, kOne << 24, (kOne << 24) + 1, kOne << 32, kOne << 63, kHighest});
  // The bytes of the tokenizer; 144 + the last two wrap around.
  add(32,
      Longs{0, 1, 16, 18, 48, kOne << 20, kOne << 26, (kOne << 26) + 1, kOne << 63, kHighest, kHighest - 143, kHighest - 206});
  expect_refused(cases, read_all_tokens);
}

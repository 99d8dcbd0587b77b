// Token files that somebody made to do harm: every field of the header with a right hash, every bit and every length.
#include <doctest/doctest.h>

#include "base/read_file.h"
#include "tests/train/hostile.h"
#include "train/data/token_file.h"

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

/// Puts `value` at `offset`; the header's own hash is right again.
template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes.replace(136, 8, hash_of(bytes.substr(0, 136)).substr(0, 8));
}

void read_all(const std::string& path) {
  const train::TokenFile file(path);
  std::vector<int64_t> ids;
  file.read(0, file.size(), ids);
}

const std::string kHint = " (delete it: it is made anew)";

}  // namespace

TEST_CASE("hostile token file: every bit of header and tokenizer and every length are refused") {
  const std::string good = good_file();
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.tokens").string();
  const size_t tokenizer_end = kHeader + train::ByteTokenizer().to_json().size();
  int64_t believed = 0, unnamed = 0;
  const auto try_it = [&](const std::string& bytes) {
    write(path, bytes);
    const MemoryLimit limit(memory_for(bytes.size()));
    const std::string message = refusal<IoError>([&] { read_all(path); });
    believed += message.empty();
    unnamed += !message.starts_with(path + ": ");
  };
  for (size_t bit = 0; bit < 8 * tokenizer_end; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    try_it(bytes);
  }
  for (size_t length = 0; length < good.size(); ++length) try_it(good.substr(0, length));
  for (const size_t more : {1u, 2u, 64u, 4096u}) try_it(good + std::string(more, '\0'));
  CHECK(believed == 0);
  CHECK(unnamed == 0);
  write(path, good);
  CHECK(refusal<IoError>([&] { read_all(path); }) == "");
}

TEST_CASE("hostile token file: fields that do not fit") {
  const std::string good = good_file();
  std::vector<Hostile> cases;
  for (const uint32_t version : {0u, 2u, 256u, 0x01000000u, ~0u})
    cases.push_back(
        {with(good, 8, version), ": is a token file of version " + std::to_string(version) + ", known is 1" + kHint});
  for (const uint32_t width : {0u, 1u, 3u, 4u, 8u, 0x10002u, ~0u})
    cases.push_back(
        {with(good, 12, width), ": " + std::to_string(width) + " bytes an id do not fit its vocabulary of 256" + kHint});
  for (const uint64_t count : {uint64_t{0}, uint64_t{2}, uint64_t{4}, uint64_t{1} << 32, uint64_t{1} << 62, uint64_t{1} << 63,
                               (uint64_t{1} << 63) + 3, ~uint64_t{0}})  // the last but one is 3 ids when doubled in 64 bits
    cases.push_back({with(good, 16, count),
                     ": holds 6 bytes of ids, its header says " + std::to_string(count) + " ids of 2 bytes" + kHint});
  for (const uint64_t size : {uint64_t{0}, (uint64_t{1} << 24) + 1, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}})
    cases.push_back(
        {with(good, 24, size), ": its vocabulary size must be from 1 to 16777216: got " + std::to_string(size) + kHint});
  for (const uint64_t size : {uint64_t{65537}, uint64_t{1} << 24})
    cases.push_back({with(good, 24, size), ": 2 bytes an id do not fit its vocabulary of " + std::to_string(size) + kHint});
  for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{64} << 20, (uint64_t{64} << 20) + 1, uint64_t{1} << 63, ~uint64_t{0},
                               ~uint64_t{0} - 143, ~uint64_t{0} - 206})  // 144 + these wrap around
    cases.push_back({with(good, 32, bytes), ": its tokenizer of " + std::to_string(bytes) + " bytes is not within its " +
                                                std::to_string(good.size()) + " bytes" + kHint});
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{16}, uint64_t{18}, uint64_t{48}})
    cases.push_back({with(good, 32, bytes), ": its tokenizer is damaged" + kHint});
  for (const uint64_t size : {uint64_t{1}, uint64_t{2}, uint64_t{3}})
    cases.push_back({with(good, 24, size), ": token " + std::to_string(size - 1) + " is " + std::to_string(size) +
                                               ", its vocabulary has " + std::to_string(size) +
                                               " (delete the file: it is made anew)"});
  expect_refused(cases, read_all);
}

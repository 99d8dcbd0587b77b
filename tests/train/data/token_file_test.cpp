#include "train/data/token_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/data/token_cache.h"
#include "train/data/token_file_writer.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::read;
using onestep::testing::refusal;
using onestep::testing::TemporaryFolder;
using onestep::testing::write;
using Ids = std::vector<int64_t>;
namespace fs = std::filesystem;

namespace {

const std::string kSource(32, 's');

Ids all(const Tokens& tokens) {
  Ids ids;
  tokens.read(0, tokens.size(), ids);
  return ids;
}

// The bytes of a whole token file.
std::string file_of(const Ids& ids, const Tokenizer& tokenizer, const fs::path& path) {
  TokenFileWriter writer(path.string(), tokenizer, kSource);
  for (const int64_t id : ids) writer.write(Ids{id});
  writer.finish();
  return read(path);
}

std::string with_byte(std::string bytes, size_t offset, char value) {
  bytes[offset] = value;
  return bytes;
}

// Puts `value` at `offset` and makes the header's own hash fit again.
template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes.replace(136, 8, hash_of(bytes.substr(0, 136)).substr(0, 8));
}

// A folder for token files that the environment names as long as this lives.
class Cache {
 public:
  Cache() : before_(std::getenv("ONESTEP_CACHE") ? std::getenv("ONESTEP_CACHE") : "") {
    ::setenv("ONESTEP_CACHE", path().c_str(), 1);
  }
  ~Cache() { ::setenv("ONESTEP_CACHE", before_.c_str(), 1); }
  fs::path path() const { return folder_.path() / "cache"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path()))
      if (entry.path().extension() == ".tokens") found.push_back(entry.path());
    return found;
  }

 private:
  TemporaryFolder folder_;
  std::string before_;
};

TokenisedText tokenise(const fs::path& file, TokenizerKind kind, std::shared_ptr<const Tokenizer> tokenizer = nullptr) {
  return tokenise_files({file.string()}, kind, std::move(tokenizer), true);
}

}  // namespace

TEST_CASE("token file: what is written is read back with two bytes an id or four") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.tokens").string();
  std::string symbols;
  for (uint32_t code = 0x4E00; code < 0x4E00 + 70000; ++code) symbols += to_utf8(code >= 0xD800 && code < 0xE000 ? 'a' : code);
  for (const auto& tokenizer : {make_tokenizer(TokenizerKind::bytes, ""), make_tokenizer(TokenizerKind::characters, symbols)}) {
    const Ids ids = {0, 255, 7, tokenizer->vocab_size() - 1};
    const std::string bytes = file_of(ids, *tokenizer, path);
    const TokenFile file(path);
    CHECK(file.size() == 4);
    CHECK(all(file) == ids);
    CHECK(file.source() == kSource);
    CHECK(file.tokenizer_json() == tokenizer->to_json());
    CHECK(file.tokenizer_hash() == hash_of(tokenizer->to_json()));
    Ids two;
    file.read(1, 2, two);
    CHECK(two == Ids{255, 7});
    const size_t width = tokenizer->vocab_size() > 65536 ? 4 : 2;
    CHECK(bytes.size() == (144 + tokenizer->to_json().size() + 63) / 64 * 64 + 4 * width);
    CHECK(file.hash() == TokenList(ids).hash());
  }
}

TEST_CASE("token file: a malformed file is refused in one sentence") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.tokens").string();
  const ByteTokenizer tokenizer;
  const std::string good = file_of({1, 2, 3}, tokenizer, path), hint = " (delete it: it will be rebuilt)";
  const auto open = [&](const std::string& bytes) {
    write(path, bytes);
    return refusal([&] { all(TokenFile(path)); });
  };
  CHECK(open(good) == "");
  CHECK(open("") == path + ": is empty" + hint);
  CHECK(open(good.substr(0, 143)) == path + ": 143 bytes are too few for a token file" + hint);
  CHECK(open(std::string(200, '\0')) == path + ": is not a token file" + hint);
  CHECK(open(with(good, 8, uint32_t{2})) == path + ": is a token file of version 2, known is 1" + hint);
  CHECK(open(with_byte(good, 16, '\x09')) == path + ": its header is damaged" + hint);
  CHECK(open(with(good, 12, uint32_t{4})) == path + ": 4 bytes an id do not fit its vocabulary of 256" + hint);
  CHECK(open(with(good, 16, uint64_t{4})) == path + ": holds 6 bytes of ids, its header says 4 ids of 2 bytes" + hint);
  CHECK(open(with(good, 16, uint64_t{1} << 63)).starts_with(path + ": "));
  CHECK(open(with(good, 24, uint64_t{0})) == path + ": its vocabulary size must be from 1 to 16777216: got 0" + hint);
  CHECK(open(with(good, 32, ~uint64_t{0})) ==
        path + ": its tokenizer of 18446744073709551615 bytes is not within its 198 bytes" + hint);
  CHECK(open(with_byte(good, 145, 'x')) == path + ": its tokenizer is damaged" + hint);
  CHECK(open(good.substr(0, good.size() - 1)).starts_with(path + ": "));
  CHECK(open(good + "xx").starts_with(path + ": "));
  CHECK(open(with(good, 24, uint64_t{3})) ==
        path + ": token 2 is 3, its vocabulary has 3 (delete the file: it will be rebuilt)");
  fs::remove(path);
  fs::create_directory(path);
  CHECK(refusal([&] { TokenFile{path}; }).starts_with(path + ": "));
}

TEST_CASE("token file: one that is cut short while in use is refused") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.tokens").string();
  file_of(Ids(10000, 1), ByteTokenizer(), path);
  const TokenFile file(path);
  CHECK(all(file).size() == 10000);
  fs::resize_file(path, 200);
  CHECK(refusal([&] { all(file); }) == path + ": has been cut short while in use (delete the file: it will be rebuilt)");
}

TEST_CASE("token cache: a text is tokenised once and again when it has changed") {
  const Cache cache;
  const TemporaryFolder folder;
  const fs::path text = folder.path() / "text.txt";
  write(text, "abcab");
  const TokenisedText first = tokenise(text, TokenizerKind::characters);
  CHECK(all(*first.tokens) == Ids{0, 1, 2, 0, 1});
  REQUIRE(cache.files().size() == 1);
  const fs::path file = cache.files()[0];
  CHECK(file.filename().string().starts_with("text-"));

  struct stat before {
  }, after{};
  REQUIRE(::stat(file.c_str(), &before) == 0);
  const TokenisedText second = tokenise(text, TokenizerKind::characters);
  REQUIRE(::stat(file.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);  // not rebuilt
  CHECK(all(*second.tokens) == all(*first.tokens));
  CHECK(second.tokenizer->to_json() == first.tokenizer->to_json());
  CHECK(second.tokens->hash() == first.tokens->hash());

  write(text, "bcbca");  // as long as before
  CHECK(all(*tokenise(text, TokenizerKind::characters).tokens) == Ids{1, 2, 1, 2, 0});
  CHECK(all(*first.tokens) == Ids{0, 1, 2, 0, 1});  // who has the old file keeps it
  CHECK(cache.files() == std::vector<fs::path>{file});
}

TEST_CASE("token cache: a file whose ids are damaged is made again") {
  const Cache cache;
  const TemporaryFolder folder;
  const fs::path text = folder.path() / "text.txt";
  write(text, "abcab");
  tokenise(text, TokenizerKind::characters);
  const fs::path file = cache.files()[0];
  const std::string good = read(file);
  write(file, with_byte(good, good.size() - 2, '\x02'));  // an id of the vocabulary, but another one
  CHECK(all(*tokenise(text, TokenizerKind::characters).tokens) == Ids{0, 1, 2, 0, 1});
  CHECK(read(file) == good);
}

TEST_CASE("token cache: a text may have the longest name there is") {
  const Cache cache;
  const TemporaryFolder folder;
  std::string accents = "x";
  while (accents.size() < 250) accents += "é";
  for (const std::string& name : {std::string(255, 'x'), accents}) {
    write(folder.path() / name, "abc");
    CHECK(all(*tokenise(folder.path() / name, TokenizerKind::characters).tokens) == Ids{0, 1, 2});
  }
  for (const auto& file : fs::directory_iterator(cache.path()))
    CHECK(find_invalid_utf8(file.path().filename().string()) == std::string::npos);
}

TEST_CASE("token cache: a run's own tokenizer shares the file of its training and another one has its own") {
  const Cache cache;
  const TemporaryFolder folder;
  const fs::path text = folder.path() / "text.txt";
  write(text, "abcab");
  const auto own = tokenise(text, TokenizerKind::characters).tokenizer;
  CHECK(all(*tokenise(text, TokenizerKind::characters, own).tokens) == Ids{0, 1, 2, 0, 1});
  CHECK(cache.files().size() == 1);
  const std::shared_ptr<const Tokenizer> other = make_tokenizer(TokenizerKind::characters, "xcba");
  CHECK(all(*tokenise(text, TokenizerKind::characters, other).tokens) == Ids{0, 1, 2, 0, 1});
  CHECK(cache.files().size() == 2);
  CHECK(all(*tokenise(text, TokenizerKind::bytes).tokens) == Ids{97, 98, 99, 97, 98});
  CHECK(all(*tokenise(text, TokenizerKind::words).tokens) == Ids{0});
  CHECK(cache.files().size() == 4);
  CHECK(tokenise(text, TokenizerKind::characters).tokenizer->vocab_size() == 3);
}

TEST_CASE("token cache: a long text in parts and several files give the ids of the whole") {
  const Cache cache;
  const TemporaryFolder folder;
  onestep::Generator g(6);
  std::string text;
  const size_t parts = onestep::testing::in_ci() ? 3 : 2;  // of 2 MiB, the last one not whole
  while (text.size() < ((2 * parts - 1) << 20))
    text += g.u32() % 7 == 0 ? "\n " : to_utf8(g.u32() % 4 == 0 ? 0x3042 + g.u32() % 80 : 'a' + g.u32() % 26);
  write(folder.path() / "all.txt", text);
  size_t cut = text.size() / 3;
  while ((static_cast<unsigned char>(text[cut]) & 0xC0u) == 0x80u) ++cut;
  write(folder.path() / "1.txt", text.substr(0, cut));
  write(folder.path() / "2.txt", "");
  write(folder.path() / "3.txt", text.substr(cut));
  std::vector<std::string> files;
  for (const char* name : {"1.txt", "2.txt", "3.txt"}) files.push_back((folder.path() / name).string());
  const auto bpe = std::make_shared<BpeTokenizer>(read_bpe_folder(ONESTEP_SOURCE_DIR "/tests/goldens/bpe"));
  for (const TokenizerKind kind : values_of<TokenizerKind>()) {
    CAPTURE(name_of(kind));
    const TokenisedText whole = tokenise(folder.path() / "all.txt", kind, kind == TokenizerKind::bpe ? bpe : nullptr);
    CHECK(all(*whole.tokens) == whole.tokenizer->encode(text));
    CHECK(tokenise_files(files, kind, kind == TokenizerKind::bpe ? bpe : nullptr, true).tokens->hash() == whole.tokens->hash());
  }
}

TEST_CASE("token cache: refusals name the file and the place and leave nothing behind") {
  const Cache cache;
  const TemporaryFolder folder;
  const std::string a = (folder.path() / "a.txt").string(), b = (folder.path() / "b.txt").string();
  write(a, "abc");
  write(b, "ab\xff");
  const auto both = [&](const std::shared_ptr<const Tokenizer>& tokenizer) {
    return refusal([&] { tokenise_files({a, b}, TokenizerKind::characters, tokenizer, true); });
  };
  CHECK(both(nullptr).starts_with(b + ": offset 2: "));
  CHECK(both(make_tokenizer(TokenizerKind::characters, "ac")).starts_with(a + ": offset 1: "));
  CHECK(refusal([&] {
          tokenise(folder.path() / "none", TokenizerKind::characters);
        }).starts_with((folder.path() / "none").string() + ": "));
  CHECK(cache.files().empty());
  for (const auto& entry : fs::directory_iterator(cache.path())) CHECK(entry.path().extension() == ".lock");

  tokenise(a, TokenizerKind::characters);
  write(cache.files()[0], "not a token file");
  CHECK(refusal([&] { tokenise(a, TokenizerKind::characters); }).starts_with(cache.files()[0].string() + ": 16 bytes "));
}

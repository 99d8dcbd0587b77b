// Malicious vocabularies: tokenizer.json, vocab.json and merges.txt. tokenizer_test.cpp and bpe_test.cpp pin the sentences.
#include <doctest/doctest.h>

#include "tests/train/hostile.h"
#include "train/text/bpe_files.h"
#include "train/text/tokenizer.h"

using namespace onestep;
using namespace onestep::testing;

namespace {

using Cases = std::vector<Hostile>;

/// All bytes, ab (256), abc (257) and a special token (258).
const std::string& good_vocab() {
  static const std::string text = [] {
    train::BpeVocabulary vocabulary = train::bpe_bytes();
    vocabulary.tokens.insert(vocabulary.tokens.end(), {"ab", "abc", "<|x|>"});
    vocabulary.specials = {258};
    return train::vocab_json_text(vocabulary);
  }();
  return text;
}

const std::string kMerges = "#version: 0.2\na b\nab c\n";

std::string bpe_json(const std::string& vocab, const std::string& merges) {
  return R"({"kind": "bpe", "vocab": )" + vocab + R"(, "merges": )" + merges + "}";
}

void expect_tokenizer_refused(const Cases& files) { expect_refused(files, train::load_tokenizer); }

/// Two files in a folder; the messages continue after vocab.json or merges.txt.
void expect_folder_refused(const char* culprit, const Cases& files) {
  const TemporaryFolder folder;
  for (const Hostile& file : files) {
    write(folder.path() / "vocab.json", good_vocab());
    write(folder.path() / "merges.txt", kMerges);
    write(folder.path() / culprit, file.bytes);
    const MemoryLimit limit(memory_for(file.bytes.size()));
    CAPTURE(file.bytes.substr(0, 300));
    expect_refusal(refusal<IoError>([&] { train::read_bpe_folder(folder.path().string()); }),
                   (folder.path() / culprit).string(), file);
  }
}

}  // namespace

TEST_CASE("hostile tokenizer: the unmodified files are accepted") {
  const TemporaryFolder folder;
  write(folder.path() / "vocab.json", good_vocab());
  write(folder.path() / "merges.txt", kMerges);
  write(folder.path() / "tokenizer.json", bpe_json(good_vocab(), R"(["a b", "ab c"])"));
  CHECK(refusal<IoError>([&] { train::read_bpe_folder(folder.path().string()); }) == "");
  CHECK(refusal<IoError>([&] { train::load_tokenizer((folder.path() / "tokenizer.json").string()); }) == "");
}

TEST_CASE("hostile tokenizer: tokenizer.json of kind char and word and byte") {
  Cases cases = hostile_json();
  for (const char* root : {"[]", "null", "1", "\"char\"", "true"}) cases.push_back({root, ": "});
  cases.push_back({"", ": "});
  for (const char* kind : {"null", "1", "[]", "{}", "true", "\"\"", "\"Char\"", "\"sentencepiece\""})
    cases.push_back({std::string(R"({"kind": )") + kind + "}", ": /kind: "});
  for (const char* list : {"null", "1", "{}", "\"abc\"", "true"})
    cases.push_back({std::string(R"({"kind": "char", "vocabulary": )") + list + "}", ": /vocabulary: "});
  for (const char* symbol : {"null", "1", "[]", "{}", "true"})
    cases.push_back({std::string(R"({"kind": "char", "vocabulary": ["a", )") + symbol + "]}", ": /vocabulary/1: "});
  cases.push_back({"{}", ": /kind: "});
  cases.push_back({R"({"kind": "byte", "vocabulary": []})", ": /vocabulary: "});
  cases.push_back({R"({"kind": "char"})", ": /vocabulary: "});
  cases.push_back({R"({"kind": "char", "vocabulary": ["a"], "merges": []})", ": /merges: "});
  for (const char* symbols : {R"([])", R"([""])", R"(["ab"])", R"(["b", "a"])", R"(["a", "a"])"})
    cases.push_back({std::string(R"({"kind": "char", "vocabulary": )") + symbols + "}", ": /vocabulary: "});
  for (const char* symbols : {R"([])", R"(["a b"])", R"([" "])", R"(["a,"])", R"(["a", "a"])"})
    cases.push_back({std::string(R"({"kind": "word", "vocabulary": )") + symbols + "}", ": /vocabulary: "});
  expect_tokenizer_refused(cases);
}

TEST_CASE("hostile tokenizer: tokenizer.json of kind bpe") {
  Cases cases;
  for (const char* vocab : {"null", "1", "[]", "{}", "\"a\"", "true"}) cases.push_back({bpe_json(vocab, "[]"), ": /vocab: "});
  for (const char* merges : {"null", "1", "{}", "\"a b\"", "true"})
    cases.push_back({bpe_json(good_vocab(), merges), ": /merges: "});
  for (const char* merge : {"null", "1", "{}", "true", R"(["a","b"])"})  // newer files of transformers have lists
    cases.push_back({bpe_json(good_vocab(), std::string("[") + merge + "]"), ": /merges/0: "});
  for (const char* merge : {"", " ", "a", "a ", " b", "a  b", "a b c", "a\\tb"})
    cases.push_back({bpe_json(good_vocab(), std::string("[\"") + merge + "\"]"), ": /merges/0: "});
  cases.push_back({R"({"kind": "bpe", "merges": []})", ": /vocab: "});
  cases.push_back({R"({"kind": "bpe", "vocab": {}})", ": /merges: "});
  cases.push_back({bpe_json(good_vocab(), R"(["a b", "a b"])"), ": /merges/1: "});
  cases.push_back({bpe_json(good_vocab(), R"(["a b", "b c"])"), ": /merges/1: "});
  expect_tokenizer_refused(cases);
}

TEST_CASE("hostile tokenizer: vocab.json") {
  Cases cases = hostile_json();
  cases.push_back({"", ": "});
  for (const char* root : {"[]", "{}", "null", "1", "\"a\"", "true"}) cases.push_back({root, ": "});
  for (const std::string id : {"-1", "259", "4294967295", "4294967296", "18446744073709551615", "-9223372036854775808", "256.0",
                               "2.5e2", "null", "true", "\"256\"", "[256]", "{}"})  // the fourth is 0 in 32 bits
    cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"ab\": " + id), ": /ab: "});
  cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"ab\": 257"), ": /abc: "});
  cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"ab\": 255"), ": /\u0143: "});
  cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"\": 256"), ": "});
  cases.push_back({replaced(good_vocab(), "\"a\": ", "\"\u0144\": "), ": "});
  cases.push_back({replaced(good_vocab(), "\"abc\"", "\"ab\""), ": /ab: "});
  cases.push_back({replaced(good_vocab(), "<|x|>", "word"), ": /word: "});
  for (const char* symbol : {"<>", "<x", "x>", "\u0144", "\u3042"})
    cases.push_back({replaced(good_vocab(), "<|x|>", symbol), std::string(": /") + symbol + ": "});
  cases.push_back({std::string((16 << 20) + 1, ' '), ": "});
  std::string many = "{";
  for (int i = 0; i < 400'000; ++i) many.append("\"").append(std::to_string(i)).append("\":[],");
  cases.push_back({many + "\"\":0}", ": "});
  expect_folder_refused("vocab.json", cases);
}

TEST_CASE("hostile tokenizer: merges.txt") {
  Cases cases;
  for (const char* line : {"", " ", "a", "a ", " b", "a  b", "a b c", "a b ", " a b"})
    cases.push_back({std::string("#version: 0.2\na b\n") + line + "\nab c\n", ":3: "});
  for (const std::string& line : {std::string("#version: 0.2"),  // a version only in the first line
                                  std::string("a b"), std::string("a c"), std::string("q zz"), std::string("ab\r c"),
                                  std::string("a\tb"), std::string("a \0b", 4),
                                  std::string("\xef\xbb\xbf"
                                              "a b"),
                                  std::string("\xff b"), std::string("a \xc3"), std::string("\xed\xa0\x80 b"),
                                  std::string("\xc0\xaf b"), std::string(1 << 20, 'x'), "a " + std::string(1 << 20, 'x')})
    cases.push_back({"a b\n" + line + "\nab c\n", ":2: "});
  cases.push_back({std::string((16 << 20) + 1, '\n'), ": "});
  expect_folder_refused("merges.txt", cases);
  // Found only after the last merge, and named by the vocabulary's key.
  const TemporaryFolder folder;
  write(folder.path() / "vocab.json", good_vocab());
  for (const std::string& merges : {std::string(), std::string("#version: 0.2\n"), std::string("ab c\n")}) {
    write(folder.path() / "merges.txt", merges);
    const std::string error = refusal<IoError>([&] { train::read_bpe_folder(folder.path().string()); });
    CHECK(contains(error, "vocab.json: /ab"));
  }
}

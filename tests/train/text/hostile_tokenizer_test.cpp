// Vocabularies that somebody made to do harm: tokenizer.json, vocab.json and merges.txt.
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

/// Two files in a folder; the messages go on after vocab.json or merges.txt.
void expect_folder_refused(const char* culprit, const Cases& files) {
  const TemporaryFolder folder;
  for (const Hostile& file : files) {
    write(folder.path() / "vocab.json", good_vocab());
    write(folder.path() / "merges.txt", kMerges);
    write(folder.path() / culprit, file.bytes);
    const MemoryLimit limit(memory_for(file.bytes.size()));
    CAPTURE(file.bytes.substr(0, 300));
    CHECK(refusal<IoError>([&] { train::read_bpe_folder(folder.path().string()); }) ==
          (folder.path() / culprit).string() + file.message);
  }
}

}  // namespace

TEST_CASE("hostile tokenizer: the frames of these tests are good") {
  const TemporaryFolder folder;
  write(folder.path() / "vocab.json", good_vocab());
  write(folder.path() / "merges.txt", kMerges);
  write(folder.path() / "tokenizer.json", bpe_json(good_vocab(), R"(["a b", "ab c"])"));
  CHECK(refusal<IoError>([&] { train::read_bpe_folder(folder.path().string()); }) == "");
  CHECK(refusal<IoError>([&] { train::load_tokenizer((folder.path() / "tokenizer.json").string()); }) == "");
}

TEST_CASE("hostile tokenizer: tokenizer.json of kind char and word and byte") {
  Cases cases = hostile_json();
  for (const char* root : {"[]", "null", "1", "\"char\"", "true"})
    cases.push_back({root, std::string(": must be an object: got ") + root});
  cases.push_back({"", ": is empty"});
  for (const char* kind : {"null", "1", "[]", "{}", "true", "\"\"", "\"Char\"", "\"sentencepiece\""})
    cases.push_back(
        {std::string(R"({"kind": )") + kind + "}", std::string(": /kind: must be char, byte, word or bpe: got ") + kind});
  for (const char* list : {"null", "1", "{}", "\"abc\"", "true"})
    cases.push_back({std::string(R"({"kind": "char", "vocabulary": )") + list + "}",
                     std::string(": /vocabulary: must be a list of strings: got ") + list});
  for (const char* symbol : {"null", "1", "[]", "{}", "true"})
    cases.push_back({std::string(R"({"kind": "char", "vocabulary": ["a", )") + symbol + "]}",
                     std::string(": /vocabulary/1: must be a string: got ") + symbol});
  const std::string v = ": /vocabulary: tokenizer: ";
  cases.insert(cases.end(), {{"{}", ": /kind: missing: must be char, byte, word or bpe"},
                             {R"({"kind": "byte", "vocabulary": []})", ": /vocabulary: unknown key"},
                             {R"({"kind": "char"})", ": /vocabulary: missing: must be a list of strings"},
                             {R"({"kind": "char", "vocabulary": ["a"], "merges": []})", ": /merges: unknown key"},
                             {R"({"kind": "char", "vocabulary": []})", v + "the vocabulary is empty (the text holds no char)"},
                             {R"({"kind": "word", "vocabulary": []})", v + "the vocabulary is empty (the text holds no word)"},
                             {R"({"kind": "char", "vocabulary": [""]})", v + R"(symbol 0 is not one char: "")"},
                             {R"({"kind": "char", "vocabulary": ["ab"]})", v + R"(symbol 0 is not one char: "ab")"},
                             {R"({"kind": "char", "vocabulary": ["b", "a"]})",
                              v + R"(the vocabulary is not sorted, or names a symbol twice: "a" at 1)"},
                             {R"({"kind": "char", "vocabulary": ["a", "a"]})",
                              v + R"(the vocabulary is not sorted, or names a symbol twice: "a" at 1)"},
                             {R"({"kind": "word", "vocabulary": ["a b"]})", v + R"(symbol 0 is not one word: "a b")"},
                             {R"({"kind": "word", "vocabulary": [" "]})", v + R"(symbol 0 is not one word: " ")"},
                             {R"({"kind": "word", "vocabulary": ["a,"]})", v + R"(symbol 0 is not one word: "a,")"},
                             {R"({"kind": "word", "vocabulary": ["a", "a"]})",
                              v + R"(the vocabulary is not sorted, or names a symbol twice: "a" at 1)"}});
  expect_tokenizer_refused(cases);
}

TEST_CASE("hostile tokenizer: tokenizer.json of kind bpe") {
  Cases cases;
  for (const char* vocab : {"null", "1", "[]", "{}", "\"a\"", "true"})
    cases.push_back({bpe_json(vocab, "[]"), std::string(": /vocab: must be an object of symbols and ids: got ") + vocab});
  for (const char* merges : {"null", "1", "{}", "\"a b\"", "true"})
    cases.push_back({bpe_json(good_vocab(), merges), std::string(": /merges: must be a list of strings: got ") + merges});
  for (const char* merge : {"null", "1", "{}", "true", R"(["a","b"])"})  // a list is what newer files of others have
    cases.push_back(
        {bpe_json(good_vocab(), std::string("[") + merge + "]"), std::string(": /merges/0: must be a string: got ") + merge});
  for (const char* merge : {"", " ", "a", "a ", " b", "a  b", "a b c", "a\\tb"})
    cases.push_back({bpe_json(good_vocab(), std::string("[\"") + merge + "\"]"),
                     std::string(": /merges/0: must be two symbols with one space between them: got \"") + merge + '"'});
  cases.push_back({R"({"kind": "bpe", "merges": []})", ": /vocab: missing (a tokenizer of kind bpe has vocab and merges)"});
  cases.push_back({R"({"kind": "bpe", "vocab": {}})", ": /merges: missing (a tokenizer of kind bpe has vocab and merges)"});
  cases.push_back({bpe_json(good_vocab(), R"(["a b", "a b"])"), R"(: /merges/1: merges "a b" a second time)"});
  cases.push_back({bpe_json(good_vocab(), R"(["a b", "b c"])"), R"(: /merges/1: symbol "bc" is not in the vocabulary)"});
  expect_tokenizer_refused(cases);
}

TEST_CASE("hostile tokenizer: vocab.json") {
  Cases cases = hostile_json();
  cases.push_back({"", ": is empty"});
  for (const char* root : {"[]", "{}", "null", "1", "\"a\"", "true"})
    cases.push_back({root, std::string(": must be an object of symbols and ids: got ") + root});
  for (const auto& [id, shown] :
       std::vector<std::pair<std::string, std::string>>{{"-1", "-1"},
                                                        {"259", "259"},
                                                        {"4294967295", "4294967295"},
                                                        {"4294967296", "4294967296"},  // 0 as 32 bits
                                                        {"18446744073709551615", "18446744073709551615"},
                                                        {"-9223372036854775808", "-9223372036854775808"},
                                                        {"256.0", "256.0"},
                                                        {"2.5e2", "250.0"},
                                                        {"null", "null"},
                                                        {"true", "true"},
                                                        {"\"256\"", "\"256\""},
                                                        {"[256]", "[256]"},
                                                        {"{}", "{}"}})
    cases.push_back(
        {replaced(good_vocab(), "\"ab\": 256", "\"ab\": " + id), ": /ab: must be an id from 0 to 258: got " + shown});
  cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"ab\": 257"), ": /abc: id 257 is that of \"ab\", too"});
  cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"ab\": 255"), ": /\u0143: id 255 is that of \"ab\", too"});
  cases.push_back({replaced(good_vocab(), "\"ab\": 256", "\"\": 256"), ": the symbol of id 256 is empty"});
  cases.push_back({replaced(good_vocab(), "\"a\": ", "\"\u0144\": "), ": has no symbol \"a\", which is byte 97"});
  cases.push_back({replaced(good_vocab(), "\"abc\"", "\"ab\""), ": /ab: duplicate key"});
  cases.push_back({replaced(good_vocab(), "<|x|>", "word"),
                   ": /word: is neither a byte, nor the result of a merge, nor a special token (<...>)"});
  for (const char* symbol : {"<>", "<x", "x>", "\u0144", "\u3042"})
    cases.push_back(
        {replaced(good_vocab(), "<|x|>", symbol),
         std::string(": /") + symbol + ": is neither a byte, nor the result of a merge, nor a special token (<...>)"});
  cases.push_back({std::string((16 << 20) + 1, ' '), ": too large: 16777217 bytes, at most 16 MiB are read"});
  std::string many = "{";
  for (int i = 0; i < 400'000; ++i) many.append("\"").append(std::to_string(i)).append("\":[],");
  cases.push_back({many + "\"\":0}", ": too many values: they would take more than 48 MiB of memory"});
  expect_folder_refused("vocab.json", cases);
}

TEST_CASE("hostile tokenizer: merges.txt") {
  Cases cases;
  for (const char* line : {"", " ", "a", "a ", " b", "a  b", "a b c", "a b ", " a b"})
    cases.push_back({std::string("#version: 0.2\na b\n") + line + "\nab c\n",
                     std::string(":3: must be two symbols with one space between them: got \"") + line + '"'});
  const auto at_two = [&](const std::string& line, const std::string& message) {
    cases.push_back({"a b\n" + line + "\nab c\n", ":2: " + message});
  };
  at_two("#version: 0.2", R"(symbol "#version:" is not in the vocabulary)");  // only the first line is one
  at_two("a b", R"(merges "a b" a second time)");
  at_two("a c", R"(symbol "ac" is not in the vocabulary)");
  at_two("q zz", R"(symbol "zz" is not in the vocabulary)");
  at_two("ab\r c", R"(symbol "ab\u000d" is not in the vocabulary)");
  at_two("a\tb", R"(must be two symbols with one space between them: got "a\tb")");
  at_two(std::string("a \0b", 4), R"(symbol "\u0000b" is not in the vocabulary)");
  at_two(
      "\xef\xbb\xbf"
      "a b",
      "symbol \"\xef\xbb\xbf"
      "a\" is not in the vocabulary");
  at_two("\xff b", R"(not UTF-8: byte "\xff")");
  at_two("a \xc3", R"(not UTF-8: byte "\xc3")");
  at_two("\xed\xa0\x80 b", R"(not UTF-8: byte "\xed")");
  at_two("\xc0\xaf b", R"(not UTF-8: byte "\xc0")");
  at_two(std::string(1 << 20, 'x'), "must be two symbols with one space between them: got \"" + std::string(60, 'x') + "...\"");
  at_two("a " + std::string(1 << 20, 'x'), "symbol \"" + std::string(60, 'x') + "...\" is not in the vocabulary");
  cases.push_back({std::string((16 << 20) + 1, '\n'), ": too large: 16777217 bytes, at most 16 MiB are read"});
  expect_folder_refused("merges.txt", cases);
  // What only the end shows, with the vocabulary's key.
  const TemporaryFolder folder;
  write(folder.path() / "vocab.json", good_vocab());
  for (const std::string& merges : {std::string(), std::string("#version: 0.2\n"), std::string("ab c\n")}) {
    write(folder.path() / "merges.txt", merges);
    const std::string error = refusal<IoError>([&] { train::read_bpe_folder(folder.path().string()); });
    CHECK(error.find("vocab.json: /ab") != std::string::npos);
    CHECK(error.ends_with(": is neither a byte, nor the result of a merge, nor a special token (<...>)"));
  }
}

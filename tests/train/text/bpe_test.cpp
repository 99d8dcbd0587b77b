#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "base/enum_names.h"
#include "base/utf8.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"
#include "train/text/pretokenizer.h"

using namespace onestep::train;
using onestep::Generator;
using onestep::name_of;
using onestep::testing::refusal;
using Ids = std::vector<int64_t>;
namespace fs = std::filesystem;

namespace {

// The 256 bytes, then one token a merge (`left`, `right` as text), then the specials.
BpeVocabulary vocabulary_of(const std::vector<std::pair<std::string, std::string>>& merges,
                            const std::vector<std::string>& specials = {}) {
  BpeVocabulary out = bpe_bytes();
  for (const auto& [left, right] : merges) {
    if (std::find(out.tokens.begin(), out.tokens.end(), left + right) == out.tokens.end()) out.tokens.push_back(left + right);
  }
  const auto id = [&](const std::string& token) {
    return static_cast<int32_t>(std::find(out.tokens.begin(), out.tokens.end(), token) - out.tokens.begin());
  };
  for (const auto& [left, right] : merges) out.merges.push_back({id(left), id(right), id(left + right)});
  for (const std::string& special : specials) {
    out.specials.push_back(static_cast<int32_t>(out.tokens.size()));
    out.tokens.push_back(special);
  }
  return out;
}

std::string pieces(const BpeTokenizer& tokenizer, const std::string& text) {
  std::string out;
  for (const int64_t id : tokenizer.encode(text)) out.append("[").append(tokenizer.decode(Ids{id})).append("]");
  return out;
}

std::string words(std::string_view text, const std::vector<std::string>& specials = {}) {
  std::string out;
  for_each_word({text}, specials, [&](std::string_view word, int special) {
    out.append(special < 0 ? "[" : "{").append(word).append(special < 0 ? "]" : "}");
  });
  return out;
}

// As the paper has it: while there is a merge, find the first one of the list and make it wherever it can be made.
Ids naive_merges(const BpeVocabulary& vocabulary, const std::string& word) {
  Ids ids;
  for (const char c : word)
    ids.push_back(std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), std::string(1, c)) - vocabulary.tokens.begin());
  while (true) {
    const auto occurs = [&](const BpeMerge& merge) {
      for (size_t i = 0; i + 1 < ids.size(); ++i)
        if (ids[i] == merge.left && ids[i + 1] == merge.right) return true;
      return false;
    };
    const auto merge = std::find_if(vocabulary.merges.begin(), vocabulary.merges.end(), occurs);
    if (merge == vocabulary.merges.end()) return ids;
    Ids merged;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool here = i + 1 < ids.size() && ids[i] == merge->left && ids[i + 1] == merge->right;
      merged.push_back(here ? merge->result : ids[i]);
      i += here;
    }
    ids = merged;
  }
}

std::string random_text(Generator& g, int length) {
  static const std::vector<std::string> kParts = {"a",      "b", "ab",   " ",     "  ",   "\n",      "'s", "'",
                                                  "'re",    "é", "日本", "🙂",  "1",    "22",      ".",  "!?",
                                                  "\u00a0", "<", "<|x",  "<|x|>", "\xff", "\xe2\x82"};
  std::string text;
  for (int i = 0; i < length; ++i) text += kParts[g.u32() % kParts.size()];
  return text;
}

}  // namespace

TEST_CASE("bpe: words are those of GPT-2's pattern") {
  CHECK(words("Hello world's end") == "[Hello][ world]['s][ end]");
  CHECK(words("I'll don't we've they're I'd I'm IT'S") ==
        "[I]['ll][ don]['t][ we]['ve][ they]['re][ I]['d][ I]['m][ IT]['][S]");
  CHECK(words("a  b   c") == "[a][ ][ b][  ][ c]");
  CHECK(words("a \n b \n") == "[a][ \n][ b][ \n]");
  CHECK(words("x=3.14, (y)") == "[x][=][3][.][14][,][ (][y][)]");
  CHECK(words("日本 語²½Ⅷ٣") == "[日本][ 語][²½Ⅷ٣]");
  CHECK(words("e\u0301 🙂🙂") == "[e][\u0301][ 🙂🙂]");  // a combining mark is no letter
  CHECK(words("a\u00a0b\u3000 c\u0085d") == "[a][\u00a0][b][\u3000][ c][\u0085][d]");
  CHECK(words("a\u180e\ufeff\u001cb") == "[a][\u180e\ufeff\u001c][b]");  // none of these is White_Space
  CHECK(words("  ") == "[  ]");
  CHECK(words("") == "");
  CHECK(words("a \xff\xfe b\xe2\x82") == "[a][ ][\xff\xfe][ b][\xe2\x82]");
  CHECK(words("a <|x|> b<|x|>", {"<|x|>"}) == "[a][ ]{<|x|>}[ b]{<|x|>}");
  CHECK(words("<|x|<|x|><|x|>y", {"<|x|>", "<|x|>y"}) == "[<|][x][|]{<|x|>}{<|x|>y}");
}

TEST_CASE("bpe: merges in their order") {
  const BpeTokenizer tokenizer(vocabulary_of({{"l", "o"}, {"lo", "w"}, {"e", "r"}, {"a", "a"}}));
  CHECK(tokenizer.vocab_size() == 260);
  CHECK(tokenizer.kind() == TokenizerKind::bpe);
  CHECK(pieces(tokenizer, "lower lo") == "[low][er][ ][lo]");
  CHECK(pieces(tokenizer, "aaaaa") == "[aa][aa][a]");
  CHECK(tokenizer.encode("!~\u00a1 ") == Ids{0, 93, 126, 94, 220});  // U+00A1 is the bytes c2 a1
  CHECK(tokenizer.encode("").empty());
  // All pairs of one merge come before pairs that they make, even if these come earlier in the list.
  CHECK(pieces(BpeTokenizer(vocabulary_of({{"ab", "a"}, {"a", "b"}})), "abab") == "[ab][ab]");
}

TEST_CASE("bpe: as merging step by step") {
  Generator g(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::string> symbols = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 12; ++i) {
      const std::pair pair(symbols[g.u32() % symbols.size()], symbols[g.u32() % symbols.size()]);
      if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
      merges.push_back(pair);
      symbols.push_back(pair.first + pair.second);
    }
    if (trial % 2) std::reverse(merges.begin(), merges.end());  // no trainer writes such a list
    const BpeVocabulary vocabulary = vocabulary_of(merges);
    const BpeTokenizer tokenizer(vocabulary);
    for (int i = 0; i < 20; ++i) {
      std::string word;
      for (uint32_t length = g.u32() % 60 + 1; length > 0; --length) word += static_cast<char>('a' + g.u32() % 3);
      CAPTURE(word);
      CHECK(tokenizer.encode(word) == naive_merges(vocabulary, word));
    }
  }
}

TEST_CASE("bpe: any bytes come back") {
  const BpeTokenizer tokenizer(vocabulary_of({{"a", "b"}, {"\xe6", "\x97"}, {" ", "a"}, {"\xff", "\xff"}}, {"<|x|>"}));
  Generator g(5);
  for (int trial = 0; trial < 500; ++trial) {
    std::string bytes = random_text(g, 20);
    for (int i = 0; i < trial % 40; ++i) bytes += static_cast<char>(g.u32());
    CHECK(tokenizer.decode(tokenizer.encode(bytes)) == bytes);
  }
  CHECK(refusal([&] { tokenizer.decode(Ids{261}); }).starts_with("decode: "));
}

TEST_CASE("tokenizers: a text in parts gets the ids of the whole") {
  Generator g(8);
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  const std::string symbols = "a b ab . ! ? ' < | x > 1 2 s r e é 日 本 🙂 \n \u00a0 日本 bs are be're ab's b-a -";
  tokenizers.push_back(make_tokenizer(TokenizerKind::characters, symbols));
  tokenizers.push_back(make_tokenizer(TokenizerKind::bytes, ""));
  tokenizers.push_back(std::make_unique<BpeTokenizer>(
      vocabulary_of({{" ", "a"}, {"'", "r"}, {"'r", "e"}, {"'", "s"}, {"<", "|"}, {" ", " "}}, {"<|x|>", "<|x|>a"})));
  for (int trial = 0; trial < 400; ++trial) {
    std::string any = random_text(g, 30), text;
    for (const char c : any)
      if (static_cast<unsigned char>(c) < 0x80) text += c;
    for (const auto& tokenizer : tokenizers) {
      CAPTURE(name_of(tokenizer->kind()));
      const std::string& whole = tokenizer->kind() == TokenizerKind::characters ? text : any;
      Ids ids;
      size_t begin = 0, end = 0;
      while (begin < whole.size() || end < whole.size()) {
        end = std::min(whole.size(), end + 1 + g.u32() % 5);
        begin += tokenizer->encode_part(
            {std::string_view(whole).substr(begin, end - begin), end == whole.size(), static_cast<int64_t>(begin)}, ids);
      }
      CHECK(ids == tokenizer->encode(whole));
    }
  }
}

TEST_CASE("bpe: a long word takes no quadratic time or memory, and one above 1 MiB is cut") {
  if (onestep::testing::skips_without_ci()) return;
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::string run = "a"; run.size() < 64; run += run) merges.emplace_back(run, run);
  merges.emplace_back(" ", " ");
  const BpeTokenizer tokenizer(vocabulary_of(merges));
  const std::string letters(3 << 20, 'a'), spaces(3 << 20, ' ');
  CHECK(tokenizer.encode(letters).size() == (3 << 20) / 64);
  CHECK(tokenizer.encode(spaces).size() == 3 << 19);
  CHECK(tokenizer.encode(spaces + "a").size() == (3 << 19) + 2);  // the last space goes with the letter, one is left over
  std::string accents = "x";
  for (int i = 0; i < (1 << 20); ++i) accents += "é";
  CHECK(words(accents).substr(kLongestWord - 2, 8) == "é][éé");  // at a code point
  CHECK(tokenizer.decode(tokenizer.encode(accents)) == accents);
}

TEST_CASE("bpe: what is written is read back") {
  const BpeVocabulary vocabulary = vocabulary_of({{"a", "b"}, {"\n", " "}, {"ab", "\xff"}}, {"<|endoftext|>", "<é ä>"});
  const onestep::testing::TemporaryFolder folder;
  for (const auto& [vocab, merges] : {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")}) {
    fs::create_directory(folder.path() / vocab);
    std::ofstream(folder.path() / vocab / vocab) << vocab_json_text(vocabulary);
    std::ofstream(folder.path() / vocab / merges) << merges_text(vocabulary);
    CHECK(read_bpe_folder((folder.path() / vocab).string()) == vocabulary);
  }
  CHECK(merges_text(vocabulary) == "#version: 0.2\na b\nĊ Ġ\nab ÿ\n");
  const BpeTokenizer tokenizer(vocabulary);
  const auto again = parse_tokenizer(tokenizer.to_json(), "tokenizer.json");
  CHECK(again->to_json() == tokenizer.to_json());
  CHECK(again->encode("ab\xff <é ä>\n a") == tokenizer.encode("ab\xff <é ä>\n a"));
}

TEST_CASE("bpe: an invalid vocabulary is refused with file and place") {
  const onestep::testing::TemporaryFolder folder;
  const std::string vocab = (folder.path() / "vocab.json").string(), merges = (folder.path() / "merges.txt").string();
  const std::string good = vocab_json_text(vocabulary_of({{"a", "b"}, {"ab", "c"}}, {"<|x|>"}));
  const auto read = [&](const std::string& json, const std::string& lines) {
    std::ofstream(vocab, std::ios::binary) << json;
    std::ofstream(merges, std::ios::binary) << lines;
    return refusal([&] { read_bpe_folder(folder.path().string()); });
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK(read(good, "#version: 0.2\na b\nab c\n") == "");
  CHECK(read(good, "a b\nab c") == "");  // without the first line and the last line end
  CHECK(read(good, "#version: 0.2\r\na b\r\nab c\r\n") == "");

  CHECK(refusal([&] { read_bpe_folder(vocab); }) == vocab + ": is not a folder with vocab.json and merges.txt");
  CHECK(read("", "").starts_with(vocab + ": "));
  CHECK(read("[]", "") == vocab + ": must be an object of symbols and ids: got []");
  CHECK(read("{}", "").starts_with(vocab + ": "));
  CHECK(read(R"({"a": 1})", "") == vocab + ": /a: must be an id from 0 to 0: got 1");
  CHECK(read(R"({"a": -1})", "").starts_with(vocab + ": /a: "));
  CHECK(read(R"({"a": 0.5})", "").starts_with(vocab + ": /a: "));
  CHECK(read(R"({"a": 0, "b": 0})", "") == vocab + ": /b: id 0 is that of \"a\", too");
  CHECK(read(R"({"": 0})", "") == vocab + ": the symbol of id 0 is empty");
  CHECK(read(R"({"a": 0})", "") == vocab + ": has no symbol \"Ā\", which is byte 0");
  CHECK(read(good.substr(0, 100), "").starts_with(vocab + ":1:101: "));
  CHECK(read(with("\"abc\"", "\"ab\""), "a b\n").starts_with(vocab + ": /ab: "));
  CHECK(read(with("<|x|>", "word"), "a b\nab c\n") ==
        vocab + ": /word: is neither a byte, nor the result of a merge, nor a special token (<...>)");
  CHECK(read(good, "ab c\n").starts_with(vocab + ": /ab: "));
  CHECK(read(with("\"ab\"", "\"<ab>\""), "<ab> c\n") == merges + ":1: symbol \"<ab>c\" is not in the vocabulary");

  CHECK(read(good, "#version: 0.2\na b\nab d\n").starts_with(merges + ":3: symbol \"abd\" "));
  CHECK(read(good, "a b\nabc\n") == merges + ":2: must be two symbols with one space between them: got \"abc\"");
  CHECK(read(good, "a b\n\nab c\n").starts_with(merges + ":2: "));
  CHECK(read(good, "a b c\n").starts_with(merges + ":1: "));
  CHECK(read(good, "a\r b\nab c\n").starts_with(merges + ":1: symbol \"a\\u000d\" "));
  CHECK(read(good, "a b\nab c\na b\n") == merges + ":3: merges \"a b\" a second time");
  CHECK(read(good, "a b\n\xff c\n") == merges + ":2: not UTF-8: byte \"\\xff\"");
  fs::remove(merges);
  CHECK(refusal([&] { read_bpe_folder(folder.path().string()); }).starts_with(merges + ": "));
  fs::remove(vocab);
  CHECK(refusal([&] { read_bpe_folder(folder.path().string()); }) ==
        folder.path().string() + ": has neither vocab.json and merges.txt nor encoder.json and vocab.bpe");

  const auto parse = [&](const std::string& json) { return refusal([&] { parse_tokenizer(json, "t.json"); }); };
  CHECK(parse(R"({"kind": "bpe", "vocab": {"a": 0}})") ==
        "t.json: /merges: missing (a tokenizer of kind bpe has vocab and merges)");
  CHECK(parse(R"({"kind": "bpe", "vocab": {"a": 0}, "merges": []})").starts_with("t.json: /vocab: "));
  CHECK(parse(R"({"kind": "bpe", "vocab": )" + good + R"(, "merges": {}})").starts_with("t.json: /merges: "));
  CHECK(parse(R"({"kind": "bpe", "vocab": )" + good + R"(, "merges": [3]})").starts_with("t.json: /merges/0: "));
  CHECK(parse(R"({"kind": "bpe", "vocab": )" + good + R"(, "merges": ["a b", "q r"]})").starts_with("t.json: /merges/1: "));
  CHECK(parse(R"({"kind": "bpe", "vocab": {}, "merges": [], "x": 1})").starts_with("t.json: /x: "));
}

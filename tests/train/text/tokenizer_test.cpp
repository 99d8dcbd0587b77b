#include "train/text/tokenizer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "base/error.h"
#include "base/utf8.h"
#include "tests/support.h"
#include "train/text/stream_decoder.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;
using Ids = std::vector<int64_t>;

TEST_CASE("utf8: a stream gives back whole characters however they arrive") {
  const std::string text = "a\u00e9\u20ac\U0001f600z", bad =
                                                           "\xff"
                                                           "b\xe2\x82"
                                                           "c\xed\xa0\x80\xf0\x9f";
  const std::string mark = "\xef\xbf\xbd";
  for (size_t piece = 1; piece <= 5; ++piece) {
    Utf8Stream stream, broken;
    std::string got, replaced;
    for (size_t at = 0; at < text.size(); at += piece) {
      got += stream.add(std::string_view(text).substr(at, piece));
      CHECK(find_invalid_utf8(got) == std::string::npos);
    }
    CHECK(got == text);
    CHECK(stream.finish() == "");
    for (size_t at = 0; at < bad.size(); at += piece) replaced += broken.add(std::string_view(bad).substr(at, piece));
    CHECK(replaced == mark + "b" + mark + mark + "c" + mark + mark + mark);
    CHECK(broken.finish() == mark + mark);
    CHECK(broken.finish() == "");
  }
}

TEST_CASE("utf8: every code point is one sequence and nothing else is") {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    const std::string symbol = to_utf8(code);
    const bool valid = code < 0xD800 || code > 0xDFFF;  // surrogates are not characters
    if (utf8_length(symbol, 0) != (valid ? symbol.size() : 0)) FAIL(code);
    if (valid && code_point(symbol) != code) FAIL(code);
    if (symbol.size() > 1 && utf8_length(symbol.substr(0, symbol.size() - 1), 0) != 0) FAIL(code);
  }
  CHECK(find_invalid_utf8("aé\xc0\x80") == 3);        // overlong NUL
  CHECK(find_invalid_utf8("\xe0\x80\xaf") == 0);      // overlong /
  CHECK(find_invalid_utf8("\xf0\x80\x80\xaf") == 0);  // overlong /
  CHECK(find_invalid_utf8("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(find_invalid_utf8("ab\x80") == 2);            // a tail without a head
  CHECK(find_invalid_utf8("\xff") == 0);
  CHECK(find_invalid_utf8("æ—¥本 😀\n") == std::string::npos);
}

TEST_CASE("char tokenizer: code points in order") {
  const auto tokenizer = make_tokenizer(TokenizerKind::characters, "hé\n日😀éa");
  CHECK(tokenizer->kind() == TokenizerKind::characters);
  CHECK(tokenizer->vocab_size() == 6);
  CHECK(tokenizer->encode("a\né日😀h") == Ids{1, 0, 3, 4, 5, 2});
  CHECK(tokenizer->decode(Ids{1, 0, 3, 4, 5, 2}) == "a\né日😀h");
  CHECK(tokenizer->encode("").empty());
  CHECK(tokenizer->decode(Ids{}) == "");
}

TEST_CASE("char tokenizer: any text comes back") {
  onestep::Generator g(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::string text;
    for (int i = 0; i < 50; ++i) {
      const uint32_t code = g.u32() % (trial % 2 ? 0x110000 : 0x180);
      text += to_utf8(code >= 0xD800 && code <= 0xDFFF ? 'x' : code);
    }
    const auto tokenizer = make_tokenizer(TokenizerKind::characters, text);
    CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  }
}

TEST_CASE("byte tokenizer: any bytes come back") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const auto tokenizer = make_tokenizer(TokenizerKind::bytes, "only these");
  CHECK(tokenizer->vocab_size() == 256);
  CHECK(tokenizer->encode("A\xff") == Ids{65, 255});
  CHECK(tokenizer->decode(tokenizer->encode(bytes)) == bytes);
}

TEST_CASE("word tokenizer: words and punctuation") {
  const auto words = [](const std::string& text) {
    const auto tokenizer = make_tokenizer(TokenizerKind::words, text);
    std::string out;
    for (const int64_t id : tokenizer->encode(text)) out.append("<").append(tokenizer->decode(Ids{id})).append(">");
    return out;
  };
  CHECK(words("Your journey starts with one step") == "<Your><journey><starts><with><one><step>");
  CHECK(words("Hello, world. Is this-- a test?") == "<Hello><,><world><.><Is><this><-><-><a><test><?>");
  CHECK(words("  don't\tstop\n(well-known) 'x'  ") == "<don't><stop><(><well-known><)><'><x><'>");
  CHECK(words("naïve café… 3.14") == "<naïve><café…><3><.><14>");
  CHECK(words("a'b'-c") == "<a'b><'><-><c>");
  CHECK(make_tokenizer(TokenizerKind::words, "b A a B")->encode("A B a b") == Ids{0, 1, 2, 3});  // case counts
}

TEST_CASE("word tokenizer: decoded ids are encoded to the same ids") {
  const auto tokenizer = make_tokenizer(TokenizerKind::words, "don't , . ! ? ( ) [ ] ' - -- a b well-known é");
  CHECK(tokenizer->decode(tokenizer->encode("a (b, é)! don't-")) == "a (b, é)! don't -");
  onestep::Generator g(7);
  for (int trial = 0; trial < 500; ++trial) {
    Ids ids(12);
    for (int64_t& id : ids) id = g.u32() % static_cast<uint32_t>(tokenizer->vocab_size());
    CAPTURE(tokenizer->decode(ids));
    CHECK(tokenizer->encode(tokenizer->decode(ids)) == ids);
  }
}

TEST_CASE("tokenizers: refusals name the symbol and the place") {
  const auto chars = make_tokenizer(TokenizerKind::characters, "abc"), words = make_tokenizer(TokenizerKind::words, "one two");
  CHECK(refusal([&] { chars->encode("abé"); }).starts_with("encode: offset 2: char \"é\" (U+00E9) "));
  CHECK(refusal([&] { chars->encode("\nab"); }) == "encode: offset 0: char \"\\n\" (U+000A) is not in the vocabulary of 3");
  CHECK(refusal([&] { words->encode("one  three"); }).starts_with("encode: offset 5: word \"three\" "));
  CHECK(refusal([&] { chars->encode("a\xff"); }) ==
        "encode: offset 1: not UTF-8: byte \"\\xff\" (data.tokenizer = byte or bpe takes any bytes)");
  CHECK(refusal([&] { make_tokenizer(TokenizerKind::words, "a\xff"); }).starts_with("encode: offset 1: "));
  CHECK(refusal([&] { chars->decode(Ids{0, 3}); }) == "decode: token id must be from 0 to 2: got 3");
  CHECK(refusal([&] { chars->decode(Ids{-1}); }).starts_with("decode: "));
  CHECK(refusal([&] { make_tokenizer(TokenizerKind::bytes, "")->decode(Ids{256}); }).starts_with("decode: "));
  CHECK(refusal([&] { make_tokenizer(TokenizerKind::characters, ""); }) ==
        "tokenizer: the vocabulary is empty (the text holds no char)");
  CHECK(refusal([&] { make_tokenizer(TokenizerKind::words, " \n"); }).starts_with("tokenizer: "));
  CHECK(refusal([&] { make_tokenizer(TokenizerKind::bpe, "a"); }) == "tokenizer: must be char, byte or word: got \"bpe\"");
}

TEST_CASE("tokenizer.json: the largest vocabulary that is made is read back and a larger one is not made") {
  if (testing::skips_without_ci()) return;
  std::string text;
  const int64_t most = ((int64_t{48} << 20) - 4096) / (64 + 6);
  for (int64_t i = 100'000; i < 100'000 + most; ++i) text += std::to_string(i) + ' ';
  const auto tokenizer = make_tokenizer(TokenizerKind::words, text);
  CHECK(tokenizer->vocab_size() == most);
  CHECK(parse_tokenizer(tokenizer->to_json(), "tokenizer.json")->vocab_size() == most);
  CHECK(refusal([&] { make_tokenizer(TokenizerKind::words, text + "one two"); }) ==
        "tokenizer: a vocabulary of " + std::to_string(most + 2) +
            " words would take more than 48 MiB of memory to be read back (data.tokenizer = bpe or byte takes any text)");
}

TEST_CASE("tokenizer.json: what is written is read back and anything else is refused") {
  const std::string path = std::filesystem::temp_directory_path() / ("onestep_tokenizer_" + std::to_string(getpid()));
  const auto load = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return load_tokenizer(path);
  };
  const std::string text = "Don't \"quote\" \\ é日😀\t\n\x01\x7f";
  for (const TokenizerKind kind : {TokenizerKind::characters, TokenizerKind::words, TokenizerKind::bytes}) {
    const auto saved = make_tokenizer(kind, text), loaded = load(saved->to_json());
    CHECK(loaded->kind() == kind);
    CHECK(loaded->vocab_size() == saved->vocab_size());
    CHECK(loaded->encode(text) == saved->encode(text));
    CHECK(loaded->to_json() == saved->to_json());
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", ": "},
      {"[]", ": "},
      {"{}", ": /kind: "},
      {R"({"kind": "none"})", R"(: /kind: must be char, byte, word or bpe: got "none")"},
      {R"({"kind": "bpe"})", ": /vocab: "},
      {R"({"kind": 3})", ": /kind: "},
      {R"({"kind": "char"})", ": /vocabulary: missing: must be a list of strings"},
      {R"({"kind": "byte", "vocabulary": ["a"]})", ": /vocabulary: unknown key"},
      {R"({"kind": "char", "vocabulary": ["a"], "size": 1})", ": /size: "},
      {R"({"kind": "char", "vocabulary": "abc"})", R"(: /vocabulary: must be a list of strings: got "abc")"},
      {R"({"kind": "char", "vocabulary": ["a", 1]})", ": /vocabulary/1: must be a string: got 1"},
      {R"({"kind": "char", "vocabulary": []})", ": /vocabulary: "},
      {R"({"kind": "char", "vocabulary": ["a", "bc"]})", R"(: /vocabulary: tokenizer: symbol 1 is not one char: "bc")"},
      {R"({"kind": "char", "vocabulary": ["", "b"]})", ": /vocabulary: "},
      {R"({"kind": "word", "vocabulary": ["a b"]})", ": /vocabulary: "},
      {R"({"kind": "word", "vocabulary": [" "]})", ": /vocabulary: "},
      {R"({"kind": "char", "vocabulary": ["b", "a"]})",
       R"(: /vocabulary: tokenizer: the vocabulary is not sorted, or names a symbol twice: "a" at 1)"},
      {R"({"kind": "char", "vocabulary": ["a", "a"]})", ": /vocabulary: "},
      {R"({"kind": "char", "kind": "char", "vocabulary": ["a"]})", ": /kind: "},
      {R"({"kind": "char", "vocabulary": ["a")", ":1:36: "},
  };
  for (const auto& refused : bad) {
    CAPTURE(refused.first);
    onestep::testing::expect_refusal(refusal([&] { load(refused.first); }), path + refused.second);
  }
  std::filesystem::remove(path);
}

TEST_CASE("token text: pieces add up to the text, and an id without a word is shown as its number") {
  const auto pieces = [](const Tokenizer* tokenizer, const Ids& ids) {
    StreamDecoder text(tokenizer);
    std::vector<std::string> all;
    for (const int64_t id : ids) all.push_back(text.add(id));
    all.push_back(text.finish());
    return all;
  };
  using Pieces = std::vector<std::string>;
  CHECK(pieces(nullptr, {7, 0, 58}) == Pieces{"7", " 0", " 58", ""});
  const auto words = make_tokenizer(TokenizerKind::words, "a b ,");  // ids: , a b
  CHECK(pieces(words.get(), {1, 2, 0, 1, 58, 1}) == Pieces{"a", " b", ",", " a", "<58>", "a", ""});
  const auto bytes = make_tokenizer(TokenizerKind::bytes, "a");
  CHECK(pieces(bytes.get(), {0xC3, 0xA9, 'x', 256, 0xC3}) == Pieces{"", "é", "x", "<256>", "", "\uFFFD"});
}

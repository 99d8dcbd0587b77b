#include "train/text/bpe_trainer.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"
#include "train/text/pretokenizer.h"

using namespace onestep::train;
using onestep::Generator;

namespace {

BpeVocabulary learn(const std::string& text, int64_t vocab_size) {
  BpeTrainer trainer;
  trainer.add({text});
  return trainer.train(vocab_size);
}

std::string merges(const BpeVocabulary& vocabulary) { return merges_text(vocabulary).substr(14); }

// Counts all pairs again for every merge.
BpeVocabulary naive(const std::string& text, size_t vocab_size) {
  BpeVocabulary out = bpe_bytes();
  std::vector<std::vector<int32_t>> words;
  for_each_word({text}, {"<|endoftext|>"}, [&](std::string_view word, int special) {
    if (special >= 0) return;
    words.emplace_back();
    for (const char c : word) {
      int32_t id = 0;
      while (out.tokens[static_cast<size_t>(id)][0] != c) ++id;
      words.back().push_back(id);
    }
  });
  while (out.tokens.size() + 1 < vocab_size) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words)
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    int64_t most = 1;
    std::pair<int32_t, int32_t> best;
    std::string token;
    for (const auto& [pair, count] : counts) {  // sorted: of equals the first one is kept
      const std::string text_of = out.tokens[static_cast<size_t>(pair.first)] + out.tokens[static_cast<size_t>(pair.second)];
      const bool known = std::find(out.tokens.begin(), out.tokens.end(), text_of) != out.tokens.end();
      if (count > most && !known) most = count, best = pair, token = text_of;
    }
    if (most < 2) break;
    const auto result = static_cast<int32_t>(out.tokens.size());
    out.tokens.push_back(token);
    out.merges.push_back({best.first, best.second, result});
    for (auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != best.first || word[i + 1] != best.second) continue;
        word[i] = result;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  out.specials.push_back(static_cast<int32_t>(out.tokens.size()));
  out.tokens.emplace_back("<|endoftext|>");
  return out;
}

}  // namespace

TEST_CASE("bpe trainer: the most frequent pair first and of equals the smallest ids") {
  CHECK(merges(learn("abab abab cd", 300)) == "a b\nab ab\n");  // cd and the spaces occur once
  CHECK(merges(learn("xyxy", 300)) == "x y\n");
  CHECK(merges(learn("cdcdabab", 300)) == "a b\nc d\n");
  CHECK(merges(learn("aaaa aaaa", 300)) == "a a\naa aa\n");
  const BpeVocabulary vocabulary = learn("low low low lower", 259);
  CHECK(merges(vocabulary) == "l o\nlo w\n");
  CHECK(vocabulary.tokens.size() == 259);
  CHECK(vocabulary.tokens.back() == "<|endoftext|>");
  CHECK(vocabulary.specials == std::vector<int32_t>{258});
}

TEST_CASE("bpe trainer: as counting again for every merge") {
  Generator g(2);
  for (int trial = 0; trial < 60; ++trial) {
    std::string text;
    for (int i = 0; i < 400; ++i) {
      const uint32_t letter = g.u32() % static_cast<uint32_t>(3 + trial % 5);
      text += letter == 0 ? " " : letter == 6 ? "é" : std::string(1, static_cast<char>('a' + letter));
      if (g.u32() % 50 == 0) text += "<|endoftext|>";
    }
    const BpeVocabulary fast = learn(text, 320);
    CHECK(fast == naive(text, 320));
    CHECK(fast.merges.size() > 20);
  }
}

TEST_CASE("bpe trainer: a text in parts teaches the same as the whole") {
  Generator g(4);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "ab c'd\xff\n"[g.u32() % 8];
  BpeTrainer trainer;
  size_t begin = 0, end = 0;
  while (begin < text.size()) {
    end = std::min(text.size(), end + 1 + g.u32() % 9);
    begin += trainer.add({std::string_view(text).substr(begin, end - begin), end == text.size(), 0});
  }
  CHECK(trainer.train(300) == learn(text, 300));
}

TEST_CASE("bpe trainer: its vocabulary is one that can be read, and special tokens are not learnt from") {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "to be or not to be<|endoftext|>";
  const BpeVocabulary vocabulary = learn(text, 400);
  CHECK(merges_text(vocabulary).find('|') == std::string::npos);
  const auto again = parse_tokenizer(bpe_to_json(vocabulary), "t.json");
  CHECK(again->vocab_size() == static_cast<int64_t>(vocabulary.tokens.size()));
  CHECK(again->encode("to be<|endoftext|>") == BpeTokenizer(vocabulary).encode("to be<|endoftext|>"));
}

TEST_CASE("bpe trainer: the vocabulary holds at least all bytes") {
  CHECK_THROWS_WITH_AS(learn("a", 256),
                       "tokenizer train: vocab-size must be from 257 (the bytes and 1 special token) to 16777216: got 256",
                       onestep::ConfigError);
  CHECK(learn("abababab", 257).merges.empty());
  CHECK(learn("", 1000).tokens.size() == 257);
}

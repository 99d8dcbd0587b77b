#include "base/glob.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using onestep::matches_glob;

namespace {

/// By its definition: a * takes any number of characters.
bool naive_match(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    for (size_t n = 0; n <= text.size(); ++n)
      if (naive_match(pattern.substr(1), text.substr(n))) return true;
    return false;
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && naive_match(pattern.substr(1), text.substr(1));
}

}  // namespace

TEST_CASE("glob: names by their pattern") {
  CHECK(matches_glob("transformer.h.0.*", "transformer.h.0.attn.c_attn.weight"));
  CHECK_FALSE(matches_glob("transformer.h.0.*", "transformer.h.10.attn.c_attn.weight"));
  CHECK(matches_glob("*.c_attn.*", "transformer.h.0.attn.c_attn.weight"));
  CHECK(matches_glob("tok_emb*", "tok_emb.weight"));
  CHECK_FALSE(matches_glob("tok_emb", "tok_emb.weight"));
  CHECK_FALSE(matches_glob("", "a"));
  std::mt19937 random(1);
  int matched = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string pattern, text;
    for (size_t n = random() % 7; n > 0; --n) pattern += "ab*?"[random() % 4];
    for (size_t n = random() % 7; n > 0; --n) text += "ab"[random() % 2];
    CAPTURE(pattern);
    CAPTURE(text);
    matched += matches_glob(pattern, text);
    CHECK(matches_glob(pattern, text) == naive_match(pattern, text));
  }
  CHECK(matched > 1000);
}

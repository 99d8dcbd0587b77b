#include "train/text/pretokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "train/text/pattern.h"

namespace onestep::train {
namespace {

constexpr const char* kPattern = R"('(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^)" ONESTEP_WHITE_SPACE R"(\p{L}\p{N}]+)"
                                 "|[" ONESTEP_WHITE_SPACE "]+(?![^" ONESTEP_WHITE_SPACE "])|[" ONESTEP_WHITE_SPACE "]+";

// Bytes of the run at the start of `text` that are not part of any code point.
size_t invalid_length(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && end < kLongestWord && utf8_length(text, end) == 0) ++end;
  return end;
}

struct Special {
  size_t at, length;
  int index;
};

// The first special token from `at` on; the end of the text if there is none.
Special next_special(std::string_view text, size_t at, const std::vector<std::string>& specials) {
  Special best{text.size(), 0, -1};
  if (specials.empty()) return best;
  for (size_t place = text.find('<', at); place != std::string_view::npos && best.index < 0;
       place = text.find('<', place + 1)) {
    for (size_t i = 0; i < specials.size(); ++i) {
      if (specials[i].size() > best.length && text.substr(place).starts_with(specials[i]))
        best = {place, specials[i].size(), static_cast<int>(i)};
    }
  }
  return best;
}

}  // namespace

size_t word_length_gpt2(std::string_view text) {
  thread_local const Pattern pattern(kPattern);
  size_t size = text.size();
  const auto cut_at = [&](size_t place) {  // the last code point boundary up to `place`
    while ((static_cast<unsigned char>(text[place]) & 0xC0u) == 0x80u) --place;
    return place;
  };
  if (size > kLongestWord + 8) size = cut_at(kLongestWord + 8);         // what follows does not count
  const size_t length = pattern.find(text.substr(0, size), 0)->second;  // it matches anywhere
  return length > kLongestWord ? cut_at(kLongestWord) : length;
}

size_t for_each_word(const TextPart& part, const std::vector<std::string>& specials, const VisitWord& visit) {
  const std::string_view text = part.text;
  // A word is certain once all that decides on its end is there: a code point, a contraction's letters, a special token.
  size_t margin = 4;
  for (const std::string& special : specials) margin = std::max(margin, special.size() + 1);
  const size_t certain = part.last ? text.size() : text.size() - std::min(text.size(), margin);
  size_t at = 0;
  while (at < certain) {
    const Special special = next_special(text, at, specials);
    const std::string_view stretch = text.substr(0, special.at);
    size_t valid = at;  // UTF-8 up to here
    while (at < special.at) {
      const std::string_view rest = stretch.substr(at);
      if (at == valid) valid += std::min(find_invalid_utf8(rest), rest.size());
      const size_t length = at < valid ? word_length_gpt2(rest.substr(0, valid - at)) : invalid_length(rest);
      if (at + length > certain) return at;
      visit(rest.substr(0, length), -1);
      at += length;
      valid = std::max(valid, at);
    }
    if (special.index < 0 || at + special.length > certain) return at;
    visit(text.substr(at, special.length), special.index);
    at += special.length;
  }
  return at;
}

}  // namespace onestep::train

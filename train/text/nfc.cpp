#include "train/text/nfc.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/utf8.h"
#include "train/text/nfc_table.h"

namespace onestep::train {
namespace {

// Syllables of Hangul are computed. [The Unicode Standard, 3.12]
constexpr uint32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11A7;
constexpr uint32_t kVowels = 21, kTrailings = 28, kSyllableCount = 19 * kVowels * kTrailings;

int combining_class(uint32_t code) {
  const auto* const after = std::upper_bound(std::begin(nfc::kClasses), std::end(nfc::kClasses), code,
                                             [](uint32_t c, const nfc::CombiningClass& range) { return c < range.first; });
  return after != std::begin(nfc::kClasses) && code <= after[-1].last ? after[-1].value : 0;
}

template <size_t n>
const nfc::Decomposition* find(const nfc::Decomposition (&table)[n], uint32_t code) {
  const auto* const found = std::lower_bound(std::begin(table), std::end(table), code,
                                             [](const nfc::Decomposition& row, uint32_t c) { return row.code < c; });
  return found != std::end(table) && found->code == code ? found : nullptr;
}

/// Appends the canonical decomposition of a character.
void decompose(uint32_t code, std::vector<uint32_t>& out) {
  if (code - kSyllables < kSyllableCount) {
    const uint32_t index = code - kSyllables, trailing = index % kTrailings;
    out.push_back(kLeading + index / (kVowels * kTrailings));
    out.push_back(kVowel + index / kTrailings % kVowels);
    if (trailing > 0) out.push_back(kTrailing + trailing);
    return;
  }
  const nfc::Decomposition* row = find(nfc::kComposites, code);
  if (row == nullptr) row = find(nfc::kDecomposed, code);
  if (row == nullptr) {
    out.push_back(code);
    return;
  }
  decompose(row->first, out);
  if (row->second != 0) decompose(row->second, out);
}

/// The character that two make, or 0.
uint32_t composed(uint32_t first, uint32_t second) {
  if (first - kLeading < 19 && second - kVowel < kVowels)
    return kSyllables + ((first - kLeading) * kVowels + second - kVowel) * kTrailings;
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailings == 0 && second - kTrailing - 1 < kTrailings - 1)
    return first + second - kTrailing;
  static const std::unordered_map<uint64_t, uint32_t> pairs = [] {
    std::unordered_map<uint64_t, uint32_t> all;
    for (const nfc::Decomposition& row : nfc::kComposites) all.emplace(uint64_t{row.first} << 32 | row.second, row.code);
    return all;
  }();
  const auto found = pairs.find(uint64_t{first} << 32 | second);
  return found == pairs.end() ? 0 : found->second;
}

/// Marks after one starter in the order of their classes.
void order_marks(std::vector<uint32_t>& codes) {
  for (size_t i = 0; i < codes.size();) {
    if (combining_class(codes[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < codes.size() && combining_class(codes[end]) > 0) ++end;
    std::stable_sort(codes.begin() + static_cast<std::ptrdiff_t>(i), codes.begin() + static_cast<std::ptrdiff_t>(end),
                     [](uint32_t a, uint32_t b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

/// Puts together what belongs together: each character with the last starter, unless one of its class or above is between.
void compose(std::vector<uint32_t>& codes) {
  size_t kept = 0, starter = codes.size();
  int last_class = -1;  // of the characters kept since the starter
  for (const uint32_t code : codes) {
    const int value = combining_class(code);
    const bool blocked = starter == codes.size() || (last_class >= 0 && last_class >= value);
    const uint32_t whole = blocked ? 0 : composed(codes[starter], code);
    if (whole != 0) {
      codes[starter] = whole;
      continue;
    }
    if (value == 0) starter = kept;
    last_class = value == 0 ? -1 : value;
    codes[kept++] = code;
  }
  codes.resize(kept);
}

}  // namespace

std::string to_nfc(std::string_view text) {
  // Below U+0300 nothing combines: the first byte of what follows is 0xCC.
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; }))
    return std::string(text);
  std::vector<uint32_t> codes;
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text, at);
    decompose(code_point(text.substr(at, length)), codes);
  }
  order_marks(codes);
  compose(codes);
  std::string out;
  for (const uint32_t code : codes) out += to_utf8(code);
  return out;
}

}  // namespace onestep::train

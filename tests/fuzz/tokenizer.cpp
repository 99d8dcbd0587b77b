// Encoding any bytes with every kind of tokenizer, whole and in parts, and decoding them and any ids.
#include "train/text/tokenizer.h"

#include <cstring>

#include "tests/fuzz/input.h"
#include "tests/paths.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"

using namespace onestep;

namespace {

/// The ids of a text that comes in parts of `step` bytes.
std::vector<int64_t> in_parts(const train::Tokenizer& tokenizer, std::string_view text, size_t step) {
  std::vector<int64_t> ids;
  size_t at = 0, end = 0;
  while (end < text.size()) {
    end = std::min(end + step, text.size());
    at += tokenizer.encode_part({text.substr(at, end - at), end == text.size(), static_cast<int64_t>(at)}, ids);
    fuzz::require(at <= end, "no more is taken than was given");
  }
  return ids;
}

void check_text(const train::Tokenizer& tokenizer, std::string_view text, size_t step) {
  const bool takes_bytes = tokenizer.kind() == train::TokenizerKind::bytes || tokenizer.kind() == train::TokenizerKind::bpe;
  try {
    const std::vector<int64_t> ids = tokenizer.encode(text);
    if (tokenizer.kind() != train::TokenizerKind::words) fuzz::require(tokenizer.decode(ids) == text, "the text comes back");
    fuzz::require(in_parts(tokenizer, text, step) == ids, "parts have the ids of the whole");
  } catch (const train::EncodeError& error) {
    fuzz::require(!takes_bytes && error.offset >= 0 && error.offset < static_cast<int64_t>(text.size()),
                  "only a char or word is refused, and its place is in the text");
  }
}

void check_ids(const train::Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<int64_t> ids(bytes.size() / 2);
  for (size_t i = 0; i < ids.size(); ++i) {
    int16_t id = 0;
    std::memcpy(&id, bytes.data() + 2 * i, sizeof id);
    ids[i] = id;
  }
  const bool valid = std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id >= 0 && id < tokenizer.vocab_size(); });
  try {
    tokenizer.decode(ids);
    fuzz::require(valid, "ids that are none are refused");
  } catch (const ConfigError&) {
    fuzz::require(!valid, "ids of the vocabulary are taken");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const train::ByteTokenizer byte;
  static const train::BpeTokenizer bpe(train::read_bpe_folder(ONESTEP_SOURCE_DIR "/tests/goldens/bpe"));
  static const auto symbols = train::make_tokenizer(train::TokenizerKind::characters,
                                                    "abc \n'-.\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                    words = train::make_tokenizer(train::TokenizerKind::words, "it's a well-known \xc3\xa9 . , 12 '");
  if (size < 1) return 0;
  const train::Tokenizer* const all[] = {&byte, &bpe, symbols.get(), words.get()};
  const train::Tokenizer& tokenizer = *all[data[0] % 4];
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  check_text(tokenizer, text, 1 + data[0] / 4);
  check_ids(tokenizer, text);
  return 0;
}

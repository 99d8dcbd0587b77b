// vocab.json and merges.txt, separated by a NUL byte; a text without one is a tokenizer.json. Refused with IoError, or a
// tokenizer that comes back from what it writes and whose bytes come back from their ids.
#include "train/text/bpe_files.h"

#include "base/error.h"
#include "tests/fuzz/input.h"
#include "train/text/bpe_tokenizer.h"

using namespace onestep;

namespace {

void check_tokenizer(const train::Tokenizer& tokenizer) {
  const std::string json = tokenizer.to_json();
  fuzz::require(train::parse_tokenizer(json, "again")->to_json() == json, "the tokenizer comes back");
  if (tokenizer.kind() != train::TokenizerKind::bpe) return;
  const std::string text = "The <b> it's \xff\xc3\xa9 12  34<|endoftext|>";
  std::vector<int64_t> ids;
  try {
    ids = tokenizer.encode(text);
  } catch (const ConfigError&) {
    return;  // PCRE2 gave up on an expression of a published model's file
  }
  for (const int64_t id : ids) fuzz::require(id >= 0 && id < tokenizer.vocab_size(), "ids are in the vocabulary");
  const bool keeps_texts = dynamic_cast<const train::BpeTokenizer*>(&tokenizer) != nullptr;  // others normalize them
  fuzz::require(tokenizer.decode(ids) == text || !keeps_texts, "the text comes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFolder folder("vocab.json", "merges.txt");
  const std::string_view text = fuzz::text_of(data, size);
  try {
    if (text.find('\0') == text.npos) {
      check_tokenizer(*train::parse_tokenizer(text, "input"));
    } else {
      folder.fill(text);
      check_tokenizer(train::BpeTokenizer(train::read_bpe_folder(folder.path().string())));
    }
  } catch (const IoError&) {
  }
  return 0;
}

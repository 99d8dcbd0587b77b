// Token files: as they are, and with the hashes of header and tokenizer put right. Refused with IoError, or read to the end.
#include "train/data/token_file.h"

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "tests/fuzz/input.h"
#include "train/text/tokenizer.h"

using namespace onestep;

namespace {

constexpr size_t kHeader = 144, kTokenizerBytes = 32, kTokenizerHash = 40, kCheck = 136;  // offsets: docs/formats.md

void check_file(const fuzz::MemoryFile& file, std::string_view bytes) {
  file.fill(bytes);
  try {
    const train::TokenFile tokens(file.path());
    std::vector<int64_t> ids;
    tokens.read(0, tokens.size(), ids);
    fuzz::require(static_cast<int64_t>(ids.size()) == tokens.size(), "all ids are read");
    train::parse_tokenizer(tokens.tokenizer_json(), "input");
  } catch (const IoError&) {
  }
}

std::string with_right_hashes(std::string bytes) {
  uint64_t tokenizer_bytes = 0;
  std::memcpy(&tokenizer_bytes, bytes.data() + kTokenizerBytes, sizeof tokenizer_bytes);
  if (tokenizer_bytes <= bytes.size() - kHeader)
    bytes.replace(kTokenizerHash, 32, hash_of(std::string_view(bytes).substr(kHeader, tokenizer_bytes)));
  return bytes.replace(kCheck, 8, hash_of(std::string_view(bytes).substr(0, kCheck)).substr(0, 8));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFile file("tokens");
  const std::string_view bytes = fuzz::text_of(data, size);
  check_file(file, bytes);
  if (size >= kHeader) check_file(file, with_right_hashes(std::string(bytes)));
  return 0;
}

#pragma once
// Writing token files.
#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/write_file.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// Writes a token file whose ids come bit by bit.
class TokenFileWriter {
 public:
  TokenFileWriter(const std::string& path, const Tokenizer& tokenizer, std::string source);
  void write(std::span<const int64_t> ids);
  /// Completes the header and waits until the file is on the disk.
  void finish();

 private:
  OutputFile file_;
  Hasher hasher_;
  std::string source_, tokenizer_hash_;
  uint64_t count_ = 0, vocab_size_, tokenizer_bytes_;
};

}  // namespace onestep::train

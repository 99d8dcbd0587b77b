#pragma once
// Token ids as data reads them: from memory, or from a token file that is mapped into it.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onestep::train {

/// A sequence of token ids.
class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual int64_t size() const = 0;
  /// Appends the ids begin .. begin + count - 1, which must exist, to `out`. Throws IoError for a damaged file.
  virtual void read(int64_t begin, int64_t count, std::vector<int64_t>& out) const = 0;
  /// XXH3-128 of them as 32-bit integers.
  virtual std::string hash() const = 0;
};

/// Ids in memory.
class TokenList : public Tokens {
 public:
  explicit TokenList(std::span<const int64_t> ids) : ids_(ids.begin(), ids.end()) {}
  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  void read(int64_t begin, int64_t count, std::vector<int64_t>& out) const override;
  std::string hash() const override;

 private:
  std::vector<int32_t> ids_;
};

/// A token file (docs/formats.md), mapped.
class TokenFile : public Tokens {
 public:
  /// Throws IoError, in one sentence that names the file, for anything but what TokenFileWriter (token_file_writer.h) writes.
  explicit TokenFile(const std::string& path);
  ~TokenFile() override;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  int64_t size() const override { return count_; }
  void read(int64_t begin, int64_t count, std::vector<int64_t>& out) const override;
  std::string hash() const override { return tokens_hash_; }
  /// Whether the ids are those that the file was written with: reads all of them.
  bool is_whole() const;
  /// hash_of(tokenizer_json()).
  const std::string& tokenizer_hash() const { return tokenizer_hash_; }
  std::string_view tokenizer_json() const { return tokenizer_json_; }
  /// What the ids were made of: TextReader::stamp().
  const std::string& source() const { return source_; }

 private:
  void check_whole() const;
  void close();

  std::string path_, tokenizer_hash_, tokens_hash_, source_;
  std::string_view tokenizer_json_;
  int file_ = -1;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  const std::byte* ids_ = nullptr;
  int64_t count_ = 0, vocab_size_ = 0;
  bool wide_ = false;
};

}  // namespace onestep::train

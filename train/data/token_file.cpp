#include "train/data/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/hash.h"
#include "base/open_file.h"
#include "base/read_file.h"
#include "train/data/token_file_writer.h"

namespace onestep::train {
namespace {

static_assert(std::endian::native == std::endian::little, "token files hold little-endian numbers");

constexpr uint64_t kMaxVocab = 1 << 24, kMaxNarrow = 1 << 16, kMaxTokenizer = uint64_t{64} << 20, kAlignment = 64;

struct Header {
  char magic[8];
  uint32_t version, id_bytes;
  uint64_t count, vocab_size, tokenizer_bytes;
  char tokenizer_hash[32], tokens_hash[32], source[32];
  char check[8];
};
static_assert(sizeof(Header) == 144 && std::has_unique_object_representations_v<Header>);

std::string check_of(const Header& header) {
  return hash_of({reinterpret_cast<const char*>(&header), offsetof(Header, check)}).substr(0, sizeof header.check);
}

template <size_t n>
std::string text_of(const char (&field)[n]) {
  return {field, n};
}

template <size_t n>
void set(char (&field)[n], std::string_view text) {
  ONESTEP_CHECK(IoError, text.size() == n, "token file: a field of ", n, " bytes cannot hold ", text.size());
  std::memcpy(field, text.data(), n);
}

// Where the ids begin.
uint64_t ids_offset(uint64_t tokenizer_bytes) {
  return (sizeof(Header) + tokenizer_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The header of a file of `bytes` bytes, which can then be trusted.
Header checked_header(const std::string& path, const void* start, uint64_t bytes) {
  const char* hint = " (delete it: it will be rebuilt)";
  Header header{};
  ONESTEP_CHECK(IoError, bytes >= sizeof header, path, ": ", bytes, " bytes are too few for a token file", hint);
  std::memcpy(&header, start, sizeof header);
  ONESTEP_CHECK(IoError, text_of(header.magic) == "onestept", path, ": is not a token file", hint);
  ONESTEP_CHECK(IoError, header.version == 1, path, ": is a token file of version ", header.version, ", known is 1", hint);
  ONESTEP_CHECK(IoError, text_of(header.check) == check_of(header), path, ": its header is damaged", hint);
  ONESTEP_CHECK(IoError, header.vocab_size >= 1 && header.vocab_size <= kMaxVocab, path,
                ": its vocabulary size must be from 1 to ", kMaxVocab, ": got ", header.vocab_size, hint);
  ONESTEP_CHECK(IoError, header.id_bytes == (header.vocab_size <= kMaxNarrow ? 2 : 4), path, ": ", header.id_bytes,
                " bytes an id do not fit its vocabulary of ", header.vocab_size, hint);
  ONESTEP_CHECK(IoError, header.tokenizer_bytes <= kMaxTokenizer && ids_offset(header.tokenizer_bytes) <= bytes, path,
                ": its tokenizer of ", header.tokenizer_bytes, " bytes is not within its ", bytes, " bytes", hint);
  const uint64_t rest = bytes - ids_offset(header.tokenizer_bytes);
  ONESTEP_CHECK(IoError, rest % header.id_bytes == 0 && rest / header.id_bytes == header.count, path, ": holds ", rest,
                " bytes of ids, its header says ", header.count, " ids of ", header.id_bytes, " bytes", hint);
  return header;
}

}  // namespace

void TokenList::read(int64_t begin, int64_t count, std::vector<int64_t>& out) const {
  out.insert(out.end(), ids_.begin() + begin, ids_.begin() + begin + count);
}

std::string TokenList::hash() const {
  return hash_of({reinterpret_cast<const char*>(ids_.data()), ids_.size() * sizeof(int32_t)});
}

TokenFile::TokenFile(const std::string& path) : path_(path), map_bytes_(InputFile(path).size()) {
  ONESTEP_CHECK(IoError, map_bytes_ > 0, path, ": is empty (delete it: it will be rebuilt)");
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ONESTEP_CHECK(IoError, file_ >= 0, path, ": cannot be opened: ", error_reason(errno));
  map_ = ::mmap(nullptr, map_bytes_, PROT_READ, MAP_SHARED, file_, 0);
  const int error = errno;
  if (map_ == MAP_FAILED) ::close(file_);
  ONESTEP_CHECK(IoError, map_ != MAP_FAILED, path, ": cannot be mapped into memory: ", error_reason(error));
  try {
    check_whole();
    const Header header = checked_header(path, map_, map_bytes_);
    const auto* bytes = static_cast<const std::byte*>(map_);
    tokenizer_json_ = {reinterpret_cast<const char*>(bytes + sizeof header), static_cast<size_t>(header.tokenizer_bytes)};
    tokenizer_hash_ = text_of(header.tokenizer_hash);
    ONESTEP_CHECK(IoError, hash_of(tokenizer_json_) == tokenizer_hash_, path,
                  ": its tokenizer is damaged (delete it: it will be rebuilt)");
    tokens_hash_ = text_of(header.tokens_hash);
    source_ = text_of(header.source);
    ids_ = bytes + ids_offset(header.tokenizer_bytes);
    count_ = static_cast<int64_t>(header.count);
    vocab_size_ = static_cast<int64_t>(header.vocab_size);
    wide_ = header.id_bytes == 4;
  } catch (...) {
    close();
    throw;
  }
  ::madvise(map_, map_bytes_, MADV_RANDOM);  // windows lie anywhere: what is around them would be read for nothing
}

TokenFile::~TokenFile() { close(); }

void TokenFile::close() {
  ::munmap(map_, map_bytes_);
  ::close(file_);
}

/// Reading what a mapped file has lost would end the program by a signal.
void TokenFile::check_whole() const {
  struct stat now {};
  ONESTEP_CHECK(IoError, ::fstat(file_, &now) == 0 && static_cast<size_t>(now.st_size) >= map_bytes_, path_,
                ": has been cut short while in use (delete the file: it will be rebuilt)");
}

void TokenFile::read(int64_t begin, int64_t count, std::vector<int64_t>& out) const {
  check_whole();
  const auto append = [&](const auto* ids) {
    for (int64_t i = begin; i < begin + count; ++i) {
      const int64_t id = ids[i];
      ONESTEP_CHECK(IoError, id < vocab_size_, path_, ": token ", i, " is ", id, ", its vocabulary has ", vocab_size_,
                    " (delete the file: it will be rebuilt)");
      out.push_back(id);
    }
  };
  wide_ ? append(reinterpret_cast<const uint32_t*>(ids_)) : append(reinterpret_cast<const uint16_t*>(ids_));
}

bool TokenFile::is_whole() const {
  check_whole();
  ::madvise(map_, map_bytes_, MADV_SEQUENTIAL);
  Hasher hasher;
  const auto hash = [&](const auto* ids) {
    constexpr int64_t kAtOnce = 1 << 16;
    for (int64_t begin = 0; begin < count_; begin += kAtOnce) {
      const std::vector<int32_t> hashed(ids + begin, ids + std::min(begin + kAtOnce, count_));
      hasher.update(hashed.data(), hashed.size() * sizeof(int32_t));
    }
  };
  wide_ ? hash(reinterpret_cast<const uint32_t*>(ids_)) : hash(reinterpret_cast<const uint16_t*>(ids_));
  ::madvise(map_, map_bytes_, MADV_RANDOM);
  return hasher.hex() == tokens_hash_;
}

TokenFileWriter::TokenFileWriter(const std::string& path, const Tokenizer& tokenizer, std::string source)
    : file_(path), source_(std::move(source)), vocab_size_(static_cast<uint64_t>(tokenizer.vocab_size())) {
  const std::string json = tokenizer.to_json();
  tokenizer_hash_ = hash_of(json);
  tokenizer_bytes_ = json.size();
  std::string start(ids_offset(json.size()), '\0');  // a header of zeros: no token file until it is finished
  start.replace(sizeof(Header), json.size(), json);
  file_.write(start);
}

void TokenFileWriter::write(std::span<const int64_t> ids) {
  const auto put = [&]<class T>(T) {
    const std::vector<T> narrow(ids.begin(), ids.end());
    file_.write(narrow.data(), narrow.size() * sizeof(T));
  };
  const std::vector<int32_t> hashed(ids.begin(), ids.end());  // as TokenList does: the same ids have the same hash
  hasher_.update(hashed.data(), hashed.size() * sizeof(int32_t));
  vocab_size_ <= kMaxNarrow ? put(uint16_t{}) : put(uint32_t{});
  count_ += ids.size();
}

void TokenFileWriter::finish() {
  Header header{};
  set(header.magic, "onestept");
  header.version = 1;
  header.id_bytes = vocab_size_ <= kMaxNarrow ? 2 : 4;
  header.count = count_;
  header.vocab_size = vocab_size_;
  header.tokenizer_bytes = tokenizer_bytes_;
  set(header.tokenizer_hash, tokenizer_hash_);
  set(header.tokens_hash, hasher_.hex());
  set(header.source, source_);
  set(header.check, check_of(header));
  file_.overwrite(0, &header, sizeof header);
  file_.finish();
}

}  // namespace onestep::train

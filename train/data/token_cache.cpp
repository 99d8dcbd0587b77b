#include "train/data/token_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>

#include "base/hash.h"
#include "base/progress_bar.h"
#include "base/write_file.h"
#include "train/data/text_source.h"
#include "train/data/token_file_writer.h"
#include "train/text/chunked_reader.h"
#include "train/text/vocabulary_tokenizer.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;

// Held while a token file is made: of two runs that need the same one, the second waits for the first.
class Lock {
 public:
  explicit Lock(const fs::path& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

// `shakespeare-0123456789abcdef.tokens`: the same name for the same files, kind of tokenizer, and hash of the
// tokenizer ("": that of the text).
fs::path file_name(const std::vector<std::string>& files, TokenizerKind kind, const std::string& hash) {
  Hasher hasher;
  for (const std::string& file : files) {
    const std::string path = fs::absolute(file).lexically_normal().string();
    hasher.update(path.c_str(), path.size() + 1);
  }
  hasher.update(name_of(kind).data(), name_of(kind).size());
  hasher.update(hash.data(), hash.size());
  // The name of a text may be as long as a name can be: its first 100 bytes will do, without half a character.
  constexpr size_t kLongest = 100;
  std::string stem = fs::path(files[0]).stem().string();
  if (stem.size() > kLongest) {
    size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(stem[cut]) & 0xC0u) == 0x80u) --cut;
    stem.resize(cut);
  }
  return stem + "-" + hasher.hex().substr(0, 16) + ".tokens";
}

std::string what(const std::string& doing, const std::vector<std::string>& files) {
  return doing + " " + files[0] + (files.size() == 1 ? "" : " and " + std::to_string(files.size() - 1) + " more");
}

// Hands the text to `take` part by part, with progress; a symbol that has no token is refused with file and place.
void read_text(const std::vector<std::string>& files, const std::string& doing, bool quiet, const std::string& stamp,
               const TakePart& take) {
  TextReader reader(files);
  ONESTEP_CHECK(IoError, reader.stamp() == stamp, files[0], ": changed while it was read");
  ProgressBar progress(what(doing, files), reader.bytes(), "bytes", quiet);
  try {
    for_each_part([&](char* to, size_t count) { return reader.read(to, count); },
                  [&](const TextPart& part) {
                    progress.show(part.offset);
                    return take(part);
                  });
  } catch (const EncodeError& error) {
    fail<IoError>(reader.place(error.offset), ": ", error.problem);
  }
}

std::shared_ptr<const Tokenizer> vocabulary_of(const std::vector<std::string>& files, TokenizerKind kind, bool quiet,
                                               const std::string& stamp) {
  VocabularyBuilder builder(kind);
  read_text(files, "reading the vocabulary of", quiet, stamp, [&](const TextPart& part) { return builder.add(part); });
  try {
    return builder.finish();
  } catch (const ConfigError& error) {
    fail<ConfigError>(files[0], ": ", error.what());
  }
}

void write_tokens(const fs::path& path, const std::vector<std::string>& files, const Tokenizer& tokenizer, bool quiet,
                  const std::string& stamp) {
  const fs::path temporary = temporary_path(path);
  try {
    TokenFileWriter writer(temporary.string(), tokenizer, stamp);
    std::vector<int64_t> ids;
    read_text(files, "tokenising", quiet, stamp, [&](const TextPart& part) {
      ids.clear();
      const size_t taken = tokenizer.encode_part(part, ids);
      writer.write(ids);
      return taken;
    });
    writer.finish();
    fs::rename(temporary, path);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    if (dynamic_cast<const fs::filesystem_error*>(&error) != nullptr) fail<IoError>(error.what());
    throw;
  }
}

// The token file at `path` if it was made of this text by this tokenizer ("" is any) and is whole, else null.
std::shared_ptr<const TokenFile> find(const fs::path& path, const std::string& stamp, const std::string& tokenizer_hash) {
  if (!fs::exists(path)) return nullptr;
  auto file = std::make_shared<const TokenFile>(path.string());
  const bool same = file->source() == stamp && (tokenizer_hash.empty() || file->tokenizer_hash() == tokenizer_hash);
  return same && file->is_whole() ? file : nullptr;
}

}  // namespace

fs::path token_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string own = variable("ONESTEP_CACHE"); !own.empty()) return own;
  if (const std::string all = variable("XDG_CACHE_HOME"); !all.empty()) return fs::path(all) / "onestep";
  const std::string home = variable("HOME");
  ONESTEP_CHECK(ConfigError, !home.empty(), "token files: neither ONESTEP_CACHE nor XDG_CACHE_HOME nor HOME is set");
  return fs::path(home) / ".cache/onestep";
}

TokenisedText tokenise_files(const std::vector<std::string>& files, TokenizerKind kind,
                             std::shared_ptr<const Tokenizer> tokenizer, bool quiet) {
  const TextReader text(files);
  ONESTEP_CHECK(IoError, text.bytes() > 0, files[0], files.size() == 1 ? "" : " and all other files of the text", ": is empty");
  const std::string& stamp = text.stamp();
  if (!tokenizer && kind == TokenizerKind::bytes) tokenizer = std::make_shared<ByteTokenizer>();
  const std::string hash = tokenizer ? hash_of(tokenizer->to_json()) : "";
  const fs::path folder = token_cache_folder();
  // A text with its own vocabulary, and one with a given one, which may be the text's own after all.
  const fs::path own = folder / file_name(files, kind, ""), path = folder / file_name(files, kind, hash);
  make_folders(folder, " (token files are kept there; ONESTEP_CACHE names another folder)");
  const Lock lock(temporary_path(own).replace_extension(".lock"));
  auto tokens = find(own, stamp, hash);
  if (!tokens) tokens = find(path, stamp, hash);
  if (!tokens) {
    write_tokens(path, files, tokenizer ? *tokenizer : *(tokenizer = vocabulary_of(files, kind, quiet, stamp)), quiet, stamp);
    tokens = std::make_shared<const TokenFile>(path.string());
  }
  if (!tokenizer) tokenizer = parse_tokenizer(tokens->tokenizer_json(), path.string());
  return {tokens, tokenizer};
}

}  // namespace onestep::train

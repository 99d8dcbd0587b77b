#pragma once
// Whole files: reading those that nobody has vouched for, and writing so that a crash leaves the old or the new one.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace onestep {

/// A regular file open for reading. Throws IoError (`PATH: what is wrong`) for anything else: a missing or unreadable file, a
/// directory, a pipe or device (never waits on one).
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Its size when it was opened.
  uint64_t size() const { return size_; }
  /// Reads up to `count` bytes; 0 at the end of the file.
  size_t read_some(void* to, size_t count);
  /// Reads exactly `count` bytes; a file that ends before is an error.
  void read(void* to, size_t count);

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// What tells a file's contents from any other.
struct FileStamp {
  uint64_t bytes = 0;
  std::string hash;  ///< XXH3-128.
  bool operator==(const FileStamp&) const = default;
};

/// A regular file being written, which hashes its bytes on the way. Throws IoError, also for a directory, pipe or device.
class OutputFile {
 public:
  enum class Mode { replace, append };
  explicit OutputFile(const std::string& path, Mode mode = Mode::replace);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Replaces bytes that were written before; the stamp is still that of the former ones.
  void overwrite(uint64_t at, const void* bytes, size_t count);
  /// Waits until the bytes are on the disk.
  void sync();
  /// sync(), then close; the stamp of all bytes written here.
  FileStamp finish();

 private:
  std::string path_;
  int fd_;
  Hasher hasher_;
  uint64_t bytes_ = 0;
};

/// The bytes of a regular file of at most `max_bytes`. Throws IoError as InputFile does, and for a larger file.
std::string read_file(const std::string& path, int64_t max_bytes);

/// The stamp of a file, read in pieces.
FileStamp stamp_file(const std::string& path);

/// Replaces `path`, a regular file or nothing, by a file of this text, durably: whenever the machine stops, the old or the new
/// file is there, whole.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Reads up to `count` bytes; 0 at the end. Throws IoError, which calls the file `name`.
size_t read_some(int fd, const std::string& name, void* to, size_t count);

/// `.NAME.tmp` in the folder of `path`: where what will be called NAME is made.
std::filesystem::path temporary_path(const std::filesystem::path& path);

/// Files of one folder that replace those of the same names, and others, all together or, when one cannot be written (a disk
/// gets full), not at all: they are written into a folder `.new.tmp` in it and moved when all are there.
class NewFiles {
 public:
  /// Makes the folder if there is none.
  explicit NewFiles(std::filesystem::path folder);
  /// Deletes what was not moved.
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  /// Where to write what will be called `name`. Throws IoError for a name that is there and no regular file.
  std::filesystem::path add(const std::string& name);
  /// Writes all of a file.
  void add(const std::string& name, std::string_view text);
  /// Has `name` go if it is there. Throws IoError for one that is no regular file.
  void remove(const std::string& name);
  /// Deletes what is to go, then moves all to their place, in the order in which they were added, durably.
  void finish();

 private:
  std::filesystem::path folder_, temporary_;
  std::vector<std::string> names_, doomed_;
};

/// Makes a folder and those above it, where they are not there yet. Throws IoError.
void make_folders(const std::filesystem::path& folder);

/// Makes the entries of a folder (new files, renames) durable.
void sync_folder(const std::filesystem::path& folder);

/// Why a system call failed, in words: `no such file`, `the disk is full`, ...
std::string error_reason(int error);

}  // namespace onestep

#pragma once
// Writing files so that a crash leaves the old or the new one.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_stamp.h"
#include "base/hash.h"

namespace onestep {

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

/// Replaces `path`, a regular file or nothing, by a file of this text, durably: whenever the machine stops, the old or the new
/// file is there, whole. A symbolic link stays one: what it names is replaced.
void write_file(const std::filesystem::path& path, std::string_view text);

/// `.NAME.tmp` in the folder of `path`: where what will be called NAME is made.
std::filesystem::path temporary_path(const std::filesystem::path& path);

/// `path`, or what it names where it is a symbolic link, which there may be nothing at yet.
std::filesystem::path followed(const std::filesystem::path& path);

/// Throws IoError where `path` is a device, pipe or folder, which must not be replaced by a file.
void check_replaceable(const std::filesystem::path& path);

/// Renames, replacing what is there. Throws IoError.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes a folder in one that is there; false if it was there, too. Throws IoError.
bool make_folder(const std::filesystem::path& folder);

/// Makes a folder and those above it, where they are not there yet. Throws IoError, whose message ends with `hint`.
void make_folders(const std::filesystem::path& folder, std::string_view hint = {});

/// Makes the entries of a folder (new files, renames) durable.
void sync_folder(const std::filesystem::path& folder);

}  // namespace onestep

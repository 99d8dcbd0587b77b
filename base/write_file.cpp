#include "base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/open_file.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

/// Deletes a file at the end of its scope unless it was kept.
struct Unfinished {
  fs::path path;
  bool keep = false;
  ~Unfinished() {
    std::error_code ignored;
    if (!keep) fs::remove(path, ignored);
  }
};

}  // namespace

OutputFile::OutputFile(const std::string& path, Mode mode)
    : path_(path), fd_(open_regular(path, O_WRONLY | O_CREAT | (mode == Mode::append ? O_APPEND : O_TRUNC)).fd) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(const void* bytes, size_t count) {
  hasher_.update(bytes, count);
  bytes_ += count;
  for (const auto* place = static_cast<const char*>(bytes); count > 0;) {
    const ssize_t put = ::write(fd_, place, count);
    if (put < 0 && errno == EINTR) continue;
    ONESTEP_CHECK(IoError, put >= 0, path_, ": cannot be written: ", error_reason(errno));
    place += put;
    count -= static_cast<size_t>(put);
  }
}

void OutputFile::overwrite(uint64_t at, const void* bytes, size_t count) {
  const ssize_t put = ::pwrite(fd_, bytes, count, static_cast<off_t>(at));
  ONESTEP_CHECK(IoError, put == static_cast<ssize_t>(count), path_,
                ": cannot be written: ", error_reason(put < 0 ? errno : ENOSPC));
}

void OutputFile::sync() { ONESTEP_CHECK(IoError, ::fsync(fd_) == 0, path_, ": cannot be written: ", error_reason(errno)); }

FileStamp OutputFile::finish() {
  sync();
  const bool closed = ::close(std::exchange(fd_, -1)) == 0;
  ONESTEP_CHECK(IoError, closed, path_, ": cannot be written: ", error_reason(errno));
  return {bytes_, hasher_.hex()};
}

fs::path temporary_path(const fs::path& path) {
  std::string name = path.filename().string() + ".tmp";
  name.insert(0, 1, '.');
  return path.parent_path() / name;
}

void write_file(const fs::path& named, std::string_view text) {
  check_replaceable(named);
  const fs::path path = followed(named);
  const fs::path folder = path.parent_path();
  ONESTEP_CHECK(IoError, folder.empty() || ::access(folder.c_str(), F_OK) == 0, path.string(),
                ": cannot be written: there is no folder ", folder.string());
  Unfinished temporary{temporary_path(path)};
  OutputFile file(temporary.path.string());
  file.write(text);
  file.finish();
  rename_path(temporary.path, path);
  temporary.keep = true;
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

fs::path followed(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the system follows
  fs::path target = path;
  char next[4096];
  for (int i = 0; i < kMostLinks; ++i) {
    const ssize_t length = ::readlink(target.c_str(), next, sizeof next);
    if (length <= 0 || length == sizeof next) break;
    target = target.parent_path() / std::string(next, static_cast<size_t>(length));  // which is that alone where it is absolute
  }
  return target;
}

void check_replaceable(const fs::path& path) {
  struct stat former {};
  if (::stat(path.c_str(), &former) == 0) check_regular(path.string(), former.st_mode);
}

void rename_path(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  ONESTEP_CHECK(IoError, !error, to.string(), ": cannot be written: ", error_reason(error.value()));
}

bool make_folder(const fs::path& folder) {
  std::error_code error;
  const bool made = fs::create_directory(folder, error);
  ONESTEP_CHECK(IoError, !error, folder.string(), ": cannot be made: ", error_reason(error.value()));
  return made;
}

void make_folders(const fs::path& folder, std::string_view hint) {
  std::error_code error;
  fs::create_directories(folder, error);
  ONESTEP_CHECK(IoError, !error, folder.string(), ": cannot be made: ", error_reason(error.value()), hint);
}

void sync_folder(const fs::path& folder) {
  const int fd = open_file(folder.string(), O_RDONLY | O_DIRECTORY);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  ONESTEP_CHECK(IoError, error == 0, folder.string(), ": cannot be written: ", error_reason(error));
}

}  // namespace onestep

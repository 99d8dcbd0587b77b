#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/format.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{1} << 16;  // bytes read at a time; not on the stack, which may be no larger

/// Refuses names that the system would cut short or take for the working directory, then opens.
int open_file(const std::string& path, int flags) {
  ONESTEP_CHECK(IoError, !path.empty(), "the name of the file is empty");
  ONESTEP_CHECK(IoError, path.find('\0') == std::string::npos, "the name of the file holds a NUL byte");
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0644);
  ONESTEP_CHECK(IoError, fd >= 0, path, ": cannot be opened: ", error_reason(errno));
  return fd;
}

void check_regular(const std::string& path, mode_t mode) {
  ONESTEP_CHECK(IoError, !S_ISDIR(mode), path, ": is a directory, not a file");
  ONESTEP_CHECK(IoError, S_ISREG(mode), path, ": is not a regular file (a pipe, socket or device)");
}

struct OpenFile {
  int fd;
  uint64_t size;
};

/// Opens a regular file and nothing else. O_NONBLOCK: opening a pipe must not wait for its other end.
OpenFile open_regular(const std::string& path, int flags) {
  const int fd = open_file(path, flags | O_NONBLOCK);
  struct stat status {};
  try {
    const bool known = ::fstat(fd, &status) == 0;
    ONESTEP_CHECK(IoError, known, path, ": cannot be examined: ", error_reason(errno));
    check_regular(path, status.st_mode);
  } catch (...) {
    ::close(fd);
    throw;
  }
  return {fd, static_cast<uint64_t>(status.st_size)};
}

/// A device or pipe must not be replaced by a file.
void check_replaceable(const fs::path& path) {
  struct stat former {};
  if (::stat(path.c_str(), &former) == 0) check_regular(path.string(), former.st_mode);
}

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  ONESTEP_CHECK(IoError, !error, to.string(), ": cannot be written: ", error_reason(error.value()));
}

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

std::string error_reason(int error) {
  switch (error) {
    case ENOENT:
      return "no such file";
    case EACCES:
      return "permission denied";
    case ENOSPC:
      return "the disk is full";
    case EDQUOT:
      return "the disk quota is used up";
    case EFBIG:
      return "the file would be larger than the system allows";
    default:
      return std::strerror(error);
  }
}

// ---- reading

InputFile::InputFile(const std::string& path) : path_(path) {
  const OpenFile file = open_regular(path, O_RDONLY);
  fd_ = file.fd;
  size_ = file.size;
}

InputFile::~InputFile() { ::close(fd_); }

size_t read_some(int fd, const std::string& name, void* to, size_t count) {
  while (true) {
    const ssize_t got = ::read(fd, to, count);
    if (got < 0 && errno == EINTR) continue;
    ONESTEP_CHECK(IoError, got >= 0, name, ": cannot be read: ", error_reason(errno));
    return static_cast<size_t>(got);
  }
}

size_t InputFile::read_some(void* to, size_t count) { return onestep::read_some(fd_, path_, to, count); }

void InputFile::read(void* to, size_t count) {
  for (auto* place = static_cast<char*>(to); count > 0;) {
    const size_t got = read_some(place, count);
    ONESTEP_CHECK(IoError, got > 0, path_, ": cannot be read: it ended early");
    place += got;
    count -= got;
  }
}

std::string read_file(const std::string& path, int64_t max_bytes) {
  InputFile file(path);
  const auto size = static_cast<int64_t>(file.size());
  ONESTEP_CHECK(IoError, size <= max_bytes, path, ": too large: ", format_bytes(size), ", at most ", format_bytes(max_bytes),
                " are read");
  std::string bytes;
  bytes.reserve(file.size());
  std::vector<char> block(kBlock);
  while (const size_t count = file.read_some(block.data(), block.size())) {
    bytes.append(block.data(), count);
    ONESTEP_CHECK(IoError, static_cast<int64_t>(bytes.size()) <= max_bytes, path, ": grew beyond ", format_bytes(max_bytes),
                  " while it was read");
  }
  return bytes;
}

FileStamp stamp_file(const std::string& path) {
  InputFile file(path);
  Hasher hasher;
  uint64_t bytes = 0;
  std::vector<char> block(kBlock);
  while (const size_t count = file.read_some(block.data(), block.size())) {
    hasher.update(block.data(), count);
    bytes += count;
  }
  return {bytes, hasher.hex()};
}

// ---- writing

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

void OutputFile::sync() {
  const bool done = ::fsync(fd_) == 0;  // before errno is read: arguments have no order
  ONESTEP_CHECK(IoError, done, path_, ": cannot be written: ", error_reason(errno));
}

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

void write_file(const fs::path& path, std::string_view text) {
  check_replaceable(path);
  const fs::path folder = path.parent_path();
  ONESTEP_CHECK(IoError, folder.empty() || ::access(folder.c_str(), F_OK) == 0, path.string(),
                ": cannot be written: there is no folder ", folder.string());
  Unfinished temporary{temporary_path(path)};
  OutputFile file(temporary.path.string());
  file.write(text);
  file.finish();
  rename_file(temporary.path, path);
  temporary.keep = true;
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

NewFiles::NewFiles(fs::path folder) : folder_(std::move(folder)), temporary_(temporary_path(folder_ / "new")) {
  make_folders(folder_);
  make_folders(temporary_);
}

NewFiles::~NewFiles() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

fs::path NewFiles::add(const std::string& name) {
  check_replaceable(folder_ / name);
  names_.push_back(name);
  return temporary_ / name;
}

void NewFiles::add(const std::string& name, std::string_view text) {
  OutputFile file(add(name).string());
  file.write(text);
  file.finish();
}

void NewFiles::remove(const std::string& name) {
  check_replaceable(folder_ / name);
  doomed_.push_back(name);
}

void NewFiles::finish() {
  for (const std::string& name : doomed_) {
    std::error_code error;
    fs::remove(folder_ / name, error);
    ONESTEP_CHECK(IoError, !error, (folder_ / name).string(), ": cannot be deleted: ", error_reason(error.value()));
  }
  if (!doomed_.empty()) sync_folder(folder_);  // no crash leaves them beside what is new
  for (const std::string& name : names_) rename_file(temporary_ / name, folder_ / name);
  sync_folder(folder_);
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  ONESTEP_CHECK(IoError, !error, folder.string(), ": cannot be made: ", error_reason(error.value()));
}

void sync_folder(const fs::path& folder) {
  const int fd = open_file(folder.string(), O_RDONLY | O_DIRECTORY);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  ONESTEP_CHECK(IoError, error == 0, folder.string(), ": cannot be written: ", error_reason(error));
}

}  // namespace onestep

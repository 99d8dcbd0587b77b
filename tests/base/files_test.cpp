// Files that are not what they should be.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/read_file.h"
#include "base/write_file.h"
#include "tests/support.h"
#include "train/config/config.h"

using namespace onestep;
using namespace onestep::train;

namespace {

// A folder of its own, gone at the end.
struct FolderOfFiles {
  FolderOfFiles() : path(std::filesystem::temp_directory_path() / ("onestep_files_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~FolderOfFiles() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
  std::filesystem::path path;
};

std::string refusal_of(const std::string& path, int64_t max_bytes = 1 << 20) {
  return testing::refusal<IoError>([&] { read_file(path, max_bytes); });
}

}  // namespace

TEST_CASE("read_file: gives the bytes as they are") {
  const FolderOfFiles folder;
  std::string bytes;
  for (int i = 0; i < 300000; ++i) bytes += static_cast<char>(i * 7);
  CHECK(read_file(folder.write("a", bytes), 1 << 20) == bytes);
  CHECK(read_file(folder.write("b", ""), 0) == "");
  CHECK(read_file(folder.write("c", "abc"), 3) == "abc");
}

TEST_CASE("read_file: refuses what is no readable regular file without waiting for it") {
  const FolderOfFiles folder;
  const std::string pipe = folder.path / "pipe", gone = folder.path / "gone", name = folder.path;
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal_of(pipe) == pipe + ": is not a regular file (a pipe, socket or device)");
  CHECK(refusal_of(name) == name + ": is a directory, not a file");
  CHECK(refusal_of(gone) == gone + ": cannot be opened: no such file");
  CHECK(refusal_of("/dev/zero").starts_with("/dev/zero: "));
  CHECK(refusal_of("") == "the name of the file is empty");
  CHECK(refusal_of(std::string("a\0b", 3)) == "\"a\\u0000b\": the name of a file must not hold a NUL byte");
  const std::string file = folder.write("file", "abcd");
  CHECK(refusal_of(file, 3) == file + ": too large: 4 bytes, at most 3 bytes are read");
  CHECK(refusal_of(file + "/x") == file + "/x: cannot be opened: Not a directory");
  const std::string locked = folder.write("locked", "x");
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  if (geteuid() != 0) CHECK(refusal_of(locked) == locked + ": cannot be opened: permission denied");
}

TEST_CASE("write_file: a symbolic link stays one and what it names is replaced") {
  const FolderOfFiles folder;
  const std::string file = folder.write("file", "old");
  std::filesystem::create_symlink("file", folder.path / "link");
  std::filesystem::create_symlink(folder.path / "link", folder.path / "second");
  std::filesystem::create_symlink("later", folder.path / "dangling");
  write_file(folder.path / "second", "new");
  write_file(folder.path / "dangling", "made");
  CHECK(read_file(file, 10) == "new");
  CHECK(read_file(folder.path / "later", 10) == "made");
  for (const char* link : {"link", "second", "dangling"}) CHECK(std::filesystem::is_symlink(folder.path / link));
}

TEST_CASE("make_folders: refuses the name of a file or of a link to nothing") {
  const FolderOfFiles folder;
  const std::string file = folder.write("file", ""), dangling = folder.path / "dangling";
  std::filesystem::create_symlink("nowhere", dangling);
  const auto refusal = [](const std::string& name) { return testing::refusal<IoError>([&] { make_folders(name); }); };
  CHECK(refusal(file) == file + ": cannot be made: Not a directory");
  CHECK(refusal(dangling) == dangling + ": cannot be made: a file or a link to nothing has that name");
}

TEST_CASE("load_config: names the file in every refusal") {
  const FolderOfFiles folder;
  const auto refused = [](const std::string& path) { return testing::refusal([&] { load_config(path); }); };
  const std::string empty = folder.write("empty.json", ""), bad = folder.write("bad.json", "{\"seeds\": 1}");
  const std::string large = folder.write("large.json", std::string((1 << 20) + 1, ' '));
  CHECK(refused(empty) == empty + ": is empty");
  CHECK(refused(bad).starts_with(bad + ": /seeds: "));
  CHECK(refused(large).starts_with(large + ": "));
  CHECK(refused(folder.path).starts_with(folder.path.string() + ": "));
}

TEST_CASE("load_config: what is accepted can be read back as a run writes it") {
  const FolderOfFiles folder;
  const auto zeros = [&](const std::string& name, int64_t count) {
    std::string tokens = "0";
    for (int64_t i = 1; i < count; ++i) tokens += ",0";
    return folder.write(name, R"({"data":{"kind":"tokens","vocab_size":1,"tokens":[)" + tokens + "]}}");
  };
  const Config accepted = load_config(zeros("many.json", 500'000));
  CHECK(load_config(folder.write("config.json", resolved_json(accepted))) == accepted);
  const std::string most = zeros("most.json", 524'000);
  std::string refusal;
  try {
    load_config(most);
  } catch (const ConfigError& error) {
    refusal = error.what();
  }
  CHECK(refusal.starts_with(most + ": too large: 10"));
  CHECK(refusal.ends_with(" bytes with --set and every default written out, at most 1 MiB are read"));
}

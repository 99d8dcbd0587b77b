// The packages that cpack makes: what is in them, and that the program in them runs.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using onestep::testing::output_of;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;

namespace {

const std::string kVersion = "onestep " ONESTEP_VERSION "\n";

/// Makes the one package of this kind and returns its path.
std::string package(const TemporaryFolder& folder, const std::string& generator, const std::string& extension) {
  output_of({"cpack", "--config", ONESTEP_BINARY_DIR "/CPackConfig.cmake", "-G", generator, "-B", folder.path()});
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().string().ends_with(extension)) {
      CHECK(found == "");
      found = entry.path();
    }
  }
  REQUIRE(found != "");
  return found;
}

/// What an installed tree must hold; the program in it must run.
void check_tree(const fs::path& prefix) {
  for (const char* file : {"lib/libonestep_autograd.a", "lib/libonestep_train.a", "lib/cmake/onestep/onestepConfig.cmake",
                           "lib/pkgconfig/onestep.pc", "include/onestep/onestep.h", "share/man/man1/onestep.1",
                           "share/bash-completion/completions/onestep"})
    CHECK_MESSAGE(fs::exists(prefix / file), file);
  CHECK(output_of({(prefix / "bin/onestep").string(), "--version"}) == kVersion);
}

}  // namespace

TEST_CASE("package: the archive has the program and the library") {
  if (onestep::testing::skips_without_ci()) return;
  const TemporaryFolder folder;
  const fs::path archive = package(folder, "TGZ", ".tar.gz");
  CHECK(archive.filename().string().starts_with("onestep-" ONESTEP_VERSION "-Linux-"));
  output_of({"tar", "-xzf", archive, "-C", folder.path()});
  check_tree(folder.path() / archive.stem().stem());
}

TEST_CASE("package: the Debian package says what it is and what it needs") {
  if (onestep::testing::skips_without_ci()) return;
  if (run_process({"dpkg-deb", "--version"}).status != 0) return;
  const TemporaryFolder folder;
  const fs::path deb = package(folder, "DEB", ".deb");
  CHECK(deb.filename().string().starts_with("onestep_" ONESTEP_VERSION "_"));
  const auto field = [&](const char* name) { return output_of({"dpkg-deb", "--field", deb, name}); };
  CHECK(field("Package") == "onestep\n");
  CHECK(field("Version") == ONESTEP_VERSION "\n");
  CHECK(field("Section") == "science\n");
  CHECK(field("Depends").find("libpcre2-8-0") != std::string::npos);
  CHECK(field("Depends").find("libstdc++6") != std::string::npos);
  CHECK(field("Description").find("autograd") != std::string::npos);
  output_of({"dpkg-deb", "--extract", deb, folder.path() / "root"});
  check_tree(folder.path() / "root/usr");
}

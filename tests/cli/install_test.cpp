// The library as others use it: installed, and as a folder of their project.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using onestep::testing::contains;
using onestep::testing::output_of;
using onestep::testing::ProcessResult;
using onestep::testing::read;
using onestep::testing::run_process;
using onestep::testing::skips_without_ci;
using onestep::testing::TemporaryFolder;

namespace {

const std::string kSource = ONESTEP_SOURCE_DIR;
const std::string kConsumerPrints = "own module.h\n0.4583\n0.0477\n";
const std::string kLayerPrints = "tensor([[ 1.2847, -0.5979]], grad_fn=<MmBackward0>)\n";

/// Installs what is built. The folder is moved afterwards: nothing may depend on where it was.
std::string install(const TemporaryFolder& folder) {
  const fs::path first = folder.path() / "first", prefix = folder.path() / "moved here";
  output_of({"cmake", "--install", ONESTEP_BINARY_DIR, "--prefix", first});
  fs::rename(first, prefix);
  return prefix;
}

/// Configures a project and returns its build folder.
std::string configure(const std::string& project, const TemporaryFolder& folder, const std::string& setting) {
  const std::string build = folder.path() / "build";
  output_of(
      {"cmake", "-S", project, "-B", build, "-G", ONESTEP_GENERATOR, "-DCMAKE_CXX_COMPILER=" ONESTEP_CXX_COMPILER, setting});
  return build;
}

}  // namespace

TEST_CASE("install: a project finds the package and runs with all layers or one") {
  if (skips_without_ci()) return;
  const TemporaryFolder folder;
  const std::string prefix = install(folder);
  const std::string build = configure(kSource + "/tests/consumer", folder, "-DCMAKE_PREFIX_PATH=" + prefix);
  output_of({"cmake", "--build", build, "--target", "consumer", "layer"});
  CHECK(output_of({build + "/consumer"}) == kConsumerPrints);
  CHECK(output_of({build + "/layer"}) == kLayerPrints);
  CHECK(read(prefix + "/share/man/man1/onestep.1") == output_of({ONESTEP_BINARY_DIR "/onestep", "man"}));
  CHECK(read(prefix + "/share/bash-completion/completions/onestep") ==
        output_of({ONESTEP_BINARY_DIR "/onestep", "completion"}));
  CHECK(output_of({prefix + "/bin/onestep", "--version"}) == output_of({ONESTEP_BINARY_DIR "/onestep", "--version"}));
}

TEST_CASE("install: the examples are a project that builds with it") {
  if (skips_without_ci()) return;
  const TemporaryFolder folder;
  const std::string build = configure(kSource + "/learn/examples", folder, "-DCMAKE_PREFIX_PATH=" + install(folder));
  output_of({"cmake", "--build", build, "--target", "example_01_one_query"});
  CHECK(output_of({build + "/01_one_query"}) == read(kSource + "/learn/examples/expected/01_one_query.txt"));
}

TEST_CASE("install: the package refuses another minor version and unknown components") {
  const TemporaryFolder folder;
  const std::string prefix = install(folder);
  const auto find = [&](const std::string& what) {
    std::ofstream(folder.path() / "CMakeLists.txt") << "cmake_minimum_required(VERSION 3.24)\nproject(finds LANGUAGES CXX)\n"
                                                    << "find_package(onestep " << what << " REQUIRED)\n";
    return run_process({"cmake", "-S", folder.path(), "-B", folder.path() / "finds", "-G", ONESTEP_GENERATOR,
                        "-DCMAKE_CXX_COMPILER=" ONESTEP_CXX_COMPILER, "-DCMAKE_PREFIX_PATH=" + prefix});
  };
  CHECK(find("0.1 COMPONENTS base autograd nn attention optim train").status == 0);
  CHECK(contains(find("99.0").err, "requested version"));
  CHECK(contains(find("COMPONENTS vision").err, "there is no onestep::vision"));
}

TEST_CASE("install: as a folder of a project it offers the libraries and their headers only") {
  if (skips_without_ci()) return;
  const TemporaryFolder folder;
  const std::string prefix = install(folder),
                    build = configure(kSource + "/tests/consumer", folder, "-DONESTEP_SOURCE=" + kSource);
  const std::string targets = output_of({"cmake", "--build", build, "--target", "help"});
  CHECK(contains(targets, "onestep_train"));
  CHECK(!contains(targets, "onestep_tests"));
  CHECK(!contains(targets, "onestep_book"));
  output_of({"cmake", "--build", build, "--target", "consumer_objects"});
  // Linked with the libraries that are built already: building them again takes minutes.
  const std::string program = folder.path() / "program", object = build + "/CMakeFiles/consumer_objects.dir/consumer.cpp.o";
  const std::string link = ONESTEP_CXX_COMPILER
      " -o \"$1\" \"$2\" -L\"$3/lib\" -lonestep_train -lonestep_optim -lonestep_attention "
      "-lonestep_nn -lonestep_autograd -lonestep_base " ONESTEP_LINK_FLAGS;
  output_of({"sh", "-c", link, "sh", program, object, prefix});
  CHECK(output_of({program}) == kConsumerPrints);
}

TEST_CASE("install: pkg-config finds the library") {
  if (onestep::testing::skips_without_ci()) return;
  if (run_process({"pkg-config", "--version"}).status != 0) return;
  const TemporaryFolder folder;
  const std::string prefix = install(folder), program = folder.path() / "layer";
  const std::string compile = "eval \"set -- $(pkg-config --cflags --libs onestep)\"; " ONESTEP_CXX_COMPILER
                              " -std=c++20 -o \"$PROGRAM\" \"$SOURCE\" \"$@\" " ONESTEP_LINK_FLAGS;
  const ProcessResult result =
      run_process({"sh", "-c", compile}, {.environment = {{"PKG_CONFIG_PATH", prefix + "/lib/pkgconfig"},
                                                          {"PROGRAM", program},
                                                          {"SOURCE", kSource + "/tests/consumer/layer.cpp"}}});
  REQUIRE_MESSAGE(result.status == 0, result.err);
  CHECK(output_of({program}) == kLayerPrints);
}

TEST_CASE("install: no file knows where it was built") {
  const TemporaryFolder folder;
  const fs::path prefix = install(folder);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cmake" && extension != ".pc") continue;
    const std::string text = read(entry.path());
    CHECK_MESSAGE(!contains(text, kSource), entry.path());
    CHECK_MESSAGE(!contains(text, ONESTEP_BINARY_DIR), entry.path());
    CHECK_MESSAGE(!contains(text, "nlohmann"), entry.path());
    ++files;
  }
  CHECK(files > 30);
}

TEST_CASE("install: the umbrella header has each room and leaves out what is no part of the library") {
  const TemporaryFolder folder;
  const fs::path include = fs::path(install(folder)) / "include/onestep";
  const std::string umbrella = read(include / "onestep.h");
  for (const char* header : {"autograd/ops.h", "autograd/testing/gradcheck.h", "nn/linear.h", "attention/factory.h",
                             "optim/optimizer.h", "train/trainer.h", "train/text/tokenizer.h"}) {
    CAPTURE(header);
    CHECK(contains(umbrella, "\"onestep/" + std::string(header) + "\"\n"));
  }
  for (const char* header : {"utf8", "suggest", "hash", "status_line", "progress_bar", "json", "_case"}) {
    CAPTURE(header);
    CHECK_FALSE(contains(umbrella, header));
  }
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(include)) {  // what they include is there, too
    if (!entry.is_regular_file()) continue;
    std::istringstream lines(read(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#include \""))
        CHECK_MESSAGE(fs::exists(include.parent_path() / line.substr(10, line.size() - 11)), line);
    }
    ++headers;
  }
  CHECK(headers > 60);
}

TEST_CASE("install: a project can be configured where an MPI has no headers") {
  const TemporaryFolder folder;
  const fs::path bin = folder.path() / "bin";
  fs::create_directory(bin);
  for (const char* name : {"mpicxx", "mpiexec"}) {  // CMake looks for the one beside the other
    std::ofstream(bin / name) << "#!/bin/sh\ncase $1 in -showme:compile) echo -I/no/mpi/include ;; -showme:incdirs) "
                                 "echo /no/mpi/include ;; -showme:link) echo -lmpi ;; *) exit 1 ;; esac\n";
    fs::permissions(bin / name, fs::perms::owner_all);
  }
  std::ofstream(folder.path() / "CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\nproject(dependencies CXX)\nset(ONESTEP_PROGRAM ON)\nset(ONESTEP_MPI ON)\n"
         "list(APPEND CMAKE_MODULE_PATH \"" +
             kSource + "/cmake\")\ninclude(Dependencies)\n";
  const std::string path = bin.string() + ':' + std::getenv("PATH");
  const ProcessResult result = run_process({"cmake", "-S", folder.path(), "-B", folder.path() / "build", "-G",
                                            ONESTEP_GENERATOR, "-DCMAKE_CXX_COMPILER=" ONESTEP_CXX_COMPILER},
                                           {.environment = {{"PATH", path}}});
  CHECK_MESSAGE(result.status == 0, result.err);
}

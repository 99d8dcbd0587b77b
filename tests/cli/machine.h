#pragma once
// A machine for ./onestep made of stand-ins for cmake, apt-get and the like that write down how they are called.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {

namespace fs = std::filesystem;

inline const std::string kAllPackages =
    "g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libpcre2-dev libxxhash-dev libcpp-httplib-dev";

// "Installing" cmake puts it into the folder of programs; the other stand-ins only have to be there.
inline constexpr const char* kCMake = R"sh(
case $1 in
  --version) echo "cmake version $(cat "$FAKE/cmake-version")"; exit ;;
  --build)
    echo "cmake $*" >>"$FAKE/log"
    echo "[1/1] Compiling"
    while [ -e "$FAKE/background" ]; do sleep 0.01; done >/dev/null 2>&1 &
    [ ! -e "$FAKE/slow" ] ||
      setsid sh -c 'echo compiling >>"$FAKE/log"; while [ -e "$FAKE/slow" ]; do sleep 0.01; done; echo compiled >>"$FAKE/log"'
    [ ! -e "$FAKE/broken" ] || { echo "x.cpp:1: error: broken"; exit 1; }
    for target; do :; done
    case $target in
    exercise_runner) exit ;;
    exercise_*)
      [ "$LC_ALL" = C ] || { echo "x.cpp:1:2: Fehler: not English"; exit 1; }
      mkdir -p "$2/learn/exercises"
      [ ! -e "$FAKE/no-link" ] || { echo "collect2: error: ld returned 1 exit status"; exit 1; }
      [ ! -e "$FAKE/typo" ] || { echo "long command"; echo "x.cpp:1:2: error: typo"; echo "  1 | retur"; exit 1; }
      printf '#!/bin/sh\necho "checks of $0"; exit "$(cat "$FAKE/exercise-status")"\n' >"$2/learn/exercises/$target"
      chmod +x "$2/learn/exercises/$target"
      exit ;;
    esac
    printf '#!/bin/sh\necho "program in $PWD:"; for a; do echo "<$a>"; done\n' >"$2/onestep"
    chmod +x "$2/onestep" ;;
  *)
    echo "cmake $*" >>"$FAKE/log"
    root=$PWD
    [ "$1" != -S ] || root=$2
    for generator; do :; done
    cache=$root/build/release/CMakeCache.txt
    mkdir -p "$root/build/release"
    printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\nCMAKE_GENERATOR:INTERNAL=%s\n' "$root" "$generator" >"$cache"
    touch "$root/build/release/build.ninja" ;;
esac
)sh";
inline constexpr const char* kAptGet = R"sh(
echo "apt-get $*" >>"$FAKE/log"
! (true >&9) 2>/dev/null || echo "apt-get: it holds the lock" >>"$FAKE/log"
[ "$3" != update ] || [ ! -e "$FAKE/bad-source" ] || { echo "E: not signed"; exit 100; }
install=
for word; do
  [ "$word" != install ] || install=yes
  [ -n "$install" ] || continue
  case $word in
    g++) cp "$FAKE/nothing" "$FAKE/bin/c++" ;;
    cmake) cp "$FAKE/cmake" "$FAKE/bin/cmake" ;;
    ninja-build) cp "$FAKE/nothing" "$FAKE/bin/ninja" ;;
    *) echo "$word" >>"$FAKE/packages" ;;
  esac
done
)sh";
inline constexpr const char* kDpkgQuery =
    R"sh(for package; do :; done; grep -qx -- "$package" "$FAKE/packages" && printf installed)sh";

// A checkout and a machine of its own: only the programs in bin/ exist there.
class Machine {
 public:
  Machine() {
    for (const char* folder : {"bin", "elsewhere", "checkout/cmake", "checkout/autograd/kernels", "checkout/nn",
                               "checkout/bench", "checkout/train/report/page", "checkout/learn/book", "checkout/tests"})
      fs::create_directories(path() / folder);
    for (const char* tool : {"bash",  "cat",      "chmod", "cp",  "env",    "find", "flock", "grep", "head", "mkdir", "mv",
                             "nproc", "readlink", "rm",    "sed", "setsid", "sh",   "sleep", "sort", "tail", "tee",   "touch"})
      fs::create_symlink(which(tool), path() / "bin" / tool);
    fs::copy_file(fs::path(ONESTEP_SOURCE_DIR) / "onestep", checkout() / "onestep");
    for (const char* file :
         {"checkout/CMakeLists.txt", "checkout/autograd/CMakeLists.txt", "checkout/nn/CMakeLists.txt",
          "checkout/tests/CMakeLists.txt", "checkout/learn/book/CMakeLists.txt", "checkout/learn/book/page.cpp",
          "checkout/autograd/tensor.cpp", "checkout/autograd/kernels/gemm.cpp", "checkout/bench/CMakeLists.txt",
          "checkout/bench/small.cpp", "checkout/train/CMakeLists.txt", "checkout/train/report/page/page.cpp.in",
          "checkout/train/report/page/page.html", "checkout/train/report/page/page.js", "checkout/train/report/page/style.css",
          "log", "packages"})
      write(file, "");
    write("cmake-version", "3.25.1\n");
    script("cmake", kCMake);
    script("nothing", "");
  }

  // Debian with nothing of ours; `root` says who calls.
  void make_debian(bool root) {
    script("bin/apt-get", kAptGet);
    script("bin/dpkg-query", kDpkgQuery);
    script("bin/id", root ? "echo 0" : "echo 1000");
  }

  // The tools that a build needs, without a package manager.
  void install_tools() {
    for (const char* tool : {"c++", "ninja"}) script(std::string("bin/") + tool, "");
    fs::copy_file(path() / "cmake", path() / "bin/cmake");
    script("bin/ctest", "echo \"ctest $*\" >>\"$FAKE/log\"; echo tests; exit 8");
  }

  std::string ci;  // the variable CI of who calls

  Process start(std::vector<std::string> arguments, const std::string& through = "") const {
    arguments.insert(arguments.begin(), through.empty() ? (checkout() / "onestep").string() : through);
    return Process(
        arguments,
        {.directory = path() / "elsewhere",
         .environment = {{"PATH", (path() / "bin").string()}, {"FAKE", path().string()}, {"CXX", "c++"}, {"CI", ci}}});
  }
  ProcessResult run(const std::vector<std::string>& arguments, const std::string& through = "") const {
    return start(arguments, through).wait();
  }

  // What the stand-ins were called with since the last look.
  std::string take_log() const {
    const std::string text = log();
    write("log", "");
    return text;
  }

  // Returns once the stand-ins have been called that often.
  void wait_for_calls(long calls) const {
    for (std::string text = log(); std::count(text.begin(), text.end(), '\n') < calls; text = log())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  void write(const std::string& file, const std::string& text) const { std::ofstream(path() / file) << text; }
  void script(const std::string& file, const std::string& text) const {
    write(file, "#!/bin/sh\n" + text + "\n");
    fs::permissions(path() / file, fs::perms::owner_all);
  }

  // The tool of that name, before which it does something else.
  void wrap(const std::string& tool, const std::string& before) const {
    fs::remove(path() / "bin" / tool);
    script("bin/" + tool, before + "\nexec " + which(tool) + " \"$@\"");
  }

  const fs::path& path() const { return folder_.path(); }
  fs::path checkout() const { return path() / "checkout"; }
  std::string configure_call() const {
    const std::string root = checkout().string();
    return "cmake -S " + root + " -B " + root + "/build/release -DCMAKE_BUILD_TYPE=Release -DONESTEP_TESTS=OFF -G Ninja\n";
  }
  std::string build_call(const std::string& target) const {
    const std::string jobs = run_process({"nproc"}).out;
    return "cmake --build " + checkout().string() + "/build/release --parallel " + jobs.substr(0, jobs.size() - 1) + target +
           '\n';
  }

 private:
  std::string log() const { return read(path() / "log"); }
  static std::string which(const std::string& tool) {
    const ProcessResult found = run_process({"sh", "-c", "command -v " + tool});
    REQUIRE(found.status == 0);
    return found.out.substr(0, found.out.size() - 1);
  }

  onestep::testing::TemporaryFolder folder_;
};

}  // namespace onestep::testing

// ./onestep from outside, on machines made of stand-ins (machine.h).

#include "tests/cli/machine.h"

namespace fs = std::filesystem;
using onestep::testing::contains;
using onestep::testing::kAllPackages;
using onestep::testing::Machine;
using onestep::testing::ProcessResult;
using onestep::testing::run_process;

TEST_CASE("bootstrap: a fresh Debian machine gets its packages and a build and then runs the program") {
  Machine machine;
  machine.make_debian(/*root=*/true);
  const ProcessResult first = machine.run({"train", "a file.json", ""});
  CHECK(first.status == 0);
  CHECK(first.out == "program in " + (machine.path() / "elsewhere").string() + ":\n<train>\n<a file.json>\n<>\n");
  CHECK(first.err == "onestep: updating the package lists ...\nonestep: installing " + kAllPackages +
                         " ...\nonestep: configuring ...\nonestep: building onestep ...\n");
  CHECK(machine.take_log() ==
        "apt-get -o DPkg::Lock::Timeout=300 update\n"
        "apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends " +
            kAllPackages + "\n" + machine.configure_call() + machine.build_call(" --target onestep"));
}

TEST_CASE("bootstrap: gradcheck is built when it is called, and the program of other commands without it") {
  Machine machine;
  machine.install_tools();
  CHECK(machine.run({"version"}).status == 0);
  CHECK(machine.take_log() == machine.configure_call() + machine.build_call(" --target onestep"));
  CHECK(machine.run({"--threads", "2", "gradcheck"}).status == 0);
  CHECK(machine.take_log() == machine.build_call(" --target onestep onestep_gradcheck"));
  CHECK(machine.run({"gradcheck", "--op", "exp"}).err == "");
  CHECK(machine.take_log() == "");
}

TEST_CASE("bootstrap: a second call runs the program at once until a source changes") {
  Machine machine;
  machine.install_tools();
  CHECK(machine.run({"version"}).status == 0);
  CHECK(machine.take_log() == machine.configure_call() + machine.build_call(" --target onestep"));

  const ProcessResult second = machine.run({"version"});
  CHECK(second.out == "program in " + (machine.path() / "elsewhere").string() + ":\n<version>\n");
  CHECK(second.err == "");
  CHECK(machine.take_log() == "");

  for (const std::string source :
       {"autograd/kernels/gemm.cpp", "bench/small.cpp", "learn/book/page.cpp", "train/report/page/page.cpp.in",
        "train/report/page/page.html", "train/report/page/page.js", "train/report/page/style.css"}) {
    CAPTURE(source);
    machine.write("checkout/" + source, "changed");
    CHECK(machine.run({"version"}).err == "onestep: building onestep ...\n");
    CHECK(machine.take_log() == machine.build_call(" --target onestep"));
  }

  fs::remove(machine.checkout() / "autograd/tensor.cpp");
  CHECK(machine.run({"version"}).status == 0);
  CHECK(machine.take_log() == machine.build_call(" --target onestep"));

  fs::create_directories(machine.checkout() / "runs/copy");
  machine.write("checkout/README.md", "not a source");
  machine.write("checkout/tests/linear_test.cpp", "not a source of the program");
  CHECK(machine.run({"version"}).err == "");
  CHECK(machine.take_log() == "");
}

TEST_CASE("bootstrap: without root or sudo it says what to install") {
  Machine machine;
  machine.make_debian(/*root=*/false);
  const std::string sentence =
      "onestep: some packages are missing; install them and call again:\n"
      "onestep:   sudo apt-get update && sudo apt-get install ";
  ProcessResult result = machine.run({"version"});
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err == sentence + kAllPackages + "\n");

  machine.script("bin/sudo", "exit 1");  // asks for a password
  machine.write("packages", "nlohmann-json3-dev\nlibpcre2-dev\nlibxxhash-dev\nlibcpp-httplib-dev\n");
  machine.install_tools();
  CHECK(machine.run({"version"}).err == sentence + "libcli11-dev\n");
  CHECK(machine.run({"test"}).err == sentence + "libcli11-dev doctest-dev graphviz libopenmpi-dev openmpi-bin\n");
  CHECK(machine.take_log() == "");

  machine.script("bin/sudo", "shift; [ \"$1\" = true ] || exec \"$@\"");
  result = machine.run({"version"});
  CHECK(result.status == 0);
  CHECK(contains(machine.take_log(), "install -y --no-install-recommends libcli11-dev\n"));
  CHECK(machine.run({"test"}).out == "tests\n");  // what the tests can do without is installed only where that is possible
  CHECK(contains(machine.take_log(), " doctest-dev graphviz libopenmpi-dev openmpi-bin doxygen python3-dev python3-venv\n"));
  machine.ci = "1";
  CHECK(machine.run({"test"}).out == "tests\n");
  CHECK(contains(machine.take_log(), " clang clang-tidy libclang-rt-dev\n"));
}

TEST_CASE("bootstrap: where CI is set the web page's tests get what they need, and miss it where it cannot be had") {
  Machine machine;
  machine.make_debian(/*root=*/true);
  machine.install_tools();
  fs::create_directories(machine.checkout() / "web/toolchain");
  machine.script("checkout/web/toolchain/install", "echo install-web >>\"$FAKE/log\"");
  CHECK(machine.run({"test"}).out == "tests\n");
  CHECK(!contains(machine.take_log(), "install-web\n"));

  machine.ci = "1";
  CHECK(machine.run({"test"}).out == "tests\n");
  std::string log = machine.take_log();
  for (const char* const word : {" nodejs\n", " chromium\n", "install-web\n"}) CHECK(contains(log, word));

  machine.script("checkout/web/toolchain/install", "exit 1");
  machine.write("packages", "");
  machine.script("no-chromium", R"(for word; do [ "$word" != chromium ] || exit 100; done; exec sh "$FAKE/apt-get" "$@")");
  fs::rename(machine.path() / "bin/apt-get", machine.path() / "apt-get");
  fs::rename(machine.path() / "no-chromium", machine.path() / "bin/apt-get");
  const ProcessResult result = machine.run({"test"});
  CHECK(result.out == "tests\n");
  CHECK(contains(result.err, "onestep: the web page's tests do without: chromium\n"));
  CHECK(contains(result.err, "onestep: the web page is not tested: its compiler cannot be installed\n"));
}

TEST_CASE("bootstrap: other systems need a compiler and a new enough CMake") {
  Machine machine;
  ProcessResult result = machine.run({"version"});
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err ==
        "onestep: please install:\n  a C++20 compiler (GCC 12 or newer)\n"
        "  CMake 3.25 or newer\n  Ninja or make\n");
  machine.install_tools();
  machine.write("cmake-version", "3.9.6\n");
  result = machine.run({"version"});
  CHECK(result.status == 2);
  CHECK(result.err ==
        "onestep: CMake 3.25 or newer is needed, this is 3.9.6 (https://cmake.org/download, or: pip install cmake)\n");
  CHECK(machine.take_log() == "");
  machine.write("cmake-version", "3.25.0-rc1\n");
  CHECK(machine.run({"version"}).status == 0);
}

TEST_CASE("bootstrap: a failed build shows the end of its log and is tried again") {
  Machine machine;
  machine.install_tools();
  machine.write("broken", "");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ProcessResult result = machine.run({"version"});
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(contains(result.err, "\nx.cpp:1: error: broken\nonestep: building onestep failed (the whole log: " +
                                   (machine.checkout() / "build/build.log").string() + ")\n"));
  }
  fs::remove(machine.path() / "broken");
  machine.take_log();
  CHECK(machine.run({"version"}).status == 0);
  CHECK(machine.take_log() == machine.build_call(" --target onestep"));  // configured by the first call
}

TEST_CASE("bootstrap: test builds everything and ends with the status of ctest") {
  Machine machine;
  machine.install_tools();
  const ProcessResult result = machine.run({"test", "-R", "soft max"});
  CHECK(result.status == 8);
  CHECK(result.out == "tests\n");
  CHECK(contains(result.err, "the Python package is not tested: it needs Python 3.9 or newer"));
  const std::string log = machine.take_log();
  // With the flags of the program, which is not built again.
  CHECK(log.starts_with("cmake --preset release -DONESTEP_WERROR=OFF -DONESTEP_PYTHON=OFF -G Ninja\n" + machine.build_call("") +
                        "ctest --test-dir " + (machine.checkout() / "build/release").string() +
                        " --output-on-failure --no-tests=error --parallel "));
  CHECK(log.ends_with(" -R soft max\n"));
  CHECK(machine.run({"version"}).err == "");  // the program is built too
  machine.ci = "1";
  machine.run({"test"});
  CHECK(machine.take_log().starts_with("cmake --preset release -DONESTEP_WERROR=ON -DONESTEP_PYTHON=OFF -G Ninja\n"));
}

TEST_CASE("bootstrap: exercise builds and checks one exercise and remembers that it is solved") {
  Machine machine;
  machine.install_tools();
  for (const char* name : {"02_second", "10_last"}) {
    fs::create_directories(machine.checkout() / "learn/exercises");
    machine.write(std::string("checkout/learn/exercises/") + name + ".cpp", "// Exercise: some title\n");
  }
  const std::string list =
      "02          learn/exercises/02_second.cpp: some title\n10          learn/exercises/10_last.cpp: some title\n\n"
      "Open learn/exercises/02_second.cpp, fill in the GAP, then: ./onestep exercise 2\n";
  CHECK(machine.run({"exercise"}).out == list);
  CHECK(machine.take_log() == "");  // nothing is built to see a list

  machine.write("exercise-status", "1");
  const std::string program = (machine.checkout() / "build/release/learn/exercises/exercise_02_second").string();
  ProcessResult result = machine.run({"exercise", "2"});
  CHECK(result.status == 1);
  CHECK(result.out == "checks of " + program + '\n');
  CHECK(contains(result.err, "onestep: building the checks of exercise 2 ...\n"));
  CHECK(machine.take_log() == machine.configure_call() + machine.build_call(" --target check_02_second exercise_runner") +
                                  machine.build_call(" --target exercise_02_second"));
  CHECK(machine.run({"exercise"}).out == list);

  machine.write("exercise-status", "0");
  for (const char* word : {"2", "02", "02_second", "learn/exercises/02_second.cpp"}) {
    result = machine.run({"exercise", word});
    CHECK(result.status == 0);
    CHECK(result.out ==
          "checks of " + program + "\nOpen learn/exercises/10_last.cpp, fill in the GAP, then: ./onestep exercise 10\n");
  }
  CHECK(contains(machine.run({"exercise"}).out, "02  solved  learn/exercises/02_second.cpp"));
  CHECK(machine.run({"exercise", "10"}).out.ends_with("\nAll solved.\n"));
  fs::last_write_time(machine.checkout() / "learn/exercises/02_second.cpp",
                      fs::file_time_type::clock::now() + std::chrono::seconds(5));
  CHECK(machine.run({"exercise"}).out.starts_with("02          "));
}

TEST_CASE("bootstrap: example builds and runs the programs of a section") {
  Machine machine;
  machine.install_tools();
  fs::create_directories(machine.checkout() / "learn/examples");
  for (const char* const name : {"01_one:3.3.1", "03_keys:3.4.1", "04_modules:3.4.2"}) {
    const std::string_view both = name;
    const size_t colon = both.find(':');
    machine.write("checkout/learn/examples/" + std::string(both.substr(0, colon)) + ".cpp",
                  "// " + std::string(both.substr(colon + 1)) + ": Some title.\n");
  }
  CHECK(machine.run({"example"}).out == "01  3.3.1: Some title.\n03  3.4.1: Some title.\n04  3.4.2: Some title.\n");
  CHECK(machine.take_log() == "");  // nothing is built to see a list
  const fs::path programs = machine.checkout() / "build/release/learn/examples";
  fs::create_directories(programs);
  for (const char* const name : {"01_one", "03_keys", "04_modules"})
    machine.script("checkout/build/release/learn/examples/" + std::string(name), "echo output of " + std::string(name));
  const auto prints = [&](const char* word, const std::string& out) {
    CAPTURE(word);
    const ProcessResult result = machine.run({"example", word});
    CHECK(result.status == 0);
    CHECK(result.out == out);
  };
  prints("3.4", "output of 03_keys\noutput of 04_modules\n");
  CHECK(machine.take_log() == machine.configure_call() + machine.build_call(" --target example_03_keys") +
                                  machine.build_call(" --target example_04_modules"));
  prints("3.4.1", "output of 03_keys\n");
  for (const char* const word : {"4", "04", "04_modules", "learn/examples/04_modules.cpp"})
    prints(word, "output of 04_modules\n");
  for (const char* const word : {"3.5", "9", "--help"}) CHECK(machine.run({"example", word}).status == 2);
}

TEST_CASE("bootstrap: web installs its compiler and builds the page") {
  Machine machine;
  machine.install_tools();
  fs::create_directories(machine.checkout() / "web/toolchain");
  fs::create_directories(machine.checkout() / "build/wasm");
  machine.script("checkout/web/toolchain/install", "echo install-web >>\"$FAKE/log\"");
  const ProcessResult result = machine.run({"web", "--build-only"});
  CHECK(result.status == 0);
  CHECK(result.out == "");
  CHECK(contains(result.err, "onestep: building the web page ...\n"));
  CHECK(machine.take_log().starts_with("install-web\ncmake -S " + machine.checkout().string() + " --preset wasm\n"));
  for (const char* const word : {"--help", "page"}) {
    CHECK(machine.run({"web", word}).status == 2);
    CHECK(machine.take_log() == "");
  }
}

TEST_CASE("bootstrap: an exercise that does not compile is refused with the first error") {
  Machine machine;
  machine.install_tools();
  fs::create_directories(machine.checkout() / "learn/exercises");
  machine.write("checkout/learn/exercises/02_second.cpp", "// Exercise: some title\n");
  machine.write("typo", "");
  const std::string log = (machine.checkout() / "build/exercise.log").string();
  ProcessResult result = machine.run({"exercise", "2"});
  CHECK(result.status == 1);
  CHECK(result.out == "");
  CHECK(result.err.ends_with(
      "...\nx.cpp:1:2: error: typo\n  1 | retur\nonestep: learn/exercises/02_second.cpp does not compile; the "
      "first error is above (all of them: " +
      log + ")\n"));
  machine.write("no-link", "");
  result = machine.run({"exercise", "2"});
  CHECK(result.status == 1);
  CHECK(contains(result.err,
                 "learn/exercises/02_second.cpp does not fit the checks: keep the functions of learn/exercises/tasks.h as they "
                 "are declared"));
  for (const char* word : {"3", "0", "second", "--help", ""}) {
    result = machine.run({"exercise", word});
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err.starts_with(*word == '-' ? "onestep: usage: ./onestep exercise [N]" : "onestep: there is no exercise "));
  }
}

TEST_CASE("bootstrap: works through a symbolic link and after the checkout has moved") {
  Machine machine;
  machine.install_tools();
  const fs::path link = machine.path() / "elsewhere/link";
  fs::create_symlink("../checkout/onestep", link);
  CHECK(machine.run({"version"}, link).out == "program in " + (machine.path() / "elsewhere").string() + ":\n<version>\n");
  CHECK(machine.take_log() == machine.configure_call() + machine.build_call(" --target onestep"));

  fs::rename(machine.checkout(), machine.path() / "moved");
  const std::string moved = (machine.path() / "moved/onestep").string();
  CHECK(machine.run({"version"}, moved).err == "");
  machine.write("moved/nn/linear.cpp", "changed");
  CHECK(machine.run({"version"}, moved).err == "onestep: configuring ...\nonestep: building onestep ...\n");
  CHECK(contains(machine.take_log(), "cmake -S " + (machine.path() / "moved").string()));
}

TEST_CASE("bootstrap: the shell scripts parse") {
  for (const char* file : {"onestep", ".ci/run", "tests/if_ci", "tests/fuzz/run", "tests/docs/reference.sh"}) {
    CAPTURE(file);
    CHECK(run_process({"bash", "-n", ONESTEP_SOURCE_DIR + std::string("/") + file}).status == 0);
  }
  if (run_process({"sh", "-c", "command -v shellcheck"}).status != 0) return;
  const ProcessResult lint = run_process({"shellcheck", ONESTEP_SOURCE_DIR "/onestep", ONESTEP_SOURCE_DIR "/.ci/run"});
  CHECK(lint.out == "");
  CHECK(lint.status == 0);
}

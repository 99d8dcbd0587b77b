// ./onestep where builds meet, are killed or find another machine than the last one did.

#include <signal.h>

#include "tests/cli/machine.h"

namespace fs = std::filesystem;
using onestep::testing::contains;
using onestep::testing::Machine;
using onestep::testing::Process;
using onestep::testing::ProcessResult;

TEST_CASE("bootstrap: calls at the same time build once") {
  Machine machine;
  machine.install_tools();
  std::vector<Process> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(machine.start({"version"}));
  for (const Process& call : calls) {
    const ProcessResult result = call.wait();
    CHECK(result.status == 0);
    CHECK(result.out == "program in " + (machine.path() / "elsewhere").string() + ":\n<version>\n");
  }
  CHECK(machine.take_log() == machine.configure_call() + machine.build_call(" --target onestep"));
}

TEST_CASE("bootstrap: what remains of a killed build ends before the next one begins") {
  for (const int signal : {SIGTERM, SIGKILL}) {
    CAPTURE(signal);
    Machine machine;
    machine.install_tools();
    machine.wrap("flock", "echo \"flock $*\" >>\"$FAKE/log\"");
    machine.write("slow", "");
    const Process first = machine.start({machine.checkout() / "onestep", "version"}, "setsid");
    machine.wait_for_calls(4);     // flock, configure, build, compiling
    ::kill(-first.pid(), signal);  // ninja's compilers have process groups of their own
    CHECK(first.wait().status == 128 + signal);
    machine.take_log();

    const Process second = machine.start({"version"});
    machine.wait_for_calls(2);
    CHECK(machine.take_log() == "flock -n 9\nflock 9\n");  // which waits
    fs::remove(machine.path() / "slow");
    const ProcessResult result = second.wait();
    CHECK(result.status == 0);
    CHECK(result.err == "onestep: waiting for another build\nonestep: building onestep ...\n");
    CHECK(machine.take_log() == "compiled\n" + machine.build_call(" --target onestep") + "flock -u 9\n");
  }
}

TEST_CASE("bootstrap: what a build leaves in the background does not keep the next one waiting") {
  Machine machine;
  machine.install_tools();
  machine.wrap("flock", "[ \"$1\" != 9 ] || exit 1");  // instead of waiting for ever
  machine.write("background", "");
  CHECK(machine.run({"version"}).status == 0);
  machine.write("checkout/autograd/tensor.cpp", "changed");
  CHECK(machine.run({"version"}).err == "onestep: building onestep ...\n");
}

TEST_CASE("bootstrap: an MPI that comes or goes later is built in or left out") {
  Machine machine;
  machine.install_tools();
  CHECK(machine.run({"version"}).status == 0);
  machine.take_log();
  const std::string root = machine.checkout().string();
  const std::string again = "cmake -S " + root + " -B " + root + "/build/release -U MPI_* -G Ninja\n";

  machine.script("bin/mpicxx", "[ -e \"$FAKE/mpi.h\" ]");
  CHECK(machine.run({"version"}).err == "");  // a compiler without its headers
  machine.write("mpi.h", "");
  CHECK(machine.run({"version"}).err == "onestep: configuring ...\nonestep: building onestep ...\n");
  CHECK(machine.take_log() == again + machine.build_call(" --target onestep"));
  CHECK(machine.run({"version"}).err == "");
  CHECK(machine.take_log() == "");

  fs::remove(machine.path() / "bin/mpicxx");
  CHECK(machine.run({"version"}).status == 0);
  CHECK(machine.take_log() == again + machine.build_call(" --target onestep"));
  CHECK(machine.run({"version"}).err == "");
}

TEST_CASE("bootstrap: packages are installed where the lists cannot be updated, and by a process without the lock") {
  Machine machine;
  machine.make_debian(/*root=*/true);
  machine.write("bad-source", "");
  const ProcessResult result = machine.run({"version"});
  CHECK(result.status == 0);
  CHECK(contains(result.err, "E: not signed\nonestep: updating the package lists failed (the whole log: "));
  const std::string log = machine.take_log();
  CHECK(contains(log, "install -y"));
  CHECK(!contains(log, "holds the lock"));
}

TEST_CASE("bootstrap: a checkout that cannot be written is refused") {
  Machine machine;
  machine.install_tools();
  machine.write("checkout/build", "not a folder");
  const ProcessResult result = machine.run({"version"});
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err == "onestep: " + (machine.checkout() / "build").string() +
                          " cannot be written: call ./onestep in a copy of the checkout that is yours\n");
}

// The program from outside: exit statuses, one-sentence messages, results on stdout and nothing else there.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

using onestep::testing::contains;
using onestep::testing::ProcessOptions;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;

namespace {

// Bad input: exit status 2, nothing on stdout, and this one line on stderr.
std::string refused(const std::vector<std::string>& arguments, const ProcessOptions& options = {}) {
  const ProcessResult result = run_onestep(arguments, options);
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err.find('\n') == result.err.size() - 1);
  return result.err.substr(0, result.err.find('\n'));
}

// The message as in expect_refusal().
void expect_exit_2(const std::vector<std::string>& arguments, const std::string& message, const ProcessOptions& options = {}) {
  onestep::testing::expect_refusal(refused(arguments, options), "onestep: " + message);
}

}  // namespace

TEST_CASE("cli: help goes to stdout and lists the commands") {
  const ProcessResult result = run_onestep({"--help"});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "Usage: onestep"));
  CHECK(contains(result.out, "\n  version "));
  CHECK(contains(result.out, "--threads N"));
}

TEST_CASE("cli: every listed command has its own help") {
  const std::string help = run_onestep({"--help"}).out;
  size_t at = help.find("\nCommands:\n") + sizeof "\nCommands:\n" - 1;
  int commands = 0;
  for (; at < help.size() && help.compare(at, 2, "  ") == 0; at = help.find('\n', at) + 1) {
    if (help[at + 2] == ' ') continue;  // a wrapped description
    const std::string name = help.substr(at + 2, help.find(' ', at + 2) - at - 2);
    CAPTURE(name);
    const ProcessResult result = run_onestep({name, "--help"});
    CHECK(result.status == 0);
    CHECK(result.err == "");
    CHECK(contains(result.out, "Usage: onestep " + name));
    CHECK(contains(result.out, "--threads N"));
    CHECK(run_onestep({"help", name}).out == result.out);
    ++commands;
  }
  CHECK(commands >= 18);
  CHECK(run_onestep({"help"}).out == help);
  CHECK(run_onestep({"help", "bench", "step"}).out == run_onestep({"bench", "step", "--help"}).out);
  expect_exit_2({"help", "trian"}, "help: unknown command trian (did you mean train?)");
  CHECK(contains(refused({"help", "bench", "x"}), " x (see onestep bench --help)"));
}

TEST_CASE("cli: version prints the instruction set and the threads in use") {
  const ProcessResult result = run_onestep({"version", "--threads", "3"}, {.environment = {{"ONESTEP_ISA", "generic"}}});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out.starts_with("onestep "));
  CHECK(contains(result.out, "\ninstruction set: generic (supported: generic"));
  CHECK(contains(result.out, "\nthreads: 3\n"));
  CHECK(contains(run_onestep({"--threads", "5", "version"}).out, "\nthreads: 5\n"));
  CHECK(contains(run_onestep({"version"}, {.environment = {{"OMP_NUM_THREADS", "4"}}}).out, "\nthreads: 4\n"));
}

TEST_CASE("cli: a command line that cannot be read is refused in one sentence") {
  expect_exit_2({}, "no command given (see onestep --help)");
  expect_exit_2({"vresion"}, "unknown command vresion (did you mean version?)");
  CHECK(contains(refused({"vers"}), "version?"));
  expect_exit_2({"dance"}, "unknown command dance (see onestep --help)");
  expect_exit_2({"version", "--thread", "2"}, "unknown option --thread (did you mean --threads?)");
  expect_exit_2({"--fast", "version"}, "unknown option --fast (see onestep version --help)");
  CHECK(contains(refused({"version", "--fast"}), " --fast "));
  expect_exit_2({"bench"},
                "bench: needs one of step, attention, matmul, conv, op, small, limits, generate (see onestep bench --help)");
  CHECK(contains(refused({"bench", "stap"}), " step?"));
  expect_exit_2({"bench", "step", "x"}, "unexpected argument x (see onestep bench step --help)");
  CHECK(contains(refused({"version", "x"}), " x (see onestep version --help)"));
  expect_exit_2({"version", "--threads"}, "--threads: needs a value: --threads N (see onestep version --help)");
  expect_exit_2({"version", "--threads", "0"},
                "--threads: must be a whole number from 1 to 1024: got 0 (see onestep version --help)");
  expect_exit_2({"train", "x.json", "--profile=x"}, "--profile: takes no value: got x (see onestep train --help)");
  expect_exit_2({"train", "--", "x.json", "--out", "x"},
                "unexpected argument --out after -- (commands and options go before it)");
  for (const char* threads : {"-1", "1025", "x", "1.5", "99999999999999999999"})
    expect_exit_2({"version", "--threads", threads}, "--threads: ");
}

TEST_CASE("cli: a bad environment variable is refused in one sentence") {
  expect_exit_2({"version"}, "ONESTEP_ISA: unknown instruction set: sse9 (generic, avx2 or avx512)",
                {.environment = {{"ONESTEP_ISA", "sse9"}}});
  expect_exit_2({"bench", "matmul"}, "ONESTEP_ISA: ", {.environment = {{"ONESTEP_ISA", "sse9"}, {"OMP_NUM_THREADS", "2"}}});
}

TEST_CASE("cli: results that cannot be written are an error") {
  const ProcessResult result =
      onestep::testing::run_process({"sh", "-c", "exec \"$0\" version > /dev/full", ONESTEP_BINARY_DIR "/onestep"});
  CHECK(result.status == 2);
  CHECK(result.err == "onestep: stdout: cannot be written (disk full or closed?)\n");
}

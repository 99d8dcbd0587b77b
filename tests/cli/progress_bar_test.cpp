// Progress bars on a terminal, in a pipe and with --quiet; a clock that runs fast makes short work long.
#include <doctest/doctest.h>

#include "tests/paths.h"

#ifdef ONESTEP_FAST_CLOCK  // a sanitizer's library wants to be the first one

#include <fstream>

#include "tests/process.h"
#include "tests/support.h"
#include "tests/terminal.h"

namespace onestep::testing {
namespace {

using Strings = std::vector<std::string>;

/// A clock that runs, and no tokens of an earlier call.
Environment slow_world(const TemporaryFolder& cache) {
  return {{"LD_PRELOAD", ONESTEP_FAST_CLOCK}, {"ONESTEP_CACHE", cache.path().string()}};
}

/// A command shows `what` (`tokenising .*: \d+% of ...`) on a terminal, in a pipe in plain lines, with --quiet nowhere. A run
/// that it makes is deleted before the last call, which would else say where the earlier one went.
void check_shown(const Strings& arguments, const Strings& whats, const std::string& run = "") {
  Strings command = arguments;
  command.insert(command.begin(), ONESTEP_BINARY_DIR "/onestep");
  CAPTURE(arguments);
  const TemporaryFolder first, second, third;
  const std::string terminal = run_in_terminal(command, 200, slow_world(first));
  const ProcessResult piped = run_process(command, {.environment = slow_world(second)});
  CHECK(piped.status == 0);
  CHECK(piped.err.find('\x1b') == std::string::npos);
  CHECK(piped.err.find('\r') == std::string::npos);
  for (const std::string& what : whats) {
    const std::string line = what + ": [0-9]+% of [0-9,]+ [a-z]+, [0-9hmins ]+ left";
    CHECK_MESSAGE(has_match(terminal, "\r\x1b\\[K\x1b\\[2m" + line), what << " in " << terminal);
    CHECK_MESSAGE(has_match(piped.err, "(^|\n)" + line + "\n"), what << " in " << piped.err);
  }
  CHECK(terminal.find("left\x1b[0m\r\n") == std::string::npos);  // wiped out in the end
  command.emplace_back("--quiet");
  if (!run.empty()) std::filesystem::remove_all(run);
  CHECK(run_process(command, {.environment = slow_world(third)}).err == "");
}

}  // namespace

TEST_CASE("long work: importing reads and writes and exporting writes with progress") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  check_shown({"import", ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2", "--out", run},
              {"reading .*/hf_gpt2/model.safetensors", "writing model.safetensors"}, run);
  check_shown({"export", run, (folder.path() / "gpt2").string()}, {"writing model.safetensors"});
  check_shown({"generate", run, "--prompt-ids", "1,2,3", "--tokens", "20", "--format", "json"}, {"generating"});
}

TEST_CASE("long work: learning merges and tokenising and evaluating and saving show progress") {
  if (skips_without_ci()) return;
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  std::ofstream long_text(path("long.txt"));  // more than is read at once
  for (int i = 0; i < 400'000; ++i) long_text << i << '\n';
  long_text.close();
  std::ofstream(path("short.txt")) << std::string(500, '7');
  std::ofstream(path("run.json")) << R"({"model": {"d_model": 8, "num_heads": 2, "context_length": 8},
      "data": {"kind": "text", "path": ")"
                                  << path("long.txt") << R"("},
      "train": {"steps": 2, "eval_every": 1, "eval_batches": 20, "batch_size": 2}})";
  check_shown({"train", path("run.json"), "--out", path("run")},
              {"reading the vocabulary of .*long.txt", "tokenising .*long.txt", "evaluating", "writing model.safetensors"},
              path("run"));
  check_shown({"eval", path("run")}, {"evaluating"});
  check_shown({"eval", path("run"), "--data", path("short.txt")}, {"evaluating .*short.txt"});
  check_shown({"tokenizer", "train", path("long.txt"), "--vocab-size", "300", "--out", path("bpe")},
              {"reading .*long.txt", "learning merges"});
}

}  // namespace onestep::testing

#endif

// What a run shows of itself: on a terminal, in a pipe, with --quiet and with NO_COLOR.
#include <doctest/doctest.h>

#include <regex>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/terminal.h"

namespace onestep::testing {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A short run with two evaluations.
std::vector<std::string> short_run(const TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {ONESTEP_BINARY_DIR "/onestep",
                                      "train",
                                      ONESTEP_SOURCE_DIR "/configs/sentence.json",
                                      "--out",
                                      (folder.path() / "run").string(),
                                      "--set",
                                      "train.steps=20",
                                      "--set",
                                      "train.eval_every=10",
                                      "--set",
                                      "train.log_every=1"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

/// What is left on a screen on which every line is wide enough.
std::vector<std::string> on_screen(const std::string& written) {
  std::vector<std::string> lines(1);
  for (size_t i = 0; i < written.size(); ++i) {
    if (written.compare(i, 4, "\r\x1b[K") == 0) {
      lines.back().clear();
      i += 3;
    } else if (written[i] == '\n') {
      lines.emplace_back();
    } else if (written[i] != '\r') {
      lines.back() += written[i];
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("progress: a terminal has one live line with the evaluations above it") {
  const TemporaryFolder folder;
  const std::string written = run_in_terminal(short_run(folder), 200);
  // The live line of the first step: dim, renewed in place.
  CHECK(contains(written, "\r\x1b[K\x1b[2mstep 1/20  loss "));
  const std::vector<std::string> lines = on_screen(written);
  std::vector<std::string> lasting;
  for (const std::string& line : lines)
    if (contains(line, "step ")) lasting.push_back(line);
  REQUIRE(lasting.size() == 2);  // nothing of the live line is left
  const std::regex whole(
      "\x1b\\[1mstep (10|20)/20  loss \\d\\.\\d{4}  smoothed \\d\\.\\d{4}  val_loss \\d\\.\\d{4}  val_accuracy [\\d.]+%  "
      "\\d+s left  lr [\\d.e-]+  [\\d,]+ tokens/s  [\\d,]+ MiB\x1b\\[0m");
  for (const std::string& line : lasting) CHECK_MESSAGE(std::regex_match(line, whole), line);
}

TEST_CASE("progress: NO_COLOR leaves out bold and dim and a dumb terminal every control code") {
  const TemporaryFolder folder;
  const std::string plain = run_in_terminal(short_run(folder), 200, {{"NO_COLOR", "1"}});
  CHECK(contains(plain, "\r\x1b[Kstep 1/20  loss "));
  CHECK_FALSE(contains(plain, "\x1b[1m"));
  CHECK_FALSE(contains(plain, "\x1b[2m"));
  const std::string dumb = run_in_terminal(short_run(folder), 200, {{"TERM", "dumb"}});
  CHECK(contains(dumb, "step 1/20  loss "));
  CHECK_FALSE(contains(dumb, "\x1b"));
}

TEST_CASE("progress: the live line never wraps in a narrow terminal") {
  const TemporaryFolder folder;
  const std::string written = run_in_terminal(short_run(folder, {"--set", "train.eval_every=0"}), 30, {{"NO_COLOR", "1"}});
  CHECK(contains(written, "\r\x1b[Kstep 1/20  loss "));
  for (size_t at = 0; (at = written.find("\r\x1b[K", at)) != std::string::npos;) {
    at += 4;
    const std::string line = written.substr(at, written.find('\r', at) - at);
    if (!contains(line, "20/20")) CHECK_MESSAGE(line.size() < 30, line);  // the last line stays, whole
  }
}

TEST_CASE("progress: a pipe gets plain lines and --quiet none") {
  const TemporaryFolder folder;
  const ProcessResult piped = run_process(short_run(folder));
  CHECK(piped.status == 0);
  CHECK_FALSE(contains(piped.err, "\x1b"));
  CHECK_FALSE(contains(piped.err, "\r"));
  CHECK(contains(piped.err, "\nstep 1/20  loss "));
  CHECK(contains(piped.err, "\nstep 10/20  loss "));
  CHECK(contains(piped.err, "\nstep 20/20  loss "));
  CHECK(run_process(short_run(folder, {"--quiet"})).err == "");
}

}  // namespace onestep::testing

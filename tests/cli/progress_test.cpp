// What a run shows of itself: on a terminal, in a pipe, with --quiet and with NO_COLOR.
#include "train/log/progress.h"

#include <doctest/doctest.h>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "tests/terminal.h"

namespace onestep::testing {
namespace {

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
  const std::string whole =
      "^\x1b\\[1mstep (10|20)/20  loss \\d\\.\\d{4}  val_loss \\d\\.\\d{4}  val_accuracy [\\d.]+%  smoothed \\d\\.\\d{4}  "
      "(\\d+s left  )?lr [\\d.e-]+  [\\d,]+ tokens/s  [\\d,]+ MiB\x1b\\[0m$";
  for (const std::string& line : lasting) CHECK_MESSAGE(has_match(line, whole), line);
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

TEST_CASE("progress: no line wraps and none ends inside a number") {
  const TemporaryFolder folder;
  const std::string whole = R"(^step \d+/20(  [a-z_]+ [\d.e-]+%?|  \d+s left|  [\d,]+ (tokens/s|MiB))*$)";
  for (const unsigned short columns : {uint16_t{30}, uint16_t{80}, uint16_t{100}}) {
    CAPTURE(columns);
    const std::string written = run_in_terminal(short_run(folder), columns, {{"NO_COLOR", "1"}});
    int shown = 0;
    for (size_t at = 0; (at = written.find("\r\x1b[K", at)) != std::string::npos; ++shown) {
      at += 4;
      const std::string line = written.substr(at, written.find('\r', at) - at);
      CHECK_MESSAGE(line.size() < columns, line);
      CHECK_MESSAGE((has_match(line, whole) || contains(line, "evaluating") || line.empty()), line);
    }
    CHECK(shown >= 3);
    if (columns > 30) CHECK(contains(written, "  val_accuracy "));
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
  const TemporaryFolder other;  // where no earlier run has to be moved away
  CHECK(run_process(short_run(other, {"--quiet"})).err == "");
}

TEST_CASE("progress: plain lines are at round steps") {
  using train::steps_between_lines;
  CHECK(steps_between_lines(1, 0.0) == 1);
  CHECK(steps_between_lines(3, 60.0) == 1);
  CHECK(steps_between_lines(90, 30.0) == 5);
  CHECK(steps_between_lines(1, 0.0005) == 2000);
  CHECK(steps_between_lines(10'000, 10.0) == 1000);
  CHECK(steps_between_lines(10'000, 3600.0) == 200);  // a fiftieth of the steps
}

TEST_CASE("progress: what the last line says of the loss agrees with itself") {
  const TemporaryFolder folder;
  const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/onestep", "train", ONESTEP_SOURCE_DIR "/configs/sentence.json",
                                            "--out", (folder.path() / "run").string()});
  const auto lines = all_matches(result.err, "step 200/200  loss (\\S+)  val_loss (\\S+) .* smoothed (\\S+)  ");
  REQUIRE(lines.size() == 1);
  const std::vector<std::string>& last = lines[0];
  const double loss = std::stod(last[1]), val_loss = std::stod(last[2]), smoothed = std::stod(last[3]);
  CHECK(loss > 0);
  CHECK(val_loss == doctest::Approx(loss).epsilon(0.1));
  CHECK(smoothed == doctest::Approx(loss).epsilon(0.1));
  CHECK(contains(result.out, "train loss   " + last[1]));
  CHECK(contains(result.out, "val loss     " + last[2]));
}

}  // namespace onestep::testing

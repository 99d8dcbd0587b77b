// The progress bar; tests/cli/progress_bar_test.cpp sees those of all commands.
#include "base/progress_bar.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/support.h"
#include "tests/terminal.h"

using onestep::ProgressBar;
using namespace onestep::testing;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Shows half of the work as done when it has taken more than a second.
void half_way(bool quiet, int64_t total) {
  ProgressBar progress("tokenising x.txt", total, "bytes", quiet);
  std::this_thread::sleep_for(milliseconds(1050));
  progress.show(total / 2);
}

const std::string kShown = "tokenising x\\.txt: 50% of 2,048 bytes, [0-9hmins ]+ left";

}  // namespace

TEST_CASE("progress bar: work that takes more than a second is shown in a plain line") {
  const std::string shown = in_file([] { half_way(/*quiet=*/false, 2048); });
  CHECK_MESSAGE(has_match(shown, "^" + kShown + "\n"), shown);
}

TEST_CASE("progress bar: a terminal has a dim line that is gone in the end") {
  const std::string shown = on_terminal([] { half_way(/*quiet=*/false, 2048); }, 100);
  CHECK_MESSAGE(has_match(shown, "^\r\x1b\\[K\x1b\\[2m" + kShown + "\x1b\\[0m"), shown);
  CHECK(shown.ends_with("\r\x1b[K"));
}

TEST_CASE("progress bar: nothing is said within a second") {
  const std::string shown = in_file([] {
    const auto start = Clock::now();
    ProgressBar progress("work", 10, "steps", /*quiet=*/false);
    progress.show(5);
    if (Clock::now() - start >= milliseconds(1000)) std::fputs("late\n", stderr);
  });
  CHECK_MESSAGE((shown.empty() || shown.ends_with("late\n")), shown);
}

TEST_CASE("progress bar: nothing is said when it is quiet or nothing is known to be done") {
  CHECK(in_file([] { half_way(/*quiet=*/true, 2048); }).empty());
  CHECK(in_file([] { half_way(/*quiet=*/false, 0); }).empty());
  CHECK(in_file([] { half_way(/*quiet=*/false, 1); }).empty());  // 0 of 1 are done
}

// The status line: what it writes on a terminal, with and without colour, and elsewhere.
#include "base/status_line.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/terminal.h"

using onestep::StatusLine;
using namespace onestep::testing;

namespace {

const std::string kClear = "\r\x1b[K";

/// Shows, prints and shows again.
void use() {
  StatusLine line;
  line.show({"one", "two"});
  line.print({"stays", "here"});
  line.show({"three"});
}

}  // namespace

TEST_CASE("status line: a terminal has a dim line that is replaced and bold ones that stay") {
  CHECK(on_terminal(use, 80) == kClear + "\x1b[2mone  two\x1b[0m" +             //
                                    kClear + "\x1b[1mstays  here\x1b[0m\r\n" +  //
                                    kClear + "\x1b[2mthree\x1b[0m" +            //
                                    kClear);                                    // in the end nothing is left
  CHECK(on_terminal([] { StatusLine().is_terminal() ? ::_exit(0) : ::_exit(1); }, 80).empty());
}

TEST_CASE("status line: NO_COLOR leaves out bold and dim and a dumb terminal gets plain lines") {
  CHECK(on_terminal(use, 80, {{"NO_COLOR", "1"}}) ==
        kClear + "one  two" + kClear + "stays  here\r\n" + kClear + "three" + kClear);
  CHECK(on_terminal(use, 80, {{"NO_COLOR", ""}}) == on_terminal(use, 80));  // only a value that is not empty counts
  CHECK(on_terminal(use, 80, {{"TERM", "dumb"}}) == "one  two\r\nstays  here\r\nthree\r\n");
}

TEST_CASE("status line: where stderr is no terminal all parts of every line are plain text") {
  CHECK(in_file(use) == "one  two\nstays  here\nthree\n");
  CHECK(in_file([] { StatusLine().is_terminal() ? ::_exit(1) : ::_exit(0); }).empty());
  const std::string part(300, 'x');
  CHECK(in_file([&] { StatusLine().show({part, part}); }) == part + "  " + part + "\n");
}

TEST_CASE("status line: parts that do not fit are left out and the first one is cut") {
  const auto shown = [](const std::vector<std::string>& parts, unsigned short columns) {
    return on_terminal([&] { StatusLine().show(parts); }, columns, {{"NO_COLOR", "1"}});
  };
  CHECK(shown({"0123456", "89"}, 12) == kClear + "0123456  89" + kClear);  // the last column stays free
  CHECK(shown({"0123456", "89"}, 11) == kClear + "0123456" + kClear);
  CHECK(shown({"0123456", "too long for it", "9"}, 14) == kClear + "0123456" + kClear);  // nothing after one that is left out
  CHECK(shown({"0123456"}, 6) == kClear + "01234" + kClear);
}

TEST_CASE("status line: what is kept stays and the next line begins below it") {
  const auto keep = [] {
    StatusLine line;
    line.show({"kept"});
    line.keep();
    line.keep();  // there is nothing more to keep
    line.show({"next"});
    line.keep();
  };
  CHECK(on_terminal(keep, 80, {{"NO_COLOR", "1"}}) == kClear + "kept\r\n" + kClear + "next\r\n");
  CHECK(in_file(keep) == "kept\nnext\n");
}

#pragma once
// The book's attention chapter as a program: sections, their results, and the comparison with what is printed.
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "learn/book/page.h"
#include "learn/book/printed.h"

namespace onestep::book {

struct Section {
  const char* number;
  const char* title;
  void (*show)(Page& page);
};

/// In the order of the chapter.
std::span<const Section> sections();

/// The section with this number and those below it ("3.3" is 3.3.1 and 3.3.2); all for an empty one, none if there is none.
std::vector<Section> find_sections(const std::string& number);

/// Computes `chosen`, with the dropout masks of `dialect` or, without one, of both.
std::vector<Result> compute(const std::vector<Section>& chosen, std::optional<RngDialect> dialect = {});

/// Prints results under the headings of their sections.
void print(std::ostream& out, std::span<const Result> results);

/// What was compared, and the first disagreement (`ID: element 3: expected 0.8434, got 0.8435 from ...`), empty if none.
struct Comparison {
  int results = 0, numbers = 0;
  std::string difference = {};
};

/// Compares each result, rounded to the printed digits, with those of `goldens` that it names.
Comparison compare(std::span<const Result> results, std::span<const Printed> goldens = printed());

/// Compares and prints the outcome in one line; false at a difference.
bool check(std::ostream& out, std::span<const Result> results, std::span<const Printed> goldens = printed());

}  // namespace onestep::book

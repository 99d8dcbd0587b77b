// "Did you mean ...?"
#include "base/suggest.h"

#include <doctest/doctest.h>

namespace onestep {

TEST_CASE("suggest: the edit distance counts insertions and deletions and replacements and swaps of neighbours") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("head", "heads") == 1);
  CHECK(edit_distance("heads", "hads") == 1);
  CHECK(edit_distance("train", "trian") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("suggest: the nearest name or none that is near") {
  const std::vector<std::string> names{"num_heads", "num_layers", "dropout"};
  CHECK(nearest("num_head", names) == "num_heads");
  CHECK(nearest("dropuot", names) == "dropout");
  CHECK(nearest("drop", names) == "dropout");
  CHECK(nearest("dr", names) == "");
  CHECK(nearest("banana", names) == "");
  CHECK(nearest("x", {}) == "");
}

TEST_CASE("suggest: what a message says of the nearest name") {
  CHECK(did_you_mean("dropout") == " (did you mean dropout?)");
  CHECK(did_you_mean("") == "");
  CHECK(did_you_mean("", " (see --help)") == " (see --help)");
}

}  // namespace onestep

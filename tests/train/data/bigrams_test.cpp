#include "train/data/bigrams.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace onestep::train;
using Ids = std::vector<int64_t>;
using doctest::Approx;

namespace {

constexpr int64_t kNone = -100;

}  // namespace

TEST_CASE("bigram_loss: on the tokens that were counted it is the conditional entropy") {
  const auto loss = [](const Ids& ids) { return bigram_loss(TokenList(ids), static_cast<int64_t>(ids.size()), 3, kNone); };
  CHECK(loss({0, 1, 2, 0, 1, 2, 0}) == 0.0);
  CHECK(loss({0, 1, 0, 2, 0, 1, 0, 2, 0}) == Approx(0.5 * std::log(2.0)));  // after 0: 1 or 2 at even odds
  CHECK(loss({2}) == 0.0);
  CHECK(loss({}) == 0.0);
}

TEST_CASE("bigram_loss: held-out pairs that were not counted get Witten-Bell's share") {
  // Counted: 0 1, 1 0, 0 2. Any token at all: (count + 3 / 4) / (3 + 3).
  const double seen = 1.75 / 6, never = 0.75 / 6;
  const auto loss = [](const Ids& ids) { return bigram_loss(TokenList(ids), 4, 4, kNone); };
  CHECK(loss({0, 1, 0, 2, 0, 1}) == Approx(-std::log((1 + 2 * seen) / 4)));
  CHECK(loss({0, 1, 0, 2, 0, 3}) == Approx(-std::log(2 * never / 4)));
  CHECK(loss({0, 1, 0, 2, 1, 1}) == Approx(-std::log(seen / 2)));
  CHECK(loss({0, 1, 0, 2, 3, 0}) == Approx(-std::log(seen)));  // 3 was never followed by anything
  CHECK(loss({0, 1, 0, 2, 3, 0, 1}) == Approx(-(std::log(seen) + std::log((1 + 2 * seen) / 4)) / 2));
  CHECK(loss({0, 1, 0, 2, 3}) == 0.0);  // no pair
}

TEST_CASE("bigram_loss: the ignored target counts nowhere") {
  CHECK(bigram_loss(TokenList(Ids{0, 1, 2, 0, 1, 1, 0}), 7, 3, 2) == Approx(2.0 / 5 * std::log(2.0)));
  // Counted: 0 1, 1 0; held out: 2 0, 0 1.
  const double seen = (1 + 2.0 / 3) / 4;
  CHECK(bigram_loss(TokenList(Ids{0, 1, 0, 2, 0, 2, 0, 1}), 4, 3, 2) ==
        Approx(-(std::log(seen) + std::log((1 + seen) / 2)) / 2));
}

TEST_CASE("bigram_loss: a block's last token is the next one's first") {
  Ids ids;
  for (int64_t i = 0; i < (1 << 16) + 1; ++i) ids.push_back(i % 2);
  ids.push_back(0);  // with the last one of the block the only pair 0 0
  const auto n = static_cast<double>(ids.size() - 1);
  const double zeros = n / 2 + 0.5;
  CHECK(bigram_loss(TokenList(ids), static_cast<int64_t>(ids.size()), 2, kNone) ==
        Approx(-((zeros - 1) * std::log((zeros - 1) / zeros) + std::log(1 / zeros)) / n));
}

#include "train/distributed/parameter_shards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace onestep::train;

namespace {

constexpr int64_t kChunk = 8;

int64_t elements(const Bucket& bucket) {
  int64_t sum = 0;
  for (const ParameterPiece& piece : bucket) sum += piece.size();
  return sum;
}

/// Every element belongs to one piece; pieces begin at chunks and are in the order of their owners.
void check_deal(const std::vector<int64_t>& sizes, int ranks, const std::vector<Bucket>& buckets) {
  std::map<size_t, int64_t> next;  // of each parameter: where its next piece begins
  for (const Bucket& bucket : buckets) {
    CHECK(std::is_sorted(bucket.begin(), bucket.end(), [](const auto& a, const auto& b) { return a.owner < b.owner; }));
    for (const ParameterPiece& piece : bucket) {
      REQUIRE(piece.parameter < sizes.size());
      CHECK(piece.begin == next[piece.parameter]);
      CHECK(piece.begin % kChunk == 0);
      CHECK(piece.end > piece.begin);
      CHECK((piece.end % kChunk == 0 || piece.end == sizes[piece.parameter]));
      CHECK(piece.owner >= 0);
      CHECK(piece.owner < ranks);
      next[piece.parameter] = piece.end;
    }
  }
  for (size_t p = 0; p < sizes.size(); ++p) CHECK(next[p] == sizes[p]);
}

}  // namespace

TEST_CASE("parameter shards: every element has one owner whatever the sizes and the number of ranks") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {7, 8, 9}, {100, 1, 1, 64, 3}, {1000}, {5, 800, 5}})
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (const int64_t bucket : {1, 50, 100000}) check_deal(sizes, ranks, deal_parameters(sizes, ranks, bucket, kChunk));
}

TEST_CASE("parameter shards: the ranks own equal parts of each bucket to a chunk and the last parameter travels first") {
  const std::vector<Bucket> buckets = deal_parameters({400, 80, 320}, 4, 160, kChunk);
  REQUIRE(buckets.size() == 5);
  CHECK(buckets.front().front().parameter == 2);
  CHECK(buckets.back().back().parameter == 0);
  for (const Bucket& bucket : buckets) {
    CHECK(elements(bucket) == 160);
    std::map<int, int64_t> owned;
    for (const ParameterPiece& piece : bucket) owned[piece.owner] += piece.size();
    for (int rank = 0; rank < 4; ++rank) CHECK(owned[rank] == 40);
  }
}

#include "train/distributed/parameter_shards.h"

#include <algorithm>

namespace onestep::train {
namespace {

/// Gives each piece the rank in whose share of the bucket its middle lies, and joins neighbours of one owner.
Bucket deal(const Bucket& chunks, int ranks) {
  int64_t total = 0, done = 0;
  for (const ParameterPiece& chunk : chunks) total += chunk.size();
  Bucket bucket;
  for (ParameterPiece chunk : chunks) {
    chunk.owner = static_cast<int>((2 * done + chunk.size()) * ranks / std::max<int64_t>(2 * total, 1));
    done += chunk.size();
    if (!bucket.empty() && bucket.back().parameter == chunk.parameter && bucket.back().owner == chunk.owner)
      bucket.back().end = chunk.end;
    else
      bucket.push_back(chunk);
  }
  return bucket;
}

}  // namespace

std::vector<Bucket> deal_parameters(const std::vector<int64_t>& sizes, int ranks, int64_t bucket_elements, int64_t chunk) {
  std::vector<Bucket> buckets;
  Bucket chunks;
  int64_t elements = 0;
  for (size_t p = sizes.size(); p-- > 0;) {
    for (int64_t begin = 0; begin < sizes[p]; begin += chunk) {
      chunks.push_back({p, begin, std::min(begin + chunk, sizes[p])});
      elements += chunks.back().size();
      if (elements < bucket_elements) continue;
      buckets.push_back(deal(chunks, ranks));
      chunks.clear();
      elements = 0;
    }
  }
  if (!chunks.empty()) buckets.push_back(deal(chunks, ranks));
  return buckets;
}

}  // namespace onestep::train

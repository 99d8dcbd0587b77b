#pragma once
// Who owns which elements of a model's parameters: their summed gradient, optimizer state and update.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onestep::train {

/// Elements begin .. end - 1 of a parameter.
struct ParameterPiece {
  size_t parameter = 0;
  int64_t begin = 0, end = 0;
  int owner = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const ParameterPiece&) const = default;
};

/// Every how manieth of `size` elements is taken, so that they are at most `most`.
inline int64_t sampling_stride(int64_t size, int64_t most) { return size > most ? (size + most - 1) / most : 1; }

/// What travels at a time; its pieces are in order of their owners.
using Bucket = std::vector<ParameterPiece>;

/// Deals parameters of these sizes over the ranks (as ZeRO stage 1 does: Rajbhandari et al. 2020), in buckets of about
/// `bucket_elements` that begin with the last parameter, whose gradient is ready first. Each bucket is cut into one run a rank,
/// as equal as `chunk` allows: pieces begin at its multiples.
std::vector<Bucket> deal_parameters(const std::vector<int64_t>& sizes, int ranks, int64_t bucket_elements, int64_t chunk);

}  // namespace onestep::train

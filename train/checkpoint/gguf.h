#pragma once
// Writing GGUF, the files of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), version 3.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "base/file_stamp.h"

namespace onestep::train {

/// How the numbers of a tensor are stored; the values are GGML's.
enum class GgmlType : uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };

/// What Q8_0 puts into one scale.
inline constexpr int64_t kQ8Block = 32;

/// Blocks of 32 numbers, count a multiple of 32: d = max |x| / 127 in float16, then round(x / d) in 8 bits each, halves away
/// from zero: 34 bytes a block, as ggml's quantize_row_q8_0 does.
std::vector<uint8_t> to_q8_0(std::span<const float> numbers);

/// A file that is put together, then written at once.
class GgufWriter {
 public:
  void add(const std::string& key, uint32_t value);
  void add(const std::string& key, float value);
  void add(const std::string& key, const std::string& value);
  void add(const std::string& key, const std::vector<std::string>& values);
  void add(const std::string& key, const std::vector<float>& values);
  void add(const std::string& key, const std::vector<int32_t>& values);
  /// A float32 tensor of rank 1 or 2, rounded as it is written. Q8_0 takes rows of a multiple of 32 numbers.
  void add_tensor(const std::string& name, const Tensor& tensor, GgmlType type);

  /// Writes the file (replaced if there). Progress goes to stderr unless `quiet`. Throws IoError.
  FileStamp write(const std::string& path, bool quiet = true) const;

 private:
  struct Entry {
    std::string name;
    Tensor tensor;
    GgmlType type;
  };

  /// Begins a pair; its value is appended to what is returned.
  std::string& pair(const std::string& key, uint32_t type);

  std::string pairs_;  // keys and values as they are in the file
  uint64_t pair_count_ = 0;
  std::vector<Entry> tensors_;
};

}  // namespace onestep::train

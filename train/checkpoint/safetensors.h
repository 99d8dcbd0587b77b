#pragma once
// Tensors in files: the safetensors format (https://github.com/huggingface/safetensors), strictly read.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "base/hash.h"

namespace onestep::train {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// What a safetensors file holds, tensors in the order of their bytes.
struct TensorFile {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes the tensors to `path` (replaced if there) and waits until the bytes are on the disk. Progress goes to stderr
/// unless `quiet`. Throws IoError.
FileStamp write_safetensors(const std::string& path, const NamedTensors& tensors,
                            const std::map<std::string, std::string>& metadata = {}, bool quiet = true);

/// Reads a file of F32, F64, F16, BF16, I64, I32, U8 and BOOL tensors of rank up to 8. Throws IoError, naming the file, the
/// tensor and the rule,
/// for anything the format does not allow; nothing is allocated that the file does not hold. Progress goes to stderr unless
/// `quiet`.
TensorFile read_safetensors(const std::string& path, bool quiet = true);

}  // namespace onestep::train

#pragma once
// Tensors in files: the safetensors format (https://github.com/huggingface/safetensors), strictly read.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "base/file_stamp.h"

namespace onestep {
class InputFile;
}

namespace onestep::train {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// What a safetensors file holds, tensors in the order of their bytes.
struct TensorFile {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes the tensors to `path` (replaced if there) and waits until the bytes are on the disk; with `dtype` floating ones are
/// rounded to it, one at a time. Progress goes to stderr unless `quiet`. Throws IoError.
FileStamp write_safetensors(const std::string& path, const NamedTensors& tensors,
                            const std::map<std::string, std::string>& metadata = {}, bool quiet = true,
                            std::optional<DType> dtype = {});

/// A tensor of a file that has not been read yet.
struct TensorEntry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin, end;  ///< Its bytes in the data of the file.
};

/// An open safetensors file, whose tensors are read as they are needed.
class SafetensorsReader {
 public:
  /// Reads and checks the header. Throws IoError as read_safetensors does.
  explicit SafetensorsReader(const std::string& path);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  const std::string& path() const { return path_; }
  /// All tensors, in the order of their bytes.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  Tensor read(const TensorEntry& entry);
  /// Calls visit(rows, first row) for all rows of a tensor, in blocks of a few MiB.
  void for_each_block(const TensorEntry& entry, const std::function<void(const Tensor& rows, int64_t first_row)>& visit);

 private:
  void read_elements(const TensorEntry& entry, const Tensor& to);

  std::string path_;
  std::unique_ptr<InputFile> file_;
  uint64_t data_begin_ = 0;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Reads a file of F32, F64, F16, BF16, I64, I32, U8 and BOOL tensors of rank up to 8. Throws IoError, naming the file, the
/// tensor and the rule,
/// for anything the format does not allow; nothing is allocated that the file does not hold. Progress goes to stderr unless
/// `quiet`.
TensorFile read_safetensors(const std::string& path, bool quiet = true);

}  // namespace onestep::train

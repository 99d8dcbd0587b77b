#pragma once
// The weights of a folder: model.safetensors, or the files that model.safetensors.index.json lists.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint/safetensors.h"

namespace onestep::train {

/// All tensors of the folder by name; none is read yet.
class SafetensorsFolder {
 public:
  struct Found {
    SafetensorsReader* file;
    const TensorEntry* entry;
    /// `FILE: tensor "NAME"`, for messages.
    std::string place() const;
  };

  /// Throws IoError for a folder with neither, and where files and index differ: a file that is no name of one in the folder, a
  /// tensor in another file than the index says, one that it does not list, or in no file.
  explicit SafetensorsFolder(const std::filesystem::path& folder);

  /// model.safetensors, or the index.
  const std::string& path() const { return path_; }
  const std::map<std::string, Found>& tensors() const { return tensors_; }
  /// Bytes of all tensors.
  int64_t bytes() const;

 private:
  void add(const std::filesystem::path& file);

  std::string path_;
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  std::map<std::string, Found> tensors_;
};

}  // namespace onestep::train

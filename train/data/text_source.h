#pragma once
// The text of a config of kind `text`: one file, or several one after the other.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/read_file.h"
#include "train/config/config.h"

namespace onestep::train {

/// The file data.path, or those of data.paths, each once. Names are relative to the working directory; of a run that has none
/// of that name there, to the nearest folder above it that has. Throws ConfigError for a pattern that no file matches.
std::vector<std::string> text_files(const Config& config);

/// The file data.val_path, likewise; none where there is none.
std::vector<std::string> validation_files(const Config& config);

/// Several files as one text. Throws IoError, naming the file, for one that cannot be read.
class TextReader {
 public:
  explicit TextReader(std::vector<std::string> files);

  /// Reads up to `count` bytes, 0 at the end. Throws IoError at the end if a file is not what it was at the beginning.
  size_t read(char* to, size_t count);
  /// Bytes of all files.
  int64_t bytes() const { return starts_.back(); }
  /// Differs whenever a file has been changed or replaced: names, sizes, times and inodes, hashed.
  const std::string& stamp() const { return stamp_; }
  /// `FILE: offset 12` for an offset in the whole text.
  std::string place(int64_t offset) const;

 private:
  std::vector<std::string> files_;
  std::vector<int64_t> starts_;  // of each file in the whole text, and its end
  std::string stamp_;
  size_t next_ = 0;
  std::unique_ptr<InputFile> open_;
};

}  // namespace onestep::train

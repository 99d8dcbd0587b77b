#pragma once
// samples.jsonl: what the model of a run wrote while it trained.
#include <cstdint>
#include <string>

#include "base/write_file.h"

namespace onestep::train {

/// One JSON object a sample in a file. Throws IoError.
class SampleFile {
 public:
  /// Goes on after the samples of the steps before `first_step`; later ones, of a run that was killed, and half a line at the
  /// end are cut off. A line before them that is none of ours is refused.
  SampleFile(const std::string& path, int64_t first_step);
  /// Appends a sample, whose texts are UTF-8.
  void write(int64_t step, const std::string& prompt, const std::string& continuation);

 private:
  OutputFile out_;
};

}  // namespace onestep::train

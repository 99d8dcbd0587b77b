#pragma once
// state.json of a checkpoint: all of it but the tensors, and the stamps of the files that hold those.
#include <map>
#include <string>

#include "base/file_stamp.h"
#include "train/checkpoint/checkpoint.h"

namespace onestep::train {

/// By file name.
using FileStamps = std::map<std::string, FileStamp>;

/// The text of state.json. Its last member is the hash of what comes before, so that a damaged one is told from a whole one.
std::string state_json(const Checkpoint& checkpoint, const FileStamps& files);

/// What state.json holds; `checkpoint` is without tensors.
struct StateFile {
  Checkpoint checkpoint;
  FileStamps files;
};

/// Reads a state.json. Throws IoError naming the file and the field for anything that state_json() does not write.
StateFile read_state_file(const std::string& path);

}  // namespace onestep::train

#pragma once
// RUN/frozen.safetensors: the parameters that training does not change, once for all checkpoints of a run.
#include <filesystem>

#include "train/checkpoint/safetensors.h"

namespace onestep::train {

inline constexpr const char* kFrozenFile = "frozen.safetensors";

/// Lets the file of another run stand for the frozen parameters of this one, as a second name of it (a hard link): no bytes are
/// copied. Nothing happens where the file system has no such names, or where `run` has the file. Whether it holds the
/// parameters is keep_frozen's to find out.
void share_frozen(const std::filesystem::path& run, const std::filesystem::path& file);

/// Writes the file, durably, unless it is there and holds these very tensors; its stamp. Throws IoError.
FileStamp keep_frozen(const std::filesystem::path& run, const NamedTensors& tensors, bool quiet);

}  // namespace onestep::train

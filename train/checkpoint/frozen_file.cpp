#include "train/checkpoint/frozen_file.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/read_file.h"
#include "base/write_file.h"

namespace onestep::train {

namespace fs = std::filesystem;

namespace {

/// Whether the file holds these tensors and no others, bit for bit.
bool holds(const fs::path& path, const NamedTensors& tensors) {
  SafetensorsReader reader(path.string());
  const std::map<std::string, Tensor> wanted(tensors.begin(), tensors.end());
  bool same = reader.entries().size() == wanted.size();
  for (const TensorEntry& entry : reader.entries()) {
    const auto found = wanted.find(entry.name);
    same = same && found != wanted.end() && found->second.dtype() == entry.dtype && found->second.shape() == entry.shape;
    if (!same) return false;
    const Tensor& tensor = found->second;
    reader.for_each_block(entry, [&](const Tensor& rows, int64_t first) {
      const auto bytes = static_cast<size_t>(rows.numel() * size_of(rows.dtype()));
      const int64_t row = rows.numel() * size_of(rows.dtype()) / std::max<int64_t>(rows.size(0), 1);
      same = same && std::memcmp(rows.data_ptr(), static_cast<const char*>(tensor.data_ptr()) + first * row, bytes) == 0;
    });
  }
  return same;
}

}  // namespace

void share_frozen(const fs::path& run, const fs::path& file) {
  std::error_code no_links;
  fs::create_hard_link(file, run / kFrozenFile, no_links);
}

FileStamp keep_frozen(const fs::path& run, const NamedTensors& tensors, bool quiet) {
  const fs::path path = run / kFrozenFile;
  try {
    if (fs::exists(path) && holds(path, tensors)) return stamp_file(path.string());
  } catch (const IoError&) {  // it is another file, and gives way
  }
  const fs::path temporary = temporary_path(path);
  const FileStamp stamp = write_safetensors(temporary.string(), tensors, {}, quiet);
  rename_path(temporary, path);
  sync_folder(run);
  return stamp;
}

}  // namespace onestep::train

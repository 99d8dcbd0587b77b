#include "train/checkpoint/safetensors_folder.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/json_reader.h"
#include "base/utf8.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = int64_t{16} << 20;

/// Which tensor is in which file.
std::map<std::string, std::string> read_index(const std::string& path) {
  const json root = read_json<IoError>(path, kMaxIndexBytes);
  ONESTEP_CHECK(IoError, root.is_object() && root.contains("weight_map") && root["weight_map"].is_object(), path,
                ": /weight_map: must be an object of tensors and files");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : root["weight_map"].items()) {
    const bool named = file.is_string() && fs::path(file.get<std::string>()).filename() == file.get<std::string>() &&
                       file.get<std::string>().ends_with(".safetensors");
    ONESTEP_CHECK(IoError, named, path, ": ", json_pointer("/weight_map", name), ": must be a file NAME.safetensors: got ",
                  brief(file));
    files[name] = file.get<std::string>();
  }
  return files;
}

}  // namespace

std::string SafetensorsFolder::Found::place() const { return file->path() + ": tensor " + quote(entry->name); }

SafetensorsFolder::SafetensorsFolder(const fs::path& folder) : path_((folder / kModel).string()) {
  if (fs::exists(path_) || !fs::exists(folder / kIndex)) {
    add(path_);
    return;
  }
  path_ = (folder / kIndex).string();
  const std::map<std::string, std::string> index = read_index(path_);
  std::set<std::string> files;
  for (const auto& [_, file] : index) files.insert(file);
  for (const std::string& file : files) add(folder / file);
  for (const auto& [name, file] : index) {
    const auto found = tensors_.find(name);
    ONESTEP_CHECK(IoError, found != tensors_.end() && fs::path(found->second.file->path()).filename() == file, path_, ": ",
                  json_pointer("/weight_map", name), ": the tensor is not in ", quote(file));
  }
  for (const auto& [name, found] : tensors_)
    ONESTEP_CHECK(IoError, index.contains(name), found.place(), ": is not listed in ", kIndex);
}

void SafetensorsFolder::add(const fs::path& file) {
  SafetensorsReader& reader = *files_.emplace_back(std::make_unique<SafetensorsReader>(file.string()));
  for (const TensorEntry& entry : reader.entries()) {
    const Found found{&reader, &entry};
    const auto [other, fresh] = tensors_.emplace(entry.name, found);
    ONESTEP_CHECK(IoError, fresh, found.place(), ": is in ", other->second.file->path(), ", too");
  }
}

int64_t SafetensorsFolder::bytes() const {
  int64_t total = 0;
  for (const auto& [_, found] : tensors_) total += static_cast<int64_t>(found.entry->end - found.entry->begin);
  return total;
}

}  // namespace onestep::train

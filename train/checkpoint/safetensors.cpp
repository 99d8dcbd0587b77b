#include "train/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "autograd/creation.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "base/json_reader.h"
#include "base/progress_bar.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "base/write_file.h"

namespace onestep::train {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian bytes");

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr std::array<std::pair<std::string_view, DType>, kDTypes> kNames{{{"F32", DType::float32},
                                                                          {"F64", DType::float64},
                                                                          {"F16", DType::float16},
                                                                          {"BF16", DType::bfloat16},
                                                                          {"I64", DType::int64},
                                                                          {"I32", DType::int32},
                                                                          {"U8", DType::uint8},
                                                                          {"BOOL", DType::boolean}}};

/// One tensor of a checked header.
struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin, end;
};

uint64_t count_value(const nlohmann::json& value, const std::string& place) {
  ONESTEP_CHECK(IoError, value.is_number_unsigned(), place, ": ", brief(value), " is not a count (a whole number from 0)");
  return value.get<uint64_t>();
}

/// With `bytes` those of its elements. Refuses what check_sizes would refuse.
Shape read_shape(const nlohmann::json& value, const std::string& place, uint64_t item_bytes, uint64_t& bytes) {
  ONESTEP_CHECK(IoError, value.is_array(), place, ": shape must be a list of counts");
  ONESTEP_CHECK(IoError, value.size() <= kMaxRank, place, ": rank ", value.size(), " is above the limit of ", kMaxRank);
  Shape shape;
  bool empty = false, overflows = false;
  bytes = item_bytes;
  for (const auto& size : value) {
    const uint64_t n = count_value(size, place + ": shape");
    empty |= n == 0;
    overflows |= n > INT64_MAX || __builtin_mul_overflow(bytes, std::max<uint64_t>(n, 1), &bytes) || bytes > item_bytes << 59;
    shape.push_back(static_cast<int64_t>(n));
  }
  ONESTEP_CHECK(IoError, !overflows, place, ": shape ", brief(value), " has more elements than can be counted");
  if (empty) bytes = 0;
  return shape;
}

Entry read_entry(const std::string& name, const nlohmann::json& value, const std::string& place, uint64_t data_bytes) {
  const bool complete = value.is_object() && value.size() == 3 && value.contains("dtype") && value.contains("shape") &&
                        value.contains("data_offsets");
  ONESTEP_CHECK(IoError, complete, place, ": needs exactly dtype, shape and data_offsets");
  const auto* const known =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& d) { return value["dtype"] == d.first; });
  ONESTEP_CHECK(IoError, known != kNames.end(), place, ": dtype ", brief(value["dtype"]),
                " is not one of F32, F64, F16, BF16, I64, I32, U8, BOOL");
  Entry entry{name, known->second, {}, 0, 0};
  uint64_t bytes = 0;
  entry.shape = read_shape(value["shape"], place, static_cast<uint64_t>(size_of(entry.dtype)), bytes);
  const auto& offsets = value["data_offsets"];
  ONESTEP_CHECK(IoError, offsets.is_array() && offsets.size() == 2, place, ": data_offsets must be [begin, end]");
  entry.begin = count_value(offsets[0], place + ": data_offsets");
  entry.end = count_value(offsets[1], place + ": data_offsets");
  ONESTEP_CHECK(IoError, entry.begin <= entry.end && entry.end <= data_bytes, place, ": data_offsets ", brief(offsets),
                " are not within the ", data_bytes, " bytes of data");
  ONESTEP_CHECK(IoError, entry.end - entry.begin == bytes, place, ": data_offsets ", brief(offsets), " hold ",
                entry.end - entry.begin, " bytes, its shape and dtype need ", bytes);
  return entry;
}

std::vector<Entry> read_entries(const nlohmann::json& header, const std::string& path, uint64_t data_bytes) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items())
    if (name != "__metadata__") entries.push_back(read_entry(name, value, path + ": tensor " + quote(name), data_bytes));
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t next = 0;
  for (const Entry& entry : entries) {
    ONESTEP_CHECK(IoError, entry.begin == next, path, ": tensor ", quote(entry.name), ": begins at byte ", entry.begin,
                  " of the data where byte ", next, " is due (no holes, no overlaps)");
    next = entry.end;
  }
  ONESTEP_CHECK(IoError, next == data_bytes, path, ": ", data_bytes - next, " bytes after the last tensor belong to none");
  return entries;
}

std::map<std::string, std::string> read_metadata(const nlohmann::json& header, const std::string& path) {
  std::map<std::string, std::string> metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  ONESTEP_CHECK(IoError, found->is_object(), path, ": __metadata__ must be an object of strings");
  for (const auto& [key, value] : found->items()) {
    ONESTEP_CHECK(IoError, value.is_string(), path, ": __metadata__ ", quote(key), " must be a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::string header_text(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto dtype =
        std::find_if(kNames.begin(), kNames.end(), [&t = tensor](const auto& d) { return d.second == t.dtype(); })->first;
    const int64_t end = begin + tensor.numel() * size_of(tensor.dtype());
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    ONESTEP_CHECK(IoError, !header.contains(name), "write_safetensors: two tensors are called ", quote(name));
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  return text;
}

}  // namespace

FileStamp write_safetensors(const std::string& path, const NamedTensors& tensors,
                            const std::map<std::string, std::string>& metadata, bool quiet) {
  const std::string header = header_text(tensors, metadata);
  const uint64_t length = header.size();
  int64_t bytes = 0, written = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.numel() * size_of(tensor.dtype());
  LongWork progress("writing " + std::filesystem::path(path).filename().string(), bytes, "bytes", quiet);
  OutputFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    const NoGradGuard no_grad;
    const Tensor rows = contiguous(tensor);
    const int64_t size = rows.numel() * size_of(rows.dtype());
    file.write(rows.data_ptr(), static_cast<size_t>(size));
    progress.show(written += size);
  }
  return file.finish();
}

TensorFile read_safetensors(const std::string& path, bool quiet) {
  InputFile file(path);
  const uint64_t size = file.size();
  uint64_t length = 0;
  ONESTEP_CHECK(IoError, size >= sizeof length, path, ": ", size, " bytes are too few for a safetensors file");
  file.read(&length, sizeof length);
  ONESTEP_CHECK(IoError, length <= kMaxHeader && length <= size - sizeof length, path, ": its header claims ", length,
                " bytes, the file has ", size - sizeof length, " left (and ", kMaxHeader, " is the limit)");
  std::string text(length, '\0');
  file.read(text.data(), text.size());
  ONESTEP_CHECK(IoError, text.starts_with('{'), path, ": its header does not begin with {");
  const nlohmann::json header = parse_json<IoError>(text, path);
  LongWork progress("reading " + path, static_cast<int64_t>(size), "bytes", quiet);
  TensorFile result;
  result.metadata = read_metadata(header, path);
  for (const Entry& entry : read_entries(header, path, size - sizeof length - length)) {
    Tensor tensor = empty(entry.shape, entry.dtype);
    file.read(tensor.mutable_data_ptr(), entry.end - entry.begin);
    if (entry.dtype == DType::boolean) {  // bytes other than 0 and 1 are no bools: read as bytes, checked, then kept
      const auto* bytes = static_cast<const uint8_t*>(tensor.data_ptr());
      ONESTEP_CHECK(IoError, std::all_of(bytes, bytes + tensor.numel(), [](uint8_t b) { return b <= 1; }), path, ": tensor ",
                    quote(entry.name), ": a BOOL byte is neither 0 nor 1");
    }
    result.tensors.emplace_back(entry.name, tensor);
    progress.show(static_cast<int64_t>(entry.end));
  }
  return result;
}

}  // namespace onestep::train

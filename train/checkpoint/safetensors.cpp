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
constexpr int64_t kBlockBytes = int64_t{4} << 20;
constexpr std::array<std::pair<std::string_view, DType>, kDTypes> kNames{{{"F32", DType::float32},
                                                                          {"F64", DType::float64},
                                                                          {"F16", DType::float16},
                                                                          {"BF16", DType::bfloat16},
                                                                          {"I64", DType::int64},
                                                                          {"I32", DType::int32},
                                                                          {"U8", DType::uint8},
                                                                          {"BOOL", DType::boolean}}};

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

TensorEntry read_entry(const std::string& name, const nlohmann::json& value, const std::string& place, uint64_t data_bytes) {
  const bool complete = value.is_object() && value.size() == 3 && value.contains("dtype") && value.contains("shape") &&
                        value.contains("data_offsets");
  ONESTEP_CHECK(IoError, complete, place, ": needs exactly dtype, shape and data_offsets");
  const auto* const known =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& d) { return value["dtype"] == d.first; });
  ONESTEP_CHECK(IoError, known != kNames.end(), place, ": dtype ", brief(value["dtype"]),
                " is not one of F32, F64, F16, BF16, I64, I32, U8, BOOL");
  TensorEntry entry{name, known->second, {}, 0, 0};
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

std::vector<TensorEntry> read_entries(const nlohmann::json& header, const std::string& path, uint64_t data_bytes) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : header.items())
    if (name != "__metadata__") entries.push_back(read_entry(name, value, path + ": tensor " + quote(name), data_bytes));
  std::sort(entries.begin(), entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t next = 0;
  for (const TensorEntry& entry : entries) {
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

/// As what a tensor is written.
DType written_dtype(const Tensor& tensor, std::optional<DType> dtype) {
  return dtype && tensor.is_floating() ? *dtype : tensor.dtype();
}

std::string header_text(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata,
                        std::optional<DType> as) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const DType stored = written_dtype(tensor, as);
    const auto dtype = std::find_if(kNames.begin(), kNames.end(), [&](const auto& d) { return d.second == stored; })->first;
    const int64_t end = begin + tensor.numel() * size_of(stored);
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
                            const std::map<std::string, std::string>& metadata, bool quiet, std::optional<DType> dtype) {
  const std::string header = header_text(tensors, metadata, dtype);
  const uint64_t length = header.size();
  int64_t bytes = 0, written = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.numel() * size_of(written_dtype(tensor, dtype));
  ProgressBar progress("writing " + std::filesystem::path(path).filename().string(), bytes, "bytes", quiet);
  OutputFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    const NoGradGuard no_grad;
    const Tensor rows = contiguous(tensor).to(written_dtype(tensor, dtype));
    const int64_t size = rows.numel() * size_of(rows.dtype());
    file.write(rows.data_ptr(), static_cast<size_t>(size));
    progress.show(written += size);
  }
  return file.finish();
}

SafetensorsReader::SafetensorsReader(const std::string& path) : path_(path), file_(std::make_unique<InputFile>(path)) {
  const uint64_t size = file_->size();
  uint64_t length = 0;
  ONESTEP_CHECK(IoError, size >= sizeof length, path, ": ", size, " bytes are too few for a safetensors file");
  file_->read(&length, sizeof length);
  ONESTEP_CHECK(IoError, length <= kMaxHeader && length <= size - sizeof length, path, ": its header claims ", length,
                " bytes, the file has ", size - sizeof length, " left (and ", kMaxHeader, " is the limit)");
  std::string text(length, '\0');
  file_->read(text.data(), text.size());
  ONESTEP_CHECK(IoError, text.starts_with('{'), path, ": its header does not begin with {");
  const nlohmann::json header = parse_json<IoError>(text, path);
  data_begin_ = sizeof length + length;
  metadata_ = read_metadata(header, path);
  entries_ = read_entries(header, path, size - data_begin_);
}

SafetensorsReader::~SafetensorsReader() = default;

/// The elements of `to`, of the entry's dtype, which is where the file stands.
void SafetensorsReader::read_elements(const TensorEntry& entry, const Tensor& to) {
  Tensor target = to;
  file_->read(target.mutable_data_ptr(), static_cast<size_t>(to.numel() * size_of(entry.dtype)));
  if (entry.dtype != DType::boolean) return;
  const auto* bytes = static_cast<const uint8_t*>(to.data_ptr());  // other than 0 and 1 they are no bools
  ONESTEP_CHECK(IoError, std::all_of(bytes, bytes + to.numel(), [](uint8_t b) { return b <= 1; }), path_, ": tensor ",
                quote(entry.name), ": a BOOL byte is neither 0 nor 1");
}

Tensor SafetensorsReader::read(const TensorEntry& entry) {
  Tensor tensor = empty(entry.shape, entry.dtype);
  file_->seek(data_begin_ + entry.begin);
  read_elements(entry, tensor);
  return tensor;
}

void SafetensorsReader::for_each_block(const TensorEntry& entry,
                                       const std::function<void(const Tensor& rows, int64_t first_row)>& visit) {
  Shape shape = entry.shape.rank() > 0 ? entry.shape : Shape{1};
  const int64_t rows = shape[0];
  const auto row_bytes = rows > 0 ? static_cast<int64_t>(entry.end - entry.begin) / rows : 0;
  const int64_t most = std::max<int64_t>(kBlockBytes / std::max<int64_t>(row_bytes, 1), 1);
  file_->seek(data_begin_ + entry.begin);
  for (int64_t first = 0; first < rows; first += most) {
    shape[0] = std::min(most, rows - first);
    const Tensor block = empty(shape, entry.dtype);
    read_elements(entry, block);
    visit(block, first);
  }
}

TensorFile read_safetensors(const std::string& path, bool quiet) {
  SafetensorsReader reader(path);
  const auto bytes = reader.entries().empty() ? 0 : static_cast<int64_t>(reader.entries().back().end);
  ProgressBar progress("reading " + path, bytes, "bytes", quiet);
  TensorFile result{{}, reader.metadata()};
  for (const TensorEntry& entry : reader.entries()) {
    result.tensors.emplace_back(entry.name, reader.read(entry));
    progress.show(static_cast<int64_t>(entry.end));
  }
  return result;
}

}  // namespace onestep::train

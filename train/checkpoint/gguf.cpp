#include "train/checkpoint/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "autograd/half.h"
#include "autograd/ops_shape.h"
#include "base/progress_bar.h"
#include "base/write_file.h"

namespace onestep::train {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF holds little-endian bytes");

constexpr uint32_t kVersion = 3;
constexpr uint64_t kTensorAlignment = 32;  // of the data of each tensor

// Types of values.
constexpr uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kString = 8, kArray = 9;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& out, const std::string& text) {
  put(out, uint64_t{text.size()});
  out += text;
}

template <class T>
void put_array(std::string& out, uint32_t type, const std::vector<T>& values) {
  put(out, type);
  put(out, uint64_t{values.size()});
  for (const T& value : values) put(out, value);
}

uint64_t aligned(uint64_t at) { return (at + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

uint64_t stored_bytes(int64_t numbers, GgmlType type) {
  const auto n = static_cast<uint64_t>(numbers);
  if (type == GgmlType::q8_0) return n / kQ8Block * (kQ8Block + 2);
  return n * (type == GgmlType::f32 ? 4 : 2);
}

/// Writes the numbers of a tensor as the type has them.
void write_numbers(OutputFile& file, const Tensor& tensor, GgmlType type) {
  const NoGradGuard no_grad;
  const Tensor rows = contiguous(tensor);
  if (type == GgmlType::q8_0) {
    const std::vector<uint8_t> blocks = to_q8_0({rows.data<float>(), static_cast<size_t>(rows.numel())});
    return file.write(blocks.data(), blocks.size());
  }
  const DType dtype = type == GgmlType::f16 ? DType::float16 : type == GgmlType::bf16 ? DType::bfloat16 : DType::float32;
  const Tensor rounded = rows.to(dtype);
  file.write(rounded.data_ptr(), stored_bytes(rounded.numel(), type));
}

}  // namespace

std::vector<uint8_t> to_q8_0(std::span<const float> numbers) {
  std::vector<uint8_t> out;
  out.reserve(stored_bytes(static_cast<int64_t>(numbers.size()), GgmlType::q8_0));
  for (size_t at = 0; at + kQ8Block <= numbers.size(); at += kQ8Block) {
    const std::span<const float> block = numbers.subspan(at, kQ8Block);
    float largest = 0;
    for (const float x : block) largest = std::max(largest, std::abs(x));
    const float scale = largest / 127, inverse = scale == 0 ? 0 : 1 / scale;
    const uint16_t half = half_of_float(scale);
    out.push_back(static_cast<uint8_t>(half & 0xff));
    out.push_back(static_cast<uint8_t>(half >> 8));
    for (const float x : block) out.push_back(static_cast<uint8_t>(static_cast<int8_t>(std::round(x * inverse))));
  }
  return out;
}

std::string& GgufWriter::pair(const std::string& key, uint32_t type) {
  put(pairs_, key);
  put(pairs_, type);
  ++pair_count_;
  return pairs_;
}

void GgufWriter::add(const std::string& key, uint32_t value) { put(pair(key, kUint32), value); }
void GgufWriter::add(const std::string& key, float value) { put(pair(key, kFloat32), value); }
void GgufWriter::add(const std::string& key, const std::string& value) { put(pair(key, kString), value); }
void GgufWriter::add(const std::string& key, const std::vector<std::string>& values) {
  put_array(pair(key, kArray), kString, values);
}
void GgufWriter::add(const std::string& key, const std::vector<float>& values) {
  put_array(pair(key, kArray), kFloat32, values);
}
void GgufWriter::add(const std::string& key, const std::vector<int32_t>& values) {
  put_array(pair(key, kArray), kInt32, values);
}

void GgufWriter::add_tensor(const std::string& name, const Tensor& tensor, GgmlType type) {
  ONESTEP_CHECK(DTypeError, tensor.dtype() == DType::float32, "gguf: ", name, " must be float32: is ", tensor.dtype());
  ONESTEP_CHECK(ShapeError, type != GgmlType::q8_0 || (tensor.dim() > 0 && tensor.size(-1) % kQ8Block == 0), "gguf: ", name,
                " cannot be Q8_0: rows must be a multiple of ", kQ8Block, " numbers: is ", tensor.shape());
  tensors_.push_back({name, tensor, type});
}

FileStamp GgufWriter::write(const std::string& path, bool quiet) const {
  std::string header = "GGUF";
  put(header, kVersion);
  put(header, uint64_t{tensors_.size()});
  put(header, pair_count_);
  header += pairs_;
  uint64_t offset = 0;
  for (const Entry& entry : tensors_) {
    put(header, entry.name);
    put(header, static_cast<uint32_t>(entry.tensor.dim()));
    for (int64_t d = entry.tensor.dim() - 1; d >= 0; --d) put(header, static_cast<uint64_t>(entry.tensor.size(d)));
    put(header, static_cast<uint32_t>(entry.type));
    put(header, offset);
    offset = aligned(offset + stored_bytes(entry.tensor.numel(), entry.type));
  }
  header.resize(aligned(header.size()));
  ProgressBar progress("writing " + std::filesystem::path(path).filename().string(), static_cast<int64_t>(offset), "bytes",
                       quiet);
  OutputFile file(path);
  file.write(header);
  uint64_t written = 0;
  for (const Entry& entry : tensors_) {
    write_numbers(file, entry.tensor, entry.type);
    const uint64_t end = written + stored_bytes(entry.tensor.numel(), entry.type);
    written = aligned(end);
    file.write(std::string(written - end, '\0'));
    progress.show(static_cast<int64_t>(written));
  }
  return file.finish();
}

}  // namespace onestep::train

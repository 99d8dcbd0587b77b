#include "train/log/tensorboard_writer.h"

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "base/write_file.h"

namespace onestep::train {
namespace {

/// The low `count` bytes, lowest first.
std::string little_endian(uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

// The encoding of protocol buffers: a field is its key (number << 3 | wire type) and its value.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}
std::string key(uint32_t field, WireType type) { return varint(field << 3 | type); }
std::string int_field(uint32_t field, int64_t value) { return key(field, kVarint) + varint(static_cast<uint64_t>(value)); }
std::string double_field(uint32_t field, double value) {
  return key(field, kFixed64) + little_endian(std::bit_cast<uint64_t>(value), 8);
}
std::string float_field(uint32_t field, float value) {
  return key(field, kFixed32) + little_endian(std::bit_cast<uint32_t>(value), 4);
}
std::string bytes_field(uint32_t field, std::string_view bytes) {
  return key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// TFRecord's checksum: a CRC rotated and shifted, so that a CRC over data that holds CRCs stays meaningful.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string new_file(const std::string& folder) {
  make_folders(folder);
  return folder + "/events.out.tfevents." + std::to_string(static_cast<int64_t>(seconds_since_1970())) + ".onestep";
}

constexpr uint32_t reflected_table_entry(uint32_t byte) {
  uint32_t crc = byte;
  for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  return crc;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t byte = 0; byte < 256; ++byte) entries[byte] = reflected_table_entry(byte);
    return entries;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

EventFile::EventFile(const std::string& folder, std::optional<int64_t> first_step)
    : out_(std::make_unique<OutputFile>(new_file(folder), OutputFile::Mode::append)) {
  write_event(bytes_field(3, "brain.Event:2"));  // Event.file_version
  if (first_step)
    write_event(int_field(2, *first_step) + bytes_field(7, int_field(1, 1)));  // Event.session_log: SessionLog.START
}

EventFile::~EventFile() = default;

// Summary.Value: tag = 1, simple_value = 2, tensor = 8, metadata = 9 (tensorflow/core/framework/summary.proto).
void EventFile::scalar(std::string_view tag, int64_t step, double value) {
  summary(step, bytes_field(1, tag) + float_field(2, static_cast<float>(value)));
}

void EventFile::text(std::string_view tag, int64_t step, std::string_view text) {
  constexpr int64_t kString = 7;                                                                    // DataType.DT_STRING
  const std::string shape = bytes_field(2, int_field(1, 1));                                        // one dim of size 1
  const std::string tensor = int_field(1, kString) + bytes_field(2, shape) + bytes_field(8, text);  // TensorProto
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));                              // plugin_data.plugin_name
  summary(step, bytes_field(1, tag) + bytes_field(8, tensor) + bytes_field(9, metadata));
}

// Event: wall_time = 1, step = 2, summary = 5 (tensorflow/core/util/event.proto).
void EventFile::summary(int64_t step, const std::string& value) {
  write_event(int_field(2, step) + bytes_field(5, bytes_field(1, value)));
}

void EventFile::write_event(const std::string& fields) {
  const std::string event = double_field(1, seconds_since_1970()) + fields, length = little_endian(event.size(), 8);
  out_->write(length + little_endian(masked_crc(length), 4) + event + little_endian(masked_crc(event), 4));
}

}  // namespace onestep::train

#include "train/log/tensorboard_writer.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>

#include "tests/process.h"
#include "tests/support.h"

using namespace onestep::train;
namespace fs = std::filesystem;
using onestep::testing::ProcessResult;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;

namespace {

template <class T>
T take(std::string& bytes) {
  REQUIRE(bytes.size() >= sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.erase(0, sizeof(T));
  return value;
}

uint32_t masked(const std::string& bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

/// The events of the one file in `folder`, their frames checked.
std::vector<std::string> events(const fs::path& folder) {
  const fs::path file = fs::directory_iterator(folder)->path();
  CHECK(file.filename().string().starts_with("events.out.tfevents."));
  std::string bytes = onestep::testing::read(file);
  std::vector<std::string> found;
  while (!bytes.empty()) {
    const std::string length_bytes = bytes.substr(0, 8);
    const auto length = take<uint64_t>(bytes);
    CHECK(take<uint32_t>(bytes) == masked(length_bytes));
    REQUIRE(bytes.size() >= length + 4);
    found.push_back(bytes.substr(0, length));
    bytes.erase(0, length);
    CHECK(take<uint32_t>(bytes) == masked(found.back()));
  }
  return found;
}

}  // namespace

TEST_CASE("crc32c: the examples of RFC 3720") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43u);
}

TEST_CASE("event file: framed events of a version, a scalar and a text") {
  const TemporaryFolder folder;
  {
    EventFile file(folder.path().string(), 0);
    file.scalar("loss", 300, 0.5);
    file.text("config", 0, "hello");
  }
  const std::vector<std::string> found = events(folder.path());
  REQUIRE(found.size() == 4);
  for (const std::string& event : found) CHECK(event[0] == 0x09);  // wall_time, a double
  using namespace std::string_literals;
  CHECK(found[0].substr(9) ==
        "\x1A\x0D"
        "brain.Event:2");
  CHECK(found[1].substr(9) == "\x10\0\x3A\x02\x08\x01"s);
  CHECK(found[2].substr(9) == "\x10\xAC\x02\x2A\x0D\x0A\x0B\x0A\x04loss\x15\0\0\0\x3F"s);
  CHECK(found[3].substr(9) ==
        "\x10\0\x2A\x25\x0A\x23\x0A\x06"
        "config\x42\x0F\x08\x07\x12\x04\x12\x02\x08\x01\x42\x05hello"
        "\x4A\x08\x0A\x06\x0A\x04text"s);
}

TEST_CASE("event file: TensorBoard reads it back") {
  const TemporaryFolder folder;
  {
    EventFile file(folder.path().string(), 0);
    file.scalar("loss/train", 0, 2.5);
    file.scalar("loss/train", 1'000'000'000'000, 1.25);
    file.text("config", 7, "# hello\nworld");
  }
  const ProcessResult result = run_process({"python3", "-c", R"(
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    raise SystemExit(77)
import sys
events = EventAccumulator(sys.argv[1])
events.Reload()
print([(e.step, e.value) for e in events.Scalars("loss/train")])
print([(e.step, e.tensor_proto.string_val[0].decode()) for e in events.Tensors("config")])
)",
                                            folder.path().string()});
  if (result.status == 77 || result.status == 127) {
    MESSAGE("Python's package tensorboard is not installed: not compared");
    return;
  }
  CHECK(result.status == 0);
  CHECK(result.out == "[(0, 2.5), (1000000000000, 1.25)]\n[(7, '# hello\\nworld')]\n");
}

// state.json of a checkpoint, the manifest of its files: as it is, and with the hash at its end put right, so that what is
// behind the hash is reached. Refused with IoError, or the same after being written out and read again.
#include "train/checkpoint/state_file.h"

#include "base/error.h"
#include "base/hash.h"
#include "tests/fuzz/input.h"

using namespace onestep;

namespace {

void check_file(const fuzz::MemoryFile& file, std::string_view text) {
  file.fill(text);
  train::StateFile state;
  try {
    state = train::read_state_file(file.path());
  } catch (const IoError&) {
    return;
  }
  const std::string written = train::state_json(state.checkpoint, state.files);
  file.fill(written);
  const train::StateFile again = train::read_state_file(file.path());
  fuzz::require(train::state_json(again.checkpoint, again.files) == written, "the state comes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFile file("state");
  const std::string text(fuzz::text_of(data, size));
  check_file(file, text);
  check_file(file, text + ",\n  \"xxh3_128\": \"" + hash_of(text) + "\"\n}\n");
  return 0;
}

// config.json and model.safetensors of a decoder from outside, separated by a NUL byte. Refused with IoError, or read.
#include "train/models/pretrained_files.h"

#include "autograd/ops.h"
#include "base/error.h"
#include "tests/fuzz/input.h"

using namespace onestep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFolder folder("config.json", "model.safetensors");
  folder.fill(fuzz::text_of(data, size));
  try {
    train::read_pretrained(folder.path());
  } catch (const IoError&) {
  }
  return 0;
}

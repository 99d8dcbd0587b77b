// safetensors files: refused with IoError, or read, written and read again as the same tensors.
#include "train/checkpoint/safetensors.h"

#include <cstring>

#include "autograd/ops.h"
#include "base/error.h"
#include "base/read_file.h"
#include "tests/fuzz/input.h"

using namespace onestep;

namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;  // NaN, too
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFile in("in"), out("out");
  in.fill(fuzz::text_of(data, size));
  train::TensorFile file;
  try {
    file = train::read_safetensors(in.path());
  } catch (const IoError&) {
    return 0;
  }
  const FileStamp stamp = train::write_safetensors(out.path(), file.tensors, file.metadata);
  fuzz::require(stamp == stamp_file(out.path()), "the stamp is that of the file");
  const train::TensorFile again = train::read_safetensors(out.path());
  fuzz::require(again.metadata == file.metadata && again.tensors.size() == file.tensors.size(), "the same entries come back");
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    // Empty tensors share one place: their order is that of their names.
    for (const auto& [name, tensor] : again.tensors)
      if (name == file.tensors[i].first) fuzz::require(same_bytes(tensor, file.tensors[i].second), "the same bytes come back");
  }
  return 0;
}

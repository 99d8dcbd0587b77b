#include "autograd/dtype.h"

#include <atomic>

namespace onestep {

namespace {
std::atomic<DType> default_floats{DType::float32};
}  // namespace

DType default_dtype() { return default_floats.load(std::memory_order_relaxed); }
void set_default_dtype(DType dtype) {
  ONESTEP_CHECK(DTypeError, is_floating(dtype), "set_default_dtype: only floating dtypes can be the default: got ", dtype);
  default_floats.store(dtype, std::memory_order_relaxed);
}

DType promote_types(DType a, DType b) {
  constexpr std::array rising = {DType::boolean, DType::uint8,    DType::int32,   DType::int64,
                                 DType::float16, DType::bfloat16, DType::float32, DType::float64};
  const auto rank = [&rising](DType dtype) {
    size_t i = 0;
    while (rising[i] != dtype) ++i;
    return i;
  };
  const DType wider = rank(a) < rank(b) ? b : a, other = wider == a ? b : a;
  return wider == DType::bfloat16 && other == DType::float16 ? DType::float32 : wider;  // neither holds the other's values
}

}  // namespace onestep

#include "autograd/dtype.h"

namespace onestep {

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

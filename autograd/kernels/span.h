#pragma once
#include <cstdint>

namespace onestep::kernels {

/// Columns [begin, end) of a row.
struct Span {
  int64_t begin, end;
};

}  // namespace onestep::kernels

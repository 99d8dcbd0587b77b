#include "nn/padding.h"

namespace onestep::nn {

Pad::Pad(const char* name, int dims, const Shape& padding, PadMode mode, std::optional<double> value)
    : name_(name), mode_(mode), value_(value) {
  ONESTEP_CHECK(ShapeError, padding.rank() == 1 || padding.rank() == 2 * dims, name, ": padding ", padding,
                " needs one number or ", 2 * dims);
  for (int i = 0; i < 2 * dims; ++i) padding_.push_back(padding[padding.rank() == 1 ? 0 : i]);
}

std::string Pad::extra_repr() const {
  if (!value_) return python_repr(Shape(padding_));
  return "padding=" + python_repr(Shape(padding_)) + ", value=" + python_repr(*value_);
}

}  // namespace onestep::nn

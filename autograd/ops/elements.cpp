// A tensor's elements without its graph: the same in memory, one of them, or all as a vector.
#include "autograd/grad_mode.h"
#include "autograd/ops/common.h"
#include "autograd/ops_shape.h"

namespace onestep {

Tensor Tensor::values() const {
  const Impl& i = impl();
  return ops::view_of(*this, i.shape, i.strides, i.offset);
}

Tensor Tensor::detach() const { return values(); }

void Tensor::read_element(const Shape& index, DType to, void* value) const {
  ONESTEP_CHECK(ShapeError, index.rank() == dim(), "at: index ", index, " for a tensor of shape ", shape());
  int64_t place = offset();
  for (int i = 0; i < dim(); ++i) {
    const int64_t size = shape()[i];
    ONESTEP_CHECK(IndexError, -size <= index[i] && index[i] < size, "at: index ", index, " is out of range for shape ",
                  shape());
    place += (index[i] < 0 ? index[i] + size : index[i]) * strides()[i];
  }
  ops::convert_elements(dtype(), impl().storage->data + place * size_of(dtype()), to, value, 1);
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const NoGradGuard no_grad;
  const Tensor rows = onestep::contiguous(to(dtype_of<T>()));
  const T* const first = rows.data<T>();
  return std::vector<T>(first, first + numel());
}
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;
template std::vector<int32_t> Tensor::to_vector<int32_t>() const;
template std::vector<uint8_t> Tensor::to_vector<uint8_t>() const;
template std::vector<Half> Tensor::to_vector<Half>() const;
template std::vector<BFloat16> Tensor::to_vector<BFloat16>() const;

}  // namespace onestep

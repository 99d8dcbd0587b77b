// Tensors shared with other libraries by DLPack (dmlc.github.io/dlpack, version 0.8), whose structs are declared here.
#include <array>

#include "python/src/caster.h"
#include "python/src/data.h"

namespace nb = nanobind;

namespace onestep::python {
namespace {

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
constexpr int32_t kCpu = 1;

/// DLPack's codes: 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool.
constexpr std::array<uint8_t, kDTypes> kCodes = {2, 2, 0, 6, 0, 1, 2, 4};

struct Shared {
  Tensor tensor;
  Shape shape, strides;
  DLManagedTensor managed{};
};

nb::object to_dlpack(const Tensor& x) {
  auto* shared = new Shared{x.detach(), x.shape(), x.strides()};  // its own handle: x may be given other elements (x.data = y)
  const auto bits = static_cast<uint8_t>(8 * size_of(x.dtype()));
  shared->managed.tensor = {const_cast<void*>(x.data_ptr()),
                            {kCpu, 0},
                            x.dim(),
                            {kCodes[static_cast<size_t>(x.dtype())], bits, 1},
                            &shared->shape[0],
                            &shared->strides[0],
                            0};
  shared->managed.manager = shared;
  shared->managed.deleter = [](DLManagedTensor* managed) { delete static_cast<Shared*>(managed->manager); };
  PyObject* capsule = PyCapsule_New(&shared->managed, "dltensor", [](PyObject* self) {
    if (!PyCapsule_IsValid(self, "dltensor")) return;  // taken over by whom it was given to
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(self, "dltensor"));
    managed->deleter(managed);
  });
  return nb::steal(capsule);
}

Tensor from_dlpack(nb::handle capsule) {
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor"))
    fail<Error>("from_dlpack: this is no capsule with a tensor, or it was used");
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  const DLTensor& given = managed->tensor;
  ONESTEP_CHECK(Error, given.device.type == kCpu, "from_dlpack: needs a tensor in the CPU's memory");
  std::optional<DType> dtype;
  for (size_t i = 0; i < kDTypes; ++i)
    if (kCodes[i] == given.dtype.code && 8 * size_of(static_cast<DType>(i)) == given.dtype.bits && given.dtype.lanes == 1)
      dtype = static_cast<DType>(i);
  ONESTEP_CHECK(DTypeError, dtype.has_value(), "from_dlpack: elements of code ", int{given.dtype.code}, " with ",
                int{given.dtype.bits}, " bits are not supported");
  Shape shape, strides;
  for (int i = 0; i < given.rank; ++i) shape.push_back(given.shape[i]);
  for (int i = 0; given.strides && i < given.rank; ++i) strides.push_back(given.strides[i]);
  if (!given.strides) strides = contiguous_strides(shape);
  int64_t last = 0;
  for (int i = 0; i < given.rank; ++i) {
    ONESTEP_CHECK(Error, strides[i] >= 0, "from_dlpack: negative strides are not supported");
    last += (shape[i] - 1) * strides[i];
  }
  const int64_t bytes = shape.numel() == 0 ? 0 : (last + 1) * size_of(*dtype);
  void* const first = static_cast<std::byte*>(given.data) + given.byte_offset;
  check_alignment(first, *dtype);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  std::shared_ptr<void> owner(managed, [](void* taken) {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire held;
    auto* tensor = static_cast<DLManagedTensor*>(taken);
    if (tensor->deleter) tensor->deleter(tensor);
  });
  return Tensor(std::make_shared<Storage>(first, bytes, std::move(owner)), *dtype, shape, strides, 0);
}

}  // namespace

void add_dlpack(nb::module_& m) {
  m.def("_to_dlpack", &to_dlpack);
  m.def("_from_dlpack", &from_dlpack);
}

}  // namespace onestep::python

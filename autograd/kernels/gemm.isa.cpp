// Products of float32.
#include "autograd/kernels/gemm_plain.h"

namespace onestep::kernels::ONESTEP_ISA_NAME {

template void fill_gemm(Table<float>&);

}  // namespace onestep::kernels::ONESTEP_ISA_NAME

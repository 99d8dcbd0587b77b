// Products of float64.
#include "autograd/kernels/gemm_plain.h"

namespace onestep::kernels::ONESTEP_ISA_NAME {

template void fill_gemm(Table<double>&);

}  // namespace onestep::kernels::ONESTEP_ISA_NAME

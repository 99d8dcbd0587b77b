#include "autograd/parallel_calls.h"

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/kernels/parallel.h"

namespace onestep {

void parallel_calls(int64_t n, double cost, const std::function<void(int64_t)>& f) {
  constexpr double kLong = 200000;
  const auto call = [&](int64_t i, int64_t end) {
    const NoGradGuard no_grad;  // of this thread
    for (; i < end; ++i) f(i);
  };
  if (cost > kLong || autocast_enabled())
    call(0, n);
  else
    kernels::parallel_for(n, cost, call);
}

}  // namespace onestep

// parallel_calls: each call once, without recording, and what it throws.
#include "autograd/parallel_calls.h"

#include <atomic>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/ops.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep {
namespace {

TEST_CASE("parallel_calls: each call once and with the bits of one after the other, whoever makes it") {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);
  kernels::set_num_threads(3);
  const Tensor w = ones({4, 4}).requires_grad_();
  for (const double cost : {1e4, 1e6}) {
    for (const bool autocast : {false, true}) {
      const AutocastGuard guard(autocast);
      std::vector<Tensor> results(20);
      parallel_calls(20, cost, [&](int64_t i) {
        CHECK_FALSE(results[static_cast<size_t>(i)].defined());
        results[static_cast<size_t>(i)] = matmul(full({4, 4}, 1.0 / static_cast<double>(i + 1)), w);
      });
      for (int64_t i = 0; i < 20; ++i) {
        const Tensor& got = results[static_cast<size_t>(i)];
        CHECK_FALSE(got.requires_grad());
        CHECK(equal(got, matmul(full({4, 4}, 1.0 / static_cast<double>(i + 1)), w.detach())));
      }
    }
  }
  CHECK(matmul(w, w).requires_grad());  // recorded again
}

TEST_CASE("parallel_calls: an error in a call is that of all") {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);
  kernels::set_num_threads(3);
  std::atomic<int> calls = 0;
  CHECK_THROWS_AS(parallel_calls(6, 1e4,
                                 [&](int64_t i) {
                                   ++calls;
                                   if (i == 4) matmul(ones({2, 3}), ones({2, 3}));
                                 }),
                  ShapeError);
  parallel_calls(0, 1e4, [&](int64_t) { ++calls; });
  CHECK(calls <= 6);
}

}  // namespace
}  // namespace onestep

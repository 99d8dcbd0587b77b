#include <doctest/doctest.h>

#include "autograd/ops.h"

namespace onestep {

TEST_CASE("slices: the gradients of parts add up to that of the whole") {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).requires_grad_();
  const Tensor y = x * 1.0;  // whose gradient is put together from parts that overlap, and a use as a whole
  const Tensor whole = sum(y * 10.0), row = sum(y[1] * 2.0), columns = sum(y.slice(1, 0, 2) * 3.0),
               corner = y[0].narrow(0, 2, 1);
  (whole + row + columns + sum(corner * 5.0)).backward();
  CHECK(equal(x.grad(), tensor({{13.0, 13.0, 15.0}, {15.0, 15.0, 12.0}})));
}

TEST_CASE("slices: a gradient that is kept is not added to") {
  Tensor x = ones(3).requires_grad_();
  Tensor y = x * 1.0;
  const Tensor given = ones(3);
  Tensor first = y[0], z = y * 2.0;
  z.retain_grad();
  z.backward(given, /*retain_graph=*/true);
  sum(first * 4.0 + z).backward();
  CHECK(equal(given, ones(3)));
  CHECK(equal(z.grad(), full({3}, 2.0)));
  CHECK(equal(x.grad(), tensor({4.0 * 3 + 4, 4.0, 4.0})));
}

}  // namespace onestep

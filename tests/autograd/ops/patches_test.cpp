// Convolutions that cut patches beside the kernels that take any windows.
#include <doctest/doctest.h>

#include "autograd/kernels/convolution.h"
#include "autograd/ops.h"
#include "autograd/random/generator.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep {
namespace {

/// Images [h, w] of `in` channels, cut into patches of kernel sizes `kh` and `kw`.
kernels::Convolution patches(int64_t images, int64_t in, int64_t out, int64_t h, int64_t kh, int64_t w, int64_t kw) {
  return {images, 1, in, out, {h, h / kh, kh, kh, 0, 1}, {w, w / kw, kw, kw, 0, 1}};
}

}  // namespace

TEST_CASE("convolutions that cut patches have the bits of the other kernels") {
  for (const kernels::Convolution& c :
       {patches(2, 3, 40, 33, 16, 49, 16), patches(3, 70, 33, 9, 2, 14, 2), patches(2, 40, 35, 40, 2, 70, 4),
        patches(17, 6, 32, 7, 7, 7, 7), patches(1, 60, 32, 1, 1, 4000, 5), patches(2, 300, 300, 4, 2, 4, 2),
        patches(0, 64, 32, 4, 2, 4, 2), patches(2, 0, 32, 4, 2, 4, 2)}) {
    CAPTURE(c.in_channels);
    Generator g(3);
    Tensor x = randn({c.images, c.in_channels, c.h.in, c.w.in}, g), b = randn({c.out_channels}, g),
           w = randn({c.out_channels, c.in_channels, c.h.kernel, c.w.kernel}, g);
    const Tensor dy = randn({c.images, c.out_channels, c.h.out, c.w.out}, g);
    Tensor y = empty_like(dy), dx = empty_like(x), dw = empty_like(w);
    kernels::convolution(c, x.data<float>(), w.data<float>(), b.data<float>(), y.mutable_data<float>());
    kernels::convolution_input_grad(c, dy.data<float>(), w.data<float>(), dx.mutable_data<float>());
    kernels::convolution_weight_grad(c, x.data<float>(), dy.data<float>(), dw.mutable_data<float>());
    for (Tensor* t : {&x, &w, &b}) t->requires_grad_();
    kernels::testing::check_same_bits([&] {
      for (Tensor* t : {&x, &w, &b}) t->zero_grad();
      const Tensor result = conv2d(x, w, b, {c.h.stride, c.w.stride});
      result.backward(dy);
      CHECK(equal(result, y));
      CHECK(equal(x.grad(), dx));
      CHECK(allclose(w.grad(), dw, 1e-4, 1e-4));
      return w.grad().to_vector<float>();
    });
  }
}

TEST_CASE("a kernel that ends outside its only place is no patch") {
  Tensor w = zeros({32, 64, 2, 2});
  w.index({Slice(), Slice(), 0, 0}).fill_(1);
  CHECK(equal(conv2d(full({1, 64, 1, 1}, 2.0), w, {}, 1, "same"), full({1, 32, 1, 1}, 128.0)));
}

}  // namespace onestep

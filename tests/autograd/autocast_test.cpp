// Autocast: which results are bfloat16, gradients in float32, rounded parameters, scopes; and products of bfloat16 tensors.
#include "autograd/autocast.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "autograd/checkpoint.h"
#include "autograd/functional.h"
#include "autograd/grad.h"
#include "autograd/memory.h"
#include "autograd/ops.h"
#include "autograd/random/random_fill.h"

using namespace onestep;

namespace {

Tensor drawn(const Shape& shape, int64_t seed) {
  Generator generator(seed);
  return randn(shape, generator);
}

double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::float64), y = b.to(DType::float64);
  return (norm(x - y) / norm(y)).item();
}

}  // namespace

TEST_CASE("autocast: a vector times a vector is a product, too") {
  const Tensor x = drawn({4}, 1).requires_grad_(), y = drawn({4}, 2);
  const AutocastGuard guard;
  const Tensor z = matmul(x, y);
  CHECK(z.dtype() == DType::bfloat16);
  CHECK(equal(z, matmul(x.to(DType::bfloat16), y)));
  z.backward();
  CHECK(x.grad().dtype() == DType::float32);
  CHECK(equal(x.grad(), y.to(DType::bfloat16).to(DType::float32)));
}

TEST_CASE("autocast: products give bfloat16 close to those of float32, and gradients in the dtypes of the inputs") {
  const Tensor x = drawn({2, 5, 8}, 1).requires_grad_(), w = drawn({6, 8}, 2).requires_grad_(),
               b = drawn({6}, 3).requires_grad_();
  const auto run = [&](const std::function<Tensor()>& f, bool on) {
    const AutocastGuard guard(on);
    return f();
  };
  const std::vector<std::function<Tensor()>> products = {
      [&] { return linear(x, w, b); }, [&] { return matmul(x, transpose(w, 0, 1)); },
      [&] { return matmul(x, transpose(x, 1, 2)); }, [&] { return scaled_dot_product_attention(x, x, x, {.is_causal = true}); },
      [&] { return packed_attention(linear(x, w), 1, 1, {.is_causal = true}); }};
  for (const auto& f : products) {
    const Tensor exact = run(f, false), rounded = run(f, true);
    CHECK(exact.dtype() == DType::float32);
    CHECK(rounded.dtype() == DType::bfloat16);
    CHECK(distance(rounded.detach(), exact.detach()) < 0.01);
    const Tensor wide = rounded.to(DType::float32);
    const autograd::GradOptions keep = {.allow_unused = true};
    const std::vector<Tensor> want = autograd::grad({sum(mul(exact, exact))}, {x, w, b}, {}, keep),
                              got = autograd::grad({sum(mul(wide, wide))}, {x, w, b}, {}, keep);
    for (size_t i = 0; i < want.size(); ++i) {
      REQUIRE(got[i].defined() == want[i].defined());
      if (!want[i].defined()) continue;
      CHECK(got[i].dtype() == DType::float32);
      CHECK(distance(got[i], want[i]) < 0.02);
    }
  }
}

TEST_CASE("autocast: float64 and integers stay, losses are float32, other ops keep the dtype of their input") {
  const AutocastGuard guard;
  const Tensor half = drawn({3, 4}, 1).to(DType::bfloat16), wide = drawn({3, 4}, 1).to(DType::float64);
  CHECK(matmul(wide, transpose(wide, 0, 1)).dtype() == DType::float64);
  CHECK(matmul(ones({2, 2}, DType::int64), ones({2, 2}, DType::int64)).dtype() == DType::int64);
  CHECK(cross_entropy(half, zeros({3}, DType::int64)).dtype() == DType::float32);
  CHECK(mse_loss(half, half).dtype() == DType::float32);
  CHECK(gelu(half).dtype() == DType::bfloat16);
  CHECK(layer_norm(half, {4}, ones({4}), zeros({4})).dtype() == DType::bfloat16);
  CHECK(dot(ones({4}), ones({4})).dtype() == DType::float32);
  CHECK_THROWS_AS(matmul(half, transpose(wide, 0, 1)), DTypeError);
}

TEST_CASE("autocast: a parameter that changed within the scope is rounded again") {
  const AutocastGuard guard;
  Tensor w = ones({2, 2}).requires_grad_();
  const Tensor x = ones({1, 2});
  CHECK(sum(linear(x, w)).to(DType::float32).item() == 4);
  {
    const NoGradGuard no_grad;
    w.mul_(3);
  }
  CHECK(sum(linear(x, w)).to(DType::float32).item() == 12);
}

TEST_CASE("autocast: rounded parameters that are forgotten live as long as a graph needs them") {
  const AutocastGuard guard;
  const Tensor w = ones({256, 256}).requires_grad_(), x = ones({1, 256}).requires_grad_();
  Tensor y = linear(x, w);
  forget_rounded_parameters();
  const int64_t before = memory::stats().live_bytes;
  y = Tensor();
  CHECK(before - memory::stats().live_bytes >= 256 * 256 * 2);
}

TEST_CASE("autocast: scopes nest, and end with what was before") {
  CHECK_FALSE(autocast_enabled());
  {
    const AutocastGuard on;
    CHECK(autocast_enabled());
    {
      const AutocastGuard off(false);
      CHECK(matmul(ones({2, 2}), ones({2, 2})).dtype() == DType::float32);
    }
    CHECK(autocast_enabled());
  }
  CHECK_FALSE(autocast_enabled());
}

TEST_CASE("autocast: what is recomputed in the backward pass has the bits of what was kept") {
  const Tensor x = drawn({4, 8}, 1), w = drawn({8, 8}, 2).requires_grad_();
  const auto block = [&](const Tensor& in) { return gelu(linear(in, w)); };
  const auto gradient = [&](bool recompute) {
    const Tensor in = x.clone().requires_grad_();
    {
      const AutocastGuard guard;
      const Tensor y = recompute ? autograd::checkpoint(std::function<Tensor(const Tensor&)>(block), in) : block(in);
      sum(y.to(DType::float32)).backward();
    }
    return in.grad();
  };
  CHECK(equal(gradient(true), gradient(false)));
}

TEST_CASE("elementwise ops of bfloat16 tensors save bfloat16, and widen no tensor as a whole") {
  constexpr int64_t kElements = int64_t{1} << 20;
  Tensor x = drawn({kElements}, 1).to(DType::bfloat16).requires_grad_(), dy = drawn({kElements}, 2).to(DType::bfloat16);
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& v) { return gelu(v); }, [](const Tensor& v) { return silu(v); },
           [](const Tensor& v) { return relu(v); }, [](const Tensor& v) { return mul(v, v); }}) {
    x.zero_grad();
    const int64_t before = memory::stats().live_bytes;
    memory::reset_peak();
    const Tensor y = f(x);
    CHECK(memory::stats().live_bytes - before < 3 * kElements);  // y and little else
    y.backward(dy);
    CHECK(memory::stats().peak_bytes - before < 9 * kElements);  // y, and two gradients and their sum where there are two
  }
}

TEST_CASE("products of bfloat16 tensors are sums of float32 rounded once") {
  const Tensor a = drawn({3, 300}, 1).to(DType::bfloat16), b = drawn({300, 4}, 2).to(DType::bfloat16);
  const Tensor exact = matmul(a.to(DType::float64), b.to(DType::float64)), y = matmul(a, b);
  CHECK(y.dtype() == DType::bfloat16);
  CHECK(all(abs(y.to(DType::float64) - exact) <= abs(exact) * 0.00391 + 1e-4).item<bool>());
}

TEST_CASE("the order of sums of bfloat16 is set in a scope, and holds for the backward pass") {
  const auto gradient = [](Bf16Order order) {  // in float32: a result in bfloat16 would hide most of the order
    const Bf16OrderGuard guard(order);
    CHECK(bf16_order() == order);
    const Tensor weight = drawn({5, 300}, 3).requires_grad_(), x = drawn({70, 300}, 4);
    const AutocastGuard autocast;
    square(linear(x, weight).to(DType::float32)).sum().backward();
    return weight.grad();
  };
  const Tensor pairs = gradient(Bf16Order::avx512), groups = gradient(Bf16Order::amx);
  CHECK(bf16_order() == Bf16Order::avx512);
  CHECK_FALSE(equal(pairs, groups));
  CHECK(distance(pairs, groups) < 1e-3);
}

TEST_CASE("a checkpointed function runs again in the order of sums in which it ran") {
  const auto gradient = [](bool recompute) {
    Tensor x = drawn({40, 300}, 5).requires_grad_();
    const Tensor weight = drawn({300, 300}, 6);
    const auto f = [&](const Tensor& in) { return square(linear(in, weight).to(DType::float32)); };
    const AutocastGuard autocast;
    Tensor y;
    {
      const Bf16OrderGuard order(Bf16Order::amx);
      y = recompute ? autograd::checkpoint(std::function<Tensor(const Tensor&)>(f), x) : f(x);
    }
    y.sum().backward();
    return x.grad();
  };
  CHECK(equal(gradient(true), gradient(false)));
}

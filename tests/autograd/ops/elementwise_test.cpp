// What the op suite cannot see: result dtypes, gradients at kinks, and what in-place ops do to the graph. The expected values
// are those of PyTorch 2.13.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

constexpr DType b8 = DType::boolean, i64 = DType::int64, f32 = DType::float32, f64 = DType::float64;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor vec(std::vector<double> values) { return from_values(values, static_cast<int64_t>(values.size())); }

void check_values(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    if (want[i] != want[i])
      CHECK(values[i] != values[i]);
    else
      CHECK(values[i] == want[i]);
  }
}

/// d sum(f(x)) / dx
template <class F>
Tensor gradient(F f, const std::vector<double>& x) {
  const Tensor leaf = vec(x).requires_grad_();
  sum(f(leaf)).backward();
  return leaf.grad();
}

TEST_CASE("elementwise: two tensors meet in PyTorch's dtype") {
  const DType dtypes[] = {b8, i64, f32, f64};
  for (int rank_a = 0; rank_a < 2; ++rank_a) {
    for (int rank_b = 0; rank_b < 2; ++rank_b) {
      for (DType a : dtypes) {
        for (DType b : dtypes) {
          const auto kind = [](DType d) { return d == b8 ? 0 : d == i64 ? 1 : 2; };
          DType want = kind(a) > kind(b) ? a : b;
          if (a == f64 || b == f64) want = f64;
          if (kind(a) == 2 && kind(b) == 2 && rank_a != rank_b) want = rank_a == 0 ? b : a;
          const Tensor x = ones(Shape::filled(rank_a, 3), a), y = ones(Shape::filled(rank_b, 3), b);
          CAPTURE(a);
          CAPTURE(b);
          CHECK(add(x, y).dtype() == want);
          CHECK(mul(x, y).dtype() == want);
          CHECK(maximum(x, y).dtype() == want);
          CHECK(where(ones(3, b8), x, y).dtype() == want);
          CHECK(div(x, y).dtype() == (want == f64 ? f64 : f32));
          CHECK(lt(x, y).dtype() == b8);
          if (want != b8) CHECK(sub(x, y).dtype() == want);
          if (want != b8) CHECK(pow(x, y).dtype() == want);
        }
      }
    }
  }
}

TEST_CASE("elementwise: a number widens only to its kind") {
  CHECK((ones(2, b8) + 1).dtype() == i64);
  CHECK((ones(2, b8) * 1.5).dtype() == f32);
  CHECK((ones(2, b8) + true).dtype() == b8);
  CHECK((ones(2, i64) + true).dtype() == i64);
  CHECK((ones(2, i64) + 1).dtype() == i64);
  CHECK((2 - ones(2, i64)).dtype() == i64);
  CHECK((ones(2, i64) - 0.5).dtype() == f32);
  CHECK((ones(2, f64) * 2.5).dtype() == f64);
  CHECK((ones(2, i64) / 2).dtype() == f32);
  CHECK((1 / ones(2, i64)).dtype() == f32);
  CHECK(pow(ones(2, i64), 2).dtype() == i64);
  CHECK(pow(ones(2, i64), 0.5).dtype() == f32);
  CHECK(eq(ones(2, i64), 0.5).dtype() == b8);
  CHECK(masked_fill(ones(2, i64), ones(2, b8), 2.5).dtype() == i64);
}

TEST_CASE("elementwise: a result is laid out as its operands where these agree, as in PyTorch") {
  const Tensor x = randn({3, 4, 5}), y = randn({3, 4, 5}), tx = x.transpose(0, 2), ty = y.transpose(0, 2);
  for (const Tensor& z : {add(tx, ty), mul(tx, 2), div(tensor(1.0), tx), exp(tx), relu(tx)}) CHECK(z.strides() == tx.strides());
  CHECK(equal(add(tx, ty), add(contiguous(tx), contiguous(ty))));
  CHECK(equal(div(tensor(1.0), tx), div(tensor(1.0), contiguous(tx))));
  CHECK(equal(exp(tx), exp(contiguous(tx))));
  const Tensor gaps = slice(tx, 0, 0, 2), repeated = expand(randn({3, 1, 5}), {3, 4, 5}).transpose(0, 2);
  for (const Tensor& z : {add(tx, contiguous(ty)), add(tx, x[0][0].view({5, 1, 1})), exp(repeated)}) CHECK(z.is_contiguous());
  CHECK(exp(gaps).is_contiguous());
  CHECK(equal(add(tx, contiguous(ty)), add(contiguous(tx), contiguous(ty))));
  CHECK(equal(exp(gaps), exp(contiguous(gaps))));
}

TEST_CASE("elementwise: what is repeated or has gaps is read as its copy, in rows of any length") {
  for (DType dtype : {f32, f64, DType::bfloat16, i64, DType::uint8, b8}) {
    for (const int64_t n : {1, 2, 3, 15, 16, 17, 63, 64, 100, 513, 1100}) {
      const int64_t rows = 1500 / n + 2;
      const auto numbers = [&](const Shape& shape) { return to(rand(shape) * 9, dtype); };
      const Tensor x = numbers({rows, 3, n}), wider = numbers({rows, 3, n + 1});
      const Tensor others[] = {numbers({rows, 1, n}),
                               numbers({rows, 3, 1}),
                               numbers({3, n}),
                               numbers({rows, 1, 1}),
                               numbers({n}),
                               numbers({3, 1}),
                               slice(wider, 2, 1, n + 1),
                               slice(wider, 2, 0, 1),
                               numbers({n, 3, rows}).transpose(0, 2),
                               expand(numbers({1, 1, n}), {rows, 3, n})};
      for (const Tensor& other : others) {
        const Tensor copied = contiguous(expand(other, x.shape()));
        CAPTURE(dtype);
        CAPTURE(x.shape());
        CAPTURE(other.shape());
        CHECK(equal(maximum(x, other), maximum(x, copied)));
        CHECK(equal(maximum(other, x), maximum(copied, x)));
        CHECK(equal(lt(other, x), lt(copied, x)));
        if (dtype != b8) CHECK(equal(abs(expand(other, x.shape())), abs(copied)));
        CHECK(equal(add_product(x, other, x), add_product(x, copied, x)));
        Tensor written = clone(x);
        add_(written, other);
        CHECK(equal(written, add(x, copied)));
      }
    }
  }
}

TEST_CASE("elementwise: three operands may each lie in its own order") {
  for (DType dtype : {f32, f64, DType::bfloat16}) {
    const auto numbers = [&](const Shape& shape) { return to(rand(shape), dtype); };
    const auto laid_out = [&](int how) {
      return how == 0   ? numbers({30, 40, 2})
             : how == 1 ? numbers({2, 40, 30}).transpose(0, 2)
             : how == 2 ? numbers({40, 30, 2}).transpose(0, 1)
                        : numbers({1, 1, 1});
    };
    for (int i = 0; i < 3 * 4 * 4; ++i) {
      const Tensor a = laid_out(i % 3), b = laid_out(i / 3 % 4), c = laid_out(i / 12);
      CAPTURE(i);
      const Tensor copied = add_product(contiguous(a), contiguous(b), contiguous(c));
      CHECK(equal(add_product(a, b, c), copied));
      Tensor written = contiguous(a);
      add_product_(written, b, c);
      CHECK(equal(written, copied));
    }
  }
}

TEST_CASE("reductions: a short row has the bits that it has alone") {
  for (const int64_t n : {1, 2, 3, 7, 15, 16, 17, 40}) {
    const Tensor x = randn({50, n});
    Tensor nan = x[7][n / 2], infinite = x[9];
    fill_(nan, kNan);
    fill_(infinite, -kInf);
    const auto same = [](const Tensor& a, const Tensor& b) {
      return equal(a, b) || (isnan(a).item<bool>() && isnan(b).item<bool>());
    };
    const Tensor sums = sum(x, {-1}), largest = amax(x, {-1}), least = amin(x, {-1}), norms = norm(x, 2, {-1}),
                 best = argmax(x, -1);
    const ValuesIndices found = max(x, -1);
    for (int64_t r = 0; r < 50; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      CHECK(same(sums[r], sum(x[r])));
      CHECK(same(largest[r], max(x[r])));
      CHECK(same(least[r], min(x[r])));
      CHECK(same(norms[r], norm(x[r], 2)));
      CHECK(equal(best[r], argmax(x[r])));
      CHECK(same(found.values[r], x[r][static_cast<int64_t>(best[r].item())]));
    }
  }
}

TEST_CASE("elementwise: functions take integers as float32") {
  for (DType dtype : {b8, i64}) {
    const Tensor x = ones(2, dtype);
    for (const Tensor& y : {exp(x), log(x), sqrt(x), rsqrt(x), sin(x), cos(x), tanh(x), sigmoid(x)}) CHECK(y.dtype() == f32);
  }
  CHECK(abs(tensor({-3, 2})).dtype() == i64);
  CHECK(relu(tensor({-3, 2})).dtype() == i64);
  CHECK(sum(ones(3, b8)).dtype() == i64);
  CHECK(cumsum(ones(3, b8), 0).dtype() == i64);
  CHECK(max(ones(3, b8)).dtype() == b8);
  CHECK(argmax(ones(3)).dtype() == i64);
}

TEST_CASE("reductions: logsumexp takes integers and bools as float32") {
  const Tensor y = logsumexp(tensor({1, 2, 3}), 0);
  CHECK(y.dtype() == DType::float32);
  CHECK(y.item() == doctest::Approx(3.4076059644).epsilon(1e-7));  // torch.logsumexp(torch.tensor([1, 2, 3]), 0)
  CHECK(logsumexp(tensor({true, false}), 0).item() == doctest::Approx(1.3132616875).epsilon(1e-7));
}

TEST_CASE("elementwise: bool and int64 arithmetic") {
  const Tensor t = tensor({true, true, false, false}), u = tensor({true, false, true, false});
  check_values(t + u, {1, 1, 1, 0});
  check_values(t * u, {1, 0, 0, 0});
  check_values(maximum(t, u), {1, 1, 1, 0});
  check_values(minimum(t, u), {1, 0, 0, 0});
  constexpr int64_t top = std::numeric_limits<int64_t>::max(), bottom = std::numeric_limits<int64_t>::min();
  const Tensor ends = from_values(std::vector<int64_t>{top, bottom}, 2);
  CHECK((ends + 1).to_vector<int64_t>() == std::vector<int64_t>{bottom, bottom + 1});
  CHECK((-ends).to_vector<int64_t>() == std::vector<int64_t>{-top, bottom});
  CHECK(abs(ends).to_vector<int64_t>() == std::vector<int64_t>{top, bottom});
  check_values(pow(tensor({2, -1, 0, 3}), tensor({-1, -3, 0, 4})), {0, -1, 1, 81});
}

TEST_CASE("elementwise: the gradient goes back in each operand's dtype") {
  const Tensor a = ones({2, 2}, f32).requires_grad_(), b = full(2, 3.0, f64).requires_grad_(),
               c = full({}, 2.0, f64).requires_grad_();
  const Tensor y = a * b + a / c;
  CHECK(y.dtype() == f64);
  sum(y).backward();
  CHECK(a.grad().dtype() == f32);
  CHECK(b.grad().dtype() == f64);
  check_values(a.grad(), {3.5, 3.5, 3.5, 3.5});
  check_values(b.grad(), {2, 2});
  check_values(c.grad(), {-1});
}

TEST_CASE("elementwise: gradients at kinks and poles") {
  check_values(gradient([](const Tensor& x) { return abs(x); }, {-2, 0, 3}), {-1, 0, 1});
  check_values(gradient([](const Tensor& x) { return relu(x); }, {-2, 0, 3}), {0, 0, 1});
  check_values(gradient([](const Tensor& x) { return log(x); }, {0, 2}), {kInf, 0.5});
  check_values(gradient([](const Tensor& x) { return sqrt(x); }, {0, 4}), {kInf, 0.25});
  check_values(gradient([](const Tensor& x) { return pow(x, 0); }, {0, 2}), {0, 0});
  check_values(gradient([](const Tensor& x) { return pow(x, 1); }, {0, 2}), {1, 1});
  check_values(gradient([](const Tensor& x) { return pow(x, 2); }, {0, -3}), {0, -6});
  check_values(gradient([](const Tensor& x) { return pow(x, vec({0, 1, 2})); }, {0, 0, 0}), {0, 1, 0});
  check_values(gradient([](const Tensor& p) { return pow(vec({0, 0, 1}), p); }, {0, 2, 5}), {0, 0, 0});
  check_values(gradient([](const Tensor& p) { return pow(vec({0}), p); }, {-1}), {-kInf});
}

TEST_CASE("elementwise: ties share the gradient") {
  const std::vector<double> x = {1, 2, 3, kNan}, other = {2, 2, 2, 2};
  check_values(gradient([&](const Tensor& t) { return maximum(t, vec(other)); }, x), {0, 0.5, 1, 1});
  check_values(gradient([&](const Tensor& t) { return maximum(vec(other), t); }, x), {0, 0.5, 1, 1});
  check_values(gradient([&](const Tensor& t) { return minimum(t, vec(other)); }, x), {1, 0.5, 0, 1});
  check_values(gradient([](const Tensor& t) { return maximum(t, t); }, x), {1, 1, 1, 2});
  check_values(gradient([](const Tensor& t) { return max(t); }, {1, 4, 4, 2, 4, 4}), {0, 0.25, 0.25, 0, 0.25, 0.25});
  check_values(gradient([](const Tensor& t) { return amax(t, 0); }, {5, 5, 1}), {0.5, 0.5, 0});
  check_values(gradient([](const Tensor& t) { return max(t, 0).values; }, {5, 5, 1}), {1, 0, 0});
}

TEST_CASE("elementwise: the gradient of a variance without freedom") {
  check_values(gradient([](const Tensor& t) { return var(t); }, {3}), {kNan});
  check_values(gradient([](const Tensor& t) { return var(t, {}, 0); }, {3}), {0});
  check_values(var(vec({1, 5}), {}, 2), {kInf});
}

TEST_CASE("elementwise: only what the other gradient needs is saved") {
  Tensor w = vec({1, 2}).requires_grad_();
  Tensor x = vec({3, 4});
  const Tensor product = w * x, quotient = x / w, shifted = x + w;
  add_(x, vec({1, 1}));  // mul needs x for w's gradient; add does not
  sum(shifted).backward();
  CHECK_THROWS_AS(sum(product).backward(), GradError);
  check_values(w.grad(), {1, 1});
  w.zero_grad();
  sum(quotient).backward();  // needs w and the quotient only
  check_values(w.grad(), {-3, -1});
}

TEST_CASE("in place: the graph goes through a recorded change") {
  const Tensor w = vec({1, 2}).requires_grad_();
  Tensor x = w * 2;
  mul_(x, 3);
  add_(x, w);
  sum(x).backward();
  check_values(x, {7, 14});
  check_values(w.grad(), {7, 7});
}

TEST_CASE("in place: writing over a result cuts it off") {
  const Tensor w = vec({1, 2}).requires_grad_(), v = vec({5, 6}).requires_grad_();
  Tensor x = w * 2, y = w * 2;
  copy_(x, v);
  fill_(y, 7);
  CHECK(x.requires_grad());
  CHECK(y.requires_grad());
  sum(x * 3 + y).backward();
  check_values(w.grad(), {0, 0});
  check_values(v.grad(), {3, 3});
}

TEST_CASE("in place: copy_ converts and sums the gradient of what it repeated") {
  const Tensor source = full({1, 2}, 2.5, f64).requires_grad_();
  Tensor x = zeros({3, 2});
  copy_(x, source);
  CHECK(x.dtype() == f32);
  sum(x).backward();
  CHECK(source.grad().dtype() == f64);
  check_values(source.grad(), {3, 3});
}

TEST_CASE("in place: operands that overlap are read before they are written") {
  Tensor m = tensor({{1., 2.}, {3., 4.}});
  copy_(m, m.t());
  check_values(m, {1, 3, 2, 4});
  add_(m, m.t());
  check_values(m, {2, 5, 5, 8});
  Tensor v = tensor({1., 2., 3., 4.}), tail = v.slice(0, 1, 4);
  copy_(tail, v.slice(0, 0, 3));
  check_values(v, {1, 1, 2, 3});
  add_(v, v);
  check_values(v, {2, 2, 4, 6});
  copy_(v, v);
  check_values(v, {2, 2, 4, 6});
}

TEST_CASE("in place: every change is a new version, a refused one changes nothing") {
  Tensor x = zeros(3);
  const uint32_t before = x.version();
  add_(x, ones(3));
  mul_(x, 2);
  fill_(x, 1);
  copy_(x, zeros(3));
  masked_fill_(x, ones(3, b8), 4);
  CHECK(x.version() >= before + 5);
  check_values(x, {4, 4, 4});
  Tensor integers = ones(3, i64);
  CHECK_THROWS_AS(add_(integers, ones(3)), DTypeError);
  CHECK_THROWS_AS(mul_(integers, 0.5), DTypeError);
  CHECK_THROWS_AS(add_(x, ones({2, 3})), ShapeError);
  check_values(integers, {1, 1, 1});
  check_values(x, {4, 4, 4});
  fill_(integers, 2.75);
  check_values(integers, {2, 2, 2});
}

TEST_CASE("in place: nothing is recorded without grad") {
  const int64_t nodes = Node::alive();
  Tensor leaf = vec({1, 2}).requires_grad_();
  {
    const NoGradGuard no_grad;
    add_(leaf, vec({1, 1}));
    mul_(leaf, 2);
    copy_(leaf, leaf + 1);
    masked_fill_(leaf, tensor({true, false}), 9);
  }
  CHECK(leaf.is_leaf());
  CHECK(leaf.requires_grad());
  CHECK(Node::alive() == nodes + 1);
  check_values(leaf, {9, 7});
  CHECK_THROWS_AS(fill_(leaf, 0), GradError);
}

TEST_CASE("reductions: sums of many float32 stay accurate") {
  const Tensor tenths = full(3000000, 0.1);
  CHECK(sum(tenths).item() == doctest::Approx(3000000 * static_cast<double>(0.1f)).epsilon(1e-6));
  CHECK(mean(tenths).item() == doctest::Approx(0.1).epsilon(1e-6));
}

}  // namespace
}  // namespace onestep

// Copies and elementwise ops between tensors of all layouts, and ops along dims other than the last one: what they come to does
// not depend on how the elements lie.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/pointwise_names.h"
#include "autograd/random/generator.h"

namespace onestep {
namespace {

/// Every order of the dims of a tensor of this rank.
std::vector<Shape> orders(int rank) {
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(i);
  std::vector<Shape> all;
  do {
    Shape order;
    for (const int64_t d : dims) order.push_back(d);
    all.push_back(order);
  } while (std::next_permutation(dims.begin(), dims.end()));
  return all;
}

/// Elements of this shape that lie in memory in this order of the dims, with gaps where `padded`.
Tensor laid_out(const Shape& shape, const Shape& order, DType dtype, bool padded) {
  Shape memory;
  for (int i = 0; i < shape.rank(); ++i) memory.push_back(shape[static_cast<int>(order[i])] + (padded ? 1 : 0));
  Shape back = order;
  for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
  Tensor x = permute(zeros(memory, dtype), back);
  for (int i = 0; i < shape.rank(); ++i) x = narrow(x, i, 0, shape[i]);
  return x;
}

Tensor counted(const Shape& shape, DType dtype) { return remainder(arange(shape.numel()), 251).to(dtype).reshape(shape); }

}  // namespace

TEST_CASE("layout: a copy between any two orders of dims has every element in its place") {
  for (const Shape& shape : {Shape{40, 33}, Shape{3, 70}, Shape{2, 17, 20}, Shape{5, 2, 3, 18}, Shape{2, 1, 2, 20}})
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::int64})
      for (const Shape& to : orders(shape.rank()))
        for (const Shape& from : orders(shape.rank())) {
          CAPTURE(shape);
          CAPTURE(to);
          CAPTURE(from);
          const Tensor want = counted(shape, dtype), source = laid_out(shape, from, dtype, false),
                       target = laid_out(shape, to, dtype, true);
          copy_(source, want);
          REQUIRE(source.to_vector<int64_t>() == want.to_vector<int64_t>());
          copy_(target, source);
          REQUIRE(target.to_vector<int64_t>() == want.to_vector<int64_t>());
        }
}

TEST_CASE("layout: an in-place op reads operands that share its memory before it writes to that") {
  Generator g(1);
  const Tensor x = add(rand({3, 3}, g), 1);
  const auto check = [&](const char* label, auto in_place, auto op) {
    CAPTURE(label);
    for (const bool column : {false, true}) {
      const auto part = [column](const Tensor& v) { return column ? v.narrow(1, 1, 1) : v.select(0, 1); };
      Tensor y = clone(x);
      in_place(y, part(y));
      CHECK(equal(y, op(x, part(x))));
      Tensor turned = clone(x);
      in_place(turned, t(turned));
      CHECK(equal(turned, op(x, t(x))));
    }
  };
  check(
      "pow", [](const Tensor& a, const Tensor& b) { pow_(a, b); }, [](const Tensor& a, const Tensor& b) { return pow(a, b); });
  check(
      "fmod", [](const Tensor& a, const Tensor& b) { fmod_(a, b); },
      [](const Tensor& a, const Tensor& b) { return fmod(a, b); });
  check(
      "add", [](const Tensor& a, const Tensor& b) { add_(a, b, 3); },
      [](const Tensor& a, const Tensor& b) { return add(a, b, 3); });
  check(
      "lerp", [](const Tensor& a, const Tensor& b) { lerp_(a, b, 0.3); },
      [](const Tensor& a, const Tensor& b) { return lerp(a, b, 0.3); });
}

namespace {

/// Checks that `in_place` leaves what `op` gives for a tensor of each dtype that it takes.
template <class InPlace, class Op>
void check_in_place(const std::string& name, const InPlace& in_place, const Op& op) {
  CAPTURE(name);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor numbers = tensor({-infinity, -1e20, -7.5, -1.0, -0.0, 0.0, 0.3, 1.0, 2.0, 5.0, 1e20, infinity, std::nan("")});
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::int32, DType::boolean}) {
    CAPTURE(dtype);
    const Tensor x = (is_floating(dtype) ? numbers : tensor({-7, -1, 0, 1, 2, 3})).to(dtype);
    Tensor want;
    try {
      want = op(x);
    } catch (const Error&) {
      continue;
    }
    if (want.dtype() != dtype) continue;
    Tensor y = clone(x);
    in_place(y);
    CHECK(to_string(y) == to_string(want));  // also of NaN, -0
  }
}

}  // namespace

TEST_CASE("layout: every in-place function gives what the function gives") {
#define ONESTEP_CHECK_OP(NAME) \
  check_in_place(              \
      #NAME, [](const Tensor& x) { NAME##_(x); }, [](const Tensor& x) { return NAME(x); });
  ONESTEP_UNARY_OPS(ONESTEP_CHECK_OP)
#undef ONESTEP_CHECK_OP
  for (const double y : {-3.0, 2.0, 0.5}) {
#define ONESTEP_CHECK_OP(NAME)                                             \
  check_in_place(                                                          \
      #NAME, [y](const Tensor& x) { NAME##_(x, full({}, y, x.dtype())); }, \
      [y](const Tensor& x) { return NAME(x, full({}, y, x.dtype())); });
    ONESTEP_BINARY_OPS(ONESTEP_CHECK_OP)
    ONESTEP_SCALAR_OPS(ONESTEP_CHECK_OP)
#undef ONESTEP_CHECK_OP
#define ONESTEP_CHECK_OP(NAME) \
  check_in_place(              \
      #NAME, [y](const Tensor& x) { NAME##_(x, y); }, [y](const Tensor& x) { return NAME(x, y); });
    ONESTEP_SCALAR_OPS(ONESTEP_CHECK_OP)
#undef ONESTEP_CHECK_OP
  }
}

TEST_CASE("layout: in-place ops write to the elements of a window and to no others") {
  Generator g(1);
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Tensor x = randn({4, 6}, g).to(dtype), before = clone(x);
    const Tensor window = x.slice(1, 1, 6, 2);
    relu_(neg_(window));
    clamp_(window, 0.1, 0.5);
    const Tensor want = clamp(relu(neg(before.slice(1, 1, 6, 2))), 0.1, 0.5);
    CHECK(window.to_vector<float>() == want.to_vector<float>());
    CHECK(x.slice(1, 0, 6, 2).to_vector<float>() == before.slice(1, 0, 6, 2).to_vector<float>());
  }
}

TEST_CASE("layout: one number goes to all places of a mask, also of its first dims alone, and large integers are exact") {
  const int64_t large = (int64_t{1} << 53) + 1;
  const Tensor x = zeros({3, 2}, DType::int64), mask = tensor({true, false, true});
  index_put_(x, {mask}, full({1}, large, DType::int64));
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{large, large, 0, 0, large, large});
  index_put_(x, {gt(x, 0)}, -1);
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{-1, -1, 0, 0, -1, -1});
  CHECK_THROWS_AS(index_put_(x, {tensor({true, false})}, 1), ShapeError);
}

/// softmax, log_softmax, and the gradient of both, of weights w.
std::vector<Tensor> softmaxes(const Tensor& values, const Tensor& w, int64_t dim) {
  const Tensor x = clone(values).requires_grad_(), y = softmax(x, dim), log_y = log_softmax(x, dim);
  ((y + log_y) * w).sum().backward();
  return {y, log_y, x.grad()};
}

TEST_CASE("layout: softmax along another dim has the numbers of the one along the last dim") {
  Generator g(1);
  for (const Shape& shape : {Shape{3, 70, 50}, Shape{2, 600, 1300}, Shape{400, 30, 40}, Shape{3, 2, 40, 20}, Shape{300, 1'111}})
    for (int d = 0; d < shape.rank() - 1; ++d) {
      CAPTURE(shape);
      CAPTURE(d);
      const Tensor x = randn(shape, g), w = randn(shape, g);
      narrow(flatten(x), 0, 0, 5).copy_(tensor({INFINITY, -INFINITY, NAN, 1e30, -1e30}));
      const auto turned = [d](const Tensor& t) { return contiguous(transpose(t, d, -1)); };
      const std::vector<Tensor> columns = softmaxes(x, w, d), rows = softmaxes(turned(x), turned(w), -1);
      for (size_t i = 0; i < rows.size(); ++i) CHECK(allclose(columns[i], turned(rows[i]), 1e-5, 1e-5, true));
    }
}

TEST_CASE("layout: places that lie in the tensor that is written stay what they were") {
  const Tensor x = view(arange(6), {2, 3});
  index_put_(x, {Slice(), select(x, 0, 0)}, tensor({2, 1, 0, 10, 11, 12}).view({2, 3}));
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{2, 1, 0, 10, 11, 12});
  const auto written = [](const auto& write) {
    const Tensor y = tensor({2, 0, 1, 2});
    write(y, narrow(y, 0, 0, 3), full({3}, 9, DType::int64));
    return y.to_vector<int64_t>();
  };
  CHECK(written([](const auto& y, const auto& i, const auto&) { index_fill_(y, 0, i, 9); }) ==
        std::vector<int64_t>{9, 9, 9, 2});
  CHECK(written([](const auto& y, const auto& i, const auto& s) { index_copy_(y, 0, i, s); }) ==
        std::vector<int64_t>{9, 9, 9, 2});
  CHECK(written([](const auto& y, const auto& i, const auto& s) { index_add_(y, 0, i, s); }) ==
        std::vector<int64_t>{11, 9, 10, 2});
  CHECK(written([](const auto& y, const auto& i, const auto& s) { scatter_(y, 0, i, s); }) == std::vector<int64_t>{9, 9, 9, 2});
  CHECK(written([](const auto& y, const auto& i, const auto& s) { scatter_add_(y, 0, i, s); }) ==
        std::vector<int64_t>{11, 9, 10, 2});
}

TEST_CASE("layout: three operands of one layout give a result of it") {
  const Tensor x = t(ones({4, 5}));
  CHECK(add_product(x, x, x).strides() == x.strides());
  CHECK(equal(add_product(x, x, ones({5, 4}), 0.5), full({5, 4}, 1.5)));
  CHECK(equal(lerp(x, 3 * x, full({}, 0.5)), full({5, 4}, 2.0)));
}

TEST_CASE("add_product: three operands meet as two do, and integers are exact") {
  const Tensor one = full({1}, 200, DType::uint8), none = zeros({1}, DType::int64);
  CHECK(add_product(none, one, one).to_vector<int64_t>() == std::vector<int64_t>{40'000});
  const int64_t large = (int64_t{1} << 60) + 1;
  CHECK(add_product(none, none + 1, none + 1, large).to_vector<int64_t>() == std::vector<int64_t>{large});
  CHECK(add_product(full({1}, true, DType::boolean), full({1}, true, DType::boolean), one).dtype() == DType::uint8);
  const Tensor half = ones({1}, DType::float16);
  CHECK(add_product(tensor(0.0), ones({1}, DType::float64), half).dtype() == DType::float64);
  CHECK(add_product(tensor(0.0), half, ones({1}, DType::bfloat16)).dtype() == DType::float32);
}

TEST_CASE("layout: ctc_loss reads lengths of any layout, and what is written to them later does not matter") {
  Generator g(1);
  const Tensor scores = randn({5, 3, 4}, g), targets = tensor({1, 2, 3}).view({3, 1}), one = ones({3}, DType::int64);
  const auto gradient = [&](const Tensor& lengths) {
    const Tensor x = clone(scores).requires_grad_(), loss = ctc_loss(log_softmax(x, 2), targets, lengths, one);
    if (!lengths.is_view()) fill_(lengths, 9);
    loss.backward();
    return x.grad();
  };
  CHECK(equal(gradient(tensor({3, 9, 4, 9, 5, 9}).slice(0, 0, 6, 2)), gradient(tensor({3, 4, 5}))));
  CHECK(equal(gradient(tensor({4, 9}).slice(0, 0, 1).expand({3})), gradient(tensor({4, 4, 4}))));
}

TEST_CASE("layout: the gradient of a product along another dim has the bits of the one along the last dim") {
  Generator g(1);
  for (const Shape& shape : {Shape{5, 150}, Shape{3, 4, 70}, Shape{1, 3}}) {
    const Tensor x = add(rand(shape, g), 0.5), dy = randn(sum(x, 0).shape(), g);
    const Tensor rows = contiguous(transpose(x, 0, -1)).requires_grad_(), columns = clone(x).requires_grad_();
    prod(columns, 0).backward(dy);
    prod(rows, -1).backward(shape.rank() == 2 ? dy : t(dy));
    CHECK(equal(columns.grad(), transpose(rows.grad(), 0, -1)));
  }
}

TEST_CASE("layout: comparisons of narrow integers and halves, broadcast and in any order") {
  const Tensor values = counted({70, 20}, DType::int64), row = counted({20}, DType::int64);
  for (const DType dtype : {DType::int32, DType::uint8, DType::bfloat16, DType::float16}) {
    const Tensor x = values.to(dtype), y = row.to(dtype);
    CHECK(equal(gt(x, y), gt(values, row)));
    CHECK(equal(le(t(x), 30), le(t(values), 30)));
    CHECK(equal(eq(x, flip(x, {0})), eq(values, flip(values, {0}))));
    CHECK(equal(ne(x, y.select(0, 3)), ne(values, row.select(0, 3))));
  }
}

}  // namespace onestep

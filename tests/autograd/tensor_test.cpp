// What a handle is: aliasing, views, elements, versions. Graphs are in engine_test.cpp.
#include "autograd/tensor.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"

namespace onestep {
namespace {

using Doubles = std::vector<double>;

Tensor counting(const Shape& shape) { return reshape(arange(shape.numel()), shape).to(DType::float32); }

TEST_CASE("tensor: a copy of the handle is the same tensor") {
  Tensor a = zeros({2, 2});
  const Tensor b = a;
  fill_(a, 3);
  CHECK(b.at({1, 1}) == 3);
  CHECK(b.shares_storage(a));
  const Tensor c = a.clone();
  CHECK_FALSE(c.shares_storage(a));
  fill_(a, 4);
  CHECK(b.at({0, 0}) == 4);
  CHECK(c.at({0, 0}) == 3);
  Tensor d = a;
  d.requires_grad_();
  CHECK(a.requires_grad());
}

TEST_CASE("tensor: views share storage and see each other's writes") {
  Tensor x = counting({2, 3, 4});
  const std::vector<Tensor> views{x.view({6, 4}),
                                  x.reshape({-1}),
                                  x.transpose(0, 2),
                                  x.permute({1, 2, 0}),
                                  x.slice(1, 1, 3),
                                  x.select(2, 1),
                                  x.unsqueeze(0),
                                  x.unsqueeze(0).squeeze(0),
                                  x.detach(),
                                  x.flatten(),
                                  x.contiguous(),
                                  narrow(x, 0, 1, 1),
                                  x.unsqueeze(0).expand({2, -1, -1, -1})};
  for (const Tensor& view : views) CHECK(view.shares_storage(x));
  fill_(x, 7);
  for (const Tensor& view : views)
    for (double v : view.to_vector<double>()) REQUIRE(v == 7);
  CHECK_FALSE(x.transpose(0, 1).contiguous().shares_storage(x));
  CHECK_FALSE(x.transpose(0, 1).reshape({-1}).shares_storage(x));
  CHECK_FALSE(x.to(DType::float64).shares_storage(x));
}

TEST_CASE("tensor: a version counts every write to the storage") {
  Tensor x = zeros({4});
  const uint32_t start = x.version();
  Tensor view = x.slice(0, 1, 3);
  fill_(x, 1);
  CHECK(x.version() == start + 1);
  fill_(view, 2);
  CHECK(x.version() == start + 2);
  CHECK(view.version() == start + 2);
  add_(x, x);
  mul_(x, 2);
  copy_(x, ones({4}));
  masked_fill_(x, tensor({true, false, false, true}), 0);
  CHECK(x.version() == start + 6);
  x.mutable_data<float>()[0] = 5;
  CHECK(x.version() == start + 7);
  CHECK(x.detach().version() == start + 7);
  CHECK(x.data<float>()[0] == 5);
  x.to_vector<double>();
  CHECK(x.version() == start + 7);
}

TEST_CASE("tensor: elements") {
  const Tensor x = counting({2, 3});
  CHECK(x.at({0, 2}) == 2);
  CHECK(x.at({-1, -3}) == 3);
  CHECK(x.at<int64_t>({1, 1}) == 4);
  CHECK(x.t().at({2, 1}) == 5);
  CHECK(x[1].at(0) == 3);
  CHECK(x[-1][2].item() == 5);
  CHECK(tensor(2.5).item() == 2.5);
  CHECK(tensor({{7}}).item<int64_t>() == 7);
  CHECK(tensor(true).item<bool>());
  CHECK(x.t().to_vector<double>() == Doubles{0, 3, 1, 4, 2, 5});
  CHECK(x.slice(1, 0, 3, 2).to_vector<int64_t>() == std::vector<int64_t>{0, 2, 3, 5});
  CHECK_THROWS_WITH_AS(x.item(), "item: needs exactly one element: got shape [2, 3]", ShapeError);
  CHECK_THROWS_AS(zeros({0}).item(), ShapeError);
  CHECK_THROWS_WITH_AS(x.at({2, 0}), "at: index [2, 0] is out of range for shape [2, 3]", ShapeError);
  CHECK_THROWS_WITH_AS(x.at({0, -4}), doctest::Contains("at: index [0, -4] "), ShapeError);
  CHECK_THROWS_WITH_AS(x.at(0), "at: index [0] for a tensor of shape [2, 3]", ShapeError);
  CHECK_THROWS_WITH_AS(x.data<double>(), doctest::Contains("data: "), DTypeError);
}

TEST_CASE("tensor: sizes and contiguity") {
  const Tensor x = counting({2, 3, 4});
  CHECK(x.dim() == 3);
  CHECK(x.size(-1) == 4);
  CHECK(x.numel() == 24);
  CHECK(x.is_contiguous());
  CHECK_FALSE(x.transpose(0, 1).is_contiguous());
  CHECK(x.slice(0, 1, 2).is_contiguous());
  CHECK_FALSE(x.slice(1, 1, 2).slice(2, 0, 2).is_contiguous());
  CHECK(x.slice(0, 0, 1).transpose(0, 1).is_contiguous());
  CHECK_FALSE(ones({3, 1}).expand({3, 2}).is_contiguous());
  CHECK(ones({1, 2}).expand({1, 2}).is_contiguous());
  CHECK(zeros({3, 0}).t().is_contiguous());
  CHECK(zeros({0, 3}).t().is_contiguous());
  CHECK_THROWS_WITH_AS(x.size(3), doctest::Contains("size: dim "), ShapeError);
}

TEST_CASE("tensor: an undefined tensor says so") {
  const Tensor nothing;
  CHECK_FALSE(nothing.defined());
  CHECK_THROWS_WITH_AS(nothing.shape(), "tensor: an undefined (default-constructed) Tensor was used", Error);
  CHECK_THROWS_WITH_AS(nothing.sum(), doctest::Contains("tensor: "), Error);
  CHECK_THROWS_WITH_AS(nothing.requires_grad(), doctest::Contains("tensor: "), Error);
  CHECK_THROWS_WITH_AS(add(nothing, ones({2})), doctest::Contains("tensor: "), Error);
}

TEST_CASE("tensor: an expanded tensor can be filled, not written to") {
  Tensor x = zeros({1, 3});
  Tensor wide = x.expand({2, 3});
  fill_(wide, 2);
  CHECK(x.to_vector<double>() == Doubles{2, 2, 2});
  fill_(wide, 0);
  CHECK_THROWS_AS(add_(wide, ones({2, 3})), ShapeError);
  CHECK_THROWS_AS(copy_(wide, ones({2, 3})), ShapeError);
  CHECK_THROWS_WITH_AS(
      wide.mutable_data<float>(),
      "mutable_data: an expanded tensor of shape [2, 3] cannot be written to: its elements share memory (clone "
      "it first)",
      ShapeError);
  CHECK(x.to_vector<double>() == Doubles{0, 0, 0});
  Tensor nothing = zeros({1, 0}).expand({2, 0});
  fill_(nothing, 1);
  add_(nothing, ones({2, 0}));
  CHECK(nothing.mutable_data<float>() == nothing.data<float>());
  Tensor result = (zeros({1, 3}).requires_grad_() * 2).expand({2, 3});
  CHECK_THROWS_WITH_AS(mul_(result, 2), doctest::Contains("mul_: an expanded tensor "), ShapeError);
  Tensor same = x.expand({1, 3});
  fill_(same, 1);
  CHECK(x.to_vector<double>() == Doubles{1, 1, 1});
}

TEST_CASE("tensor: views of absurd shapes are refused") {
  const Tensor x = zeros({0});
  const int64_t huge = int64_t{1} << 32;
  CHECK_THROWS_WITH_AS(x.view({huge, huge}), doctest::Contains("view: shape "), ShapeError);
  CHECK_THROWS_AS(reshape(ones({4}), {huge, huge, -1}), ShapeError);
  CHECK_THROWS_AS(split(ones({4}), std::vector<int64_t>{INT64_MAX, INT64_MAX, 6}), ShapeError);
  CHECK(split(ones({4}), INT64_MAX).size() == 1);
  CHECK(chunk(ones({4}), INT64_MAX).size() == 4);
  CHECK_THROWS_WITH_AS(chunk(x, INT64_MAX), "chunk: an empty dim takes at most 1048576 chunks: got 9223372036854775807",
                       ShapeError);
  CHECK(ones({4}).slice(0, INT64_MIN, INT64_MAX, INT64_MAX).numel() == 1);
  CHECK_THROWS_AS(narrow(ones({4}), 0, 1, INT64_MAX), ShapeError);
}

}  // namespace
}  // namespace onestep

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "autograd/ops.h"
#include "autograd/random/random_fill.h"

namespace onestep {
namespace {

/// Row-major, 1 where an element of ones was kept.
std::string kept(const Tensor& x) {
  Generator generator(123);
  std::string text;
  for (const float y : dropout(x, 0.5, true, generator).to_vector<float>()) text += y == 0 ? '0' : '1';
  return text;
}

}  // namespace

// The masks are those of torch 2.13.0 with manual_seed(123) and p = 0.5 on tensors of these strides.
TEST_CASE("dropout: the mask is drawn in the order of the memory") {
  CHECK(kept(t(ones({3, 5}))) == "100101001101111");
  CHECK(kept(permute(ones({2, 3, 4}), {2, 0, 1})) == "110101101110000100101111");
  CHECK(kept(t(slice(ones({4, 6}), 1, 0, 6, 2))) == "110111000001");
  CHECK(kept(transpose(view(ones({2, 5, 12}), {2, 5, 3, 4}), 1, 2)) ==
        "1101111101011000011110000101010100001100010110011110101111010000001100010011010011111011110101011101011101100000100101"
        "01");
  SUBCASE("repeated dims") {
    CHECK(kept(expand(ones({1, 4}), {3, 4})) == "110110000101");
    CHECK(kept(expand(ones({3, 1}), {3, 4})) == "110110000101");
    CHECK(kept(expand(permute(ones({2, 1, 3}), {2, 1, 0}), {3, 4, 2})) == "111100101110010001010111");
  }
  SUBCASE("equal strides") {
    const Tensor x = ones(20);
    CHECK(kept(Tensor(x.impl().storage, x.dtype(), {3, 2, 4}, {1, 1, 2}, 0)) == "101010110011111010000111");
    CHECK(kept(Tensor(x.impl().storage, x.dtype(), {2, 3, 4}, {2, 2, 1}, 0)) == "110101010101100011111001");
  }
}

TEST_CASE("dropout: the result is laid out as its input and the scale is rounded in the dtype") {
  Generator generator(123);
  const Tensor y = dropout(t(ones({3, 5})), 0.3, true, generator);
  CHECK(y.strides() == Shape({1, 5}));
  CHECK(max(y).item<float>() == dropout_scale<float>(0.3));
}

TEST_CASE("dropout: an infinity or a NaN that is dropped stays visible") {
  const Tensor y = dropout(tensor({-1.0, INFINITY, 2.0}), 1.0);
  CHECK(y.at({0}) == 0);
  CHECK(isnan(y).at<bool>({1}));
  CHECK(y.at({2}) == 0);
}

TEST_CASE("random tensors: a generator continues and the default one follows manual_seed") {
  Generator a(5), b(5);
  const Tensor both = rand({2, 3}, a);
  CHECK(equal(rand(3, b), both[0]));
  CHECK(equal(rand(3, b), both[1]));
  manual_seed(5);
  CHECK(equal(rand({2, 3}), both));
  CHECK(randn(3).dtype() == DType::float32);
  CHECK(randn(3, a, DType::float64).dtype() == DType::float64);
  CHECK(randint(0, 9, 3).dtype() == DType::int64);
}

}  // namespace onestep

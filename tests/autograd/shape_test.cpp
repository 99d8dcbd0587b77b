#include "autograd/shape.h"

#include <doctest/doctest.h>

#include <sstream>

namespace onestep {
namespace {

std::string text(const Shape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}

TEST_CASE("shape: up to eight sizes") {
  CHECK(text(Shape()) == "[]");
  CHECK(text(3) == "[3]");
  CHECK(text({2, 3, 4}) == "[2, 3, 4]");
  CHECK(Shape().numel() == 1);
  CHECK(Shape({2, 3, 4}).numel() == 24);
  CHECK(Shape({2, 0, 4}).numel() == 0);
  CHECK(Shape({2, 3}) == Shape(std::vector<int64_t>{2, 3}));
  CHECK_FALSE(Shape({2, 3}) == Shape({2, 3, 1}));
  CHECK_FALSE(Shape({2, 3}) == Shape({3, 2}));
  CHECK_THROWS_WITH_AS(Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}), "shape: rank 9 is above the limit of 8", ShapeError);
  Shape eight{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK_THROWS_AS(eight.push_back(9), ShapeError);
}

TEST_CASE("shape: insert and erase") {
  Shape shape{2, 3, 4};
  shape.insert(0, 9);
  shape.insert(4, 8);
  CHECK(text(shape) == "[9, 2, 3, 4, 8]");
  shape.erase(2);
  CHECK(text(shape) == "[9, 2, 4, 8]");
  shape.erase(3);
  CHECK(text(shape) == "[9, 2, 4]");
}

TEST_CASE("shape: dims count from the end when negative") {
  CHECK(normalize_dim("op", 0, 3) == 0);
  CHECK(normalize_dim("op", -1, 3) == 2);
  CHECK(normalize_dim("op", -3, 3) == 0);
  CHECK(normalize_dim("op", 0, 0) == 0);
  CHECK(normalize_dim("op", -1, 0) == 0);
  CHECK_THROWS_WITH_AS(normalize_dim("op", 3, 3), "op: dim out of range: 3 (expected -3 to 2)", ShapeError);
  CHECK_THROWS_AS(normalize_dim("op", -4, 3), ShapeError);
  CHECK_THROWS_AS(normalize_dim("op", 1, 0), ShapeError);
  CHECK_THROWS_AS(normalize_dim("op", INT64_MIN, 3), ShapeError);
}

TEST_CASE("shape: lists of dims") {
  CHECK(text(normalize_dims("op", {}, 3)) == "[0, 1, 2]");
  CHECK(text(normalize_dims("op", {-1, 0}, 3)) == "[0, 2]");
  CHECK(text(normalize_dims("op", 0, 0)) == "[]");
  CHECK_THROWS_WITH_AS(normalize_dims("op", {1, -2}, 3), "op: dim -2 appears twice in [1, -2]", ShapeError);
  CHECK(text(reduced_shape({2, 3, 4}, {0, 2}, false)) == "[3]");
  CHECK(text(reduced_shape({2, 3, 4}, {0, 2}, true)) == "[1, 3, 1]");
  CHECK(text(reduced_shape({2, 3}, {0, 1}, false)) == "[]");
}

TEST_CASE("shape: row-major strides") {
  CHECK(text(contiguous_strides({2, 3, 4})) == "[12, 4, 1]");
  CHECK(text(contiguous_strides({})) == "[]");
  CHECK(text(contiguous_strides({2, 0, 4})) == "[4, 4, 1]");
}

TEST_CASE("shape: broadcasting") {
  CHECK(text(broadcast_shapes("add", {2, 3}, {3})) == "[2, 3]");
  CHECK(text(broadcast_shapes("add", {2, 1}, {1, 4})) == "[2, 4]");
  CHECK(text(broadcast_shapes("add", {}, {5})) == "[5]");
  CHECK(text(broadcast_shapes("add", {1}, {0})) == "[0]");
  CHECK(text(broadcast_shapes("add", {0, 1}, {3})) == "[0, 3]");
  CHECK_THROWS_WITH_AS(broadcast_shapes("add", {2, 3}, {2}),
                       "add: shapes do not broadcast: [2, 3] and [2] (sizes 3 and 2 differ at dim -1; one of them would have "
                       "to be 1)",
                       ShapeError);
  CHECK_THROWS_AS(broadcast_shapes("add", {0}, {2}), ShapeError);
}

TEST_CASE("shape: sizes that no memory holds are refused") {
  check_sizes("zeros", {1, 0, 3});
  CHECK_THROWS_WITH_AS(check_sizes("zeros", {2, -1}), "zeros: negative size in [2, -1]", ShapeError);
  CHECK_THROWS_WITH_AS(check_sizes("zeros", {int64_t{1} << 40, int64_t{1} << 40}),
                       doctest::Contains("zeros: too many elements: "), ShapeError);
  CHECK_THROWS_AS(check_sizes("zeros", {0, int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
}

}  // namespace
}  // namespace onestep

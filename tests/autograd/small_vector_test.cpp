#include "autograd/small_vector.h"

#include <doctest/doctest.h>

#include <memory>
#include <numeric>

namespace onestep {
namespace {

using Pointers = SmallVector<std::shared_ptr<int>, 3>;

TEST_CASE("small vector: grows beyond what it holds itself and keeps its elements") {
  SmallVector<int, 2> list;
  CHECK(list.empty());
  for (int i = 0; i < 9; ++i) {
    list.emplace_back(i);
    CHECK(list.size() == static_cast<size_t>(i) + 1);
    CHECK(list[0] == 0);
    CHECK(*(list.end() - 1) == i);
  }
  CHECK(std::accumulate(list.begin(), list.end(), 0) == 36);
}

TEST_CASE("small vector: given values, or so many default ones") {
  const SmallVector<int, 3> few = {1, 2};
  CHECK(few.size() == 2);
  CHECK(few[1] == 2);
  const Pointers many(size_t{5});
  CHECK(many.size() == 5);
  CHECK(many[4] == nullptr);
}

TEST_CASE("small vector: each element is destroyed once, and only moved when the list is") {
  const auto shared = std::make_shared<int>(7);
  for (const size_t size : {size_t{2}, size_t{3}, size_t{8}}) {
    CAPTURE(size);
    Pointers list;
    for (size_t i = 0; i < size; ++i) list.emplace_back(shared);
    CHECK(shared.use_count() == static_cast<long>(size) + 1);
    Pointers moved = std::move(list);
    CHECK(shared.use_count() == static_cast<long>(size) + 1);
    CHECK(moved.size() == size);
    CHECK(moved[size - 1] == shared);
    moved.clear();
    CHECK(shared.use_count() == 1);
    moved.emplace_back(shared);
    CHECK(moved[0] == shared);
  }
  CHECK(shared.use_count() == 1);
}

}  // namespace
}  // namespace onestep

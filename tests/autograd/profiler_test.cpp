#include "autograd/profiler.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "autograd/ops.h"

using namespace onestep;

namespace {

const Profiler::Entry* find(const std::vector<Profiler::Entry>& entries, const std::string& name) {
  const auto at = std::find_if(entries.begin(), entries.end(), [&](const Profiler::Entry& e) { return e.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("profiler: every op forwards and backwards with its arithmetic and bytes") {
  const Tensor a = ones({3, 4}).requires_grad_(), b = ones({4, 5});
  const Profiler profiler;
  sum(matmul(a, b)).backward();
  profile_mark("rest");
  const auto entries = profiler.entries();
  const Profiler::Entry *forward = find(entries, "matmul"), *backward = find(entries, "matmul backward");
  REQUIRE(forward);
  REQUIRE(backward);
  CHECK(forward->calls == 1);
  CHECK(forward->flops == 2 * 3 * 4 * 5);
  CHECK(forward->bytes == 4 * (12 + 20 + 15));
  CHECK(backward->flops == 2 * 3 * 4 * 5);
  CHECK(find(entries, "sum"));
  CHECK(find(entries, "sum backward"));
  CHECK(find(entries, "rest"));
  for (const auto& entry : entries) CHECK(entry.seconds >= 0);
  CHECK(std::is_sorted(entries.begin(), entries.end(), [](const auto& x, const auto& y) { return x.seconds > y.seconds; }));
  const std::string table = profile_table(entries);
  CHECK(table.find("matmul backward") != std::string::npos);
  CHECK(std::count(table.begin(), table.end(), '\n') == std::ssize(entries) + 1);
}

TEST_CASE("profiler: dropout is charged for its own work") {
  const Tensor x = transpose(ones({6, 40}).requires_grad_(), 0, 1);
  Generator generator(1);
  const Profiler profiler;
  sum(dropout(x, 0.5, true, generator)).backward();
  const auto entries = profiler.entries();
  for (const char* name : {"dropout", "dropout backward"}) CHECK(find(entries, name));
  for (const char* name : {"permute", "permute backward"}) CHECK_FALSE(find(entries, name));
}

TEST_CASE("profiler: ops without recording and outside its scope are not charged") {
  const Tensor a = ones({2, 2});
  {
    const Profiler profiler;
    {
      const NoGradGuard no_grad;
      matmul(a, a);
    }
    CHECK(profiler.entries().empty());
    CHECK(Profiler::active() == &profiler);
  }
  CHECK(Profiler::active() == nullptr);
  profile_mark("nobody listens");
}

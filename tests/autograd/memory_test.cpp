#include "autograd/memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "autograd/kernels/aligned_block.h"
#include "autograd/ops.h"
#include "tests/train/memory_limit.h"

namespace onestep {
namespace {

using memory::Stats;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaches = false;  // every block comes from the system then, so that an overrun is seen
#else
constexpr bool kCaches = true;
#endif

TEST_CASE("memory: blocks are aligned and large enough") {
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t bytes = 0; bytes < 5000; bytes += 1 + bytes / 7) {
    void* block = memory::allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
    std::memset(block, 0xab, bytes);
    blocks.emplace_back(block, bytes);
  }
  for (const auto& [block, bytes] : blocks) {
    const auto* first = static_cast<const unsigned char*>(block);
    for (size_t i = 0; i < bytes; ++i) REQUIRE(first[i] == 0xab);  // no two overlap
  }
  for (const auto& [block, bytes] : blocks) memory::deallocate(block, bytes);
}

TEST_CASE("memory: the bytes of a class are told by its index") {
  for (size_t bytes = 0; bytes < size_t{1} << 30; bytes += 1 + bytes / 13) {
    const memory::SizeClass size = memory::size_class(bytes);
    REQUIRE(memory::class_bytes(size.index) == size.bytes);
  }
}

TEST_CASE("memory: a child forked while other threads allocate can allocate, too") {
  std::atomic<bool> stop = false;
  std::vector<std::jthread> others;
  for (int t = 0; t < 2; ++t) {
    others.emplace_back([&] {
      while (!stop) memory::deallocate(memory::allocate(100), 100);
    });
  }
  int ended_well = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);  // ends a child that waits for ever
      memory::deallocate(memory::allocate(100), 100);
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ended_well += status == 0;
    if (status != 0) break;
  }
  stop = true;
  CHECK(ended_well == 100);
}

TEST_CASE("memory: live and peak bytes are counted in size classes") {
  const Stats before = memory::stats();
  void* a = memory::allocate(1);
  CHECK(memory::stats().live_bytes == before.live_bytes + 64);
  void* b = memory::allocate(65);
  CHECK(memory::stats().live_bytes == before.live_bytes + 64 + 80);
  void* c = memory::allocate(1000);
  CHECK(memory::stats().live_bytes == before.live_bytes + 64 + 80 + 1024);
  CHECK(memory::stats().peak_bytes >= before.live_bytes + 64 + 80 + 1024);
  memory::deallocate(a, 1);
  memory::deallocate(b, 65);
  memory::deallocate(c, 1000);
  CHECK(memory::stats().live_bytes == before.live_bytes);
  CHECK(memory::stats().peak_bytes >= before.peak_bytes);
}

TEST_CASE("memory: the peak can be reset") {
  memory::deallocate(memory::allocate(1 << 20), 1 << 20);
  memory::reset_peak();
  const Stats before = memory::stats();
  CHECK(before.peak_bytes == before.live_bytes);
  memory::deallocate(memory::allocate(1000), 1000);
  CHECK(memory::stats().peak_bytes == before.live_bytes + 1024);
}

TEST_CASE("memory: a size class wastes at most a quarter") {
  for (size_t bytes = 64; bytes < (size_t{1} << 22); bytes += bytes / 3 + 1) {
    const int64_t before = memory::stats().live_bytes;
    void* block = memory::allocate(bytes);
    const int64_t taken = memory::stats().live_bytes - before;
    memory::deallocate(block, bytes);
    CHECK(taken >= static_cast<int64_t>(bytes));
    CHECK(taken <= static_cast<int64_t>(bytes + bytes / 4 + 1));
  }
}

#ifdef __linux__
TEST_CASE("memory: large blocks take no more than their pages") {
  if (!kCaches) return;
  for (const size_t bytes : {size_t{50257} * 768 * 4, size_t{768} * 3072 * 4, size_t{300001}}) {
    const int64_t before = memory::stats().live_bytes;
    void* block = memory::allocate(bytes);
    const int64_t taken = memory::stats().live_bytes - before;
    memory::deallocate(block, bytes);
    CHECK(taken < static_cast<int64_t>(bytes + 4096));
    CHECK(memory::stats().live_bytes == before);
  }
}
#endif

TEST_CASE("memory: the peak is that of a tensor computation") {
  const Stats before = memory::stats();
  {
    const Tensor big = zeros({1024, 1024});
    CHECK(memory::stats().live_bytes >= before.live_bytes + (4 << 20));
  }
  CHECK(memory::stats().live_bytes == before.live_bytes);
  CHECK(memory::stats().peak_bytes >= before.live_bytes + (4 << 20));
}

TEST_CASE("memory: blocks go from one thread to another and are counted") {
  const Stats before = memory::stats();
  std::vector<std::pair<void*, size_t>> blocks;
  std::thread([&] {
    for (size_t i = 0; i < 3000; ++i) {
      const size_t bytes = 64 + 64 * (i % 20);  // small and large ones
      blocks.emplace_back(memory::allocate(bytes), bytes);
      std::memset(blocks.back().first, static_cast<int>(i % 251), bytes);
    }
  }).join();
  int64_t bytes_of_all = 0;
  for (const auto& block : blocks) bytes_of_all += static_cast<int64_t>(memory::size_class(block.second).bytes);
  CHECK(memory::stats().live_bytes == before.live_bytes + bytes_of_all);
  CHECK(memory::stats().peak_bytes >= before.live_bytes + bytes_of_all);
  for (size_t i = 0; i < blocks.size(); ++i) {  // no two overlap
    const auto* const first = static_cast<const unsigned char*>(blocks[i].first);
    REQUIRE(std::all_of(first, first + blocks[i].second, [&](unsigned char c) { return c == i % 251; }));
  }
  for (const auto& [block, bytes] : blocks) memory::deallocate(block, bytes);
  CHECK(memory::stats().live_bytes == before.live_bytes);
}

TEST_CASE("memory: a thread that ends leaves its blocks to others") {
  if (!kCaches) return;
  const auto work = [] {
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(memory::allocate(1000));
    for (void* block : blocks) memory::deallocate(block, 1000);
  };
  std::thread(work).join();
  const Stats warm = memory::stats();
  for (int i = 0; i < 100; ++i) std::thread(work).join();  // of new memory they would need five slabs
  CHECK(memory::stats().system_allocations == warm.system_allocations);
  CHECK(memory::stats().live_bytes == warm.live_bytes);
}

TEST_CASE("memory: threads allocate and free at once") {
  const Stats before = memory::stats();
  std::vector<std::thread> threads;
  std::atomic<int> damaged = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &damaged] {
      std::vector<unsigned char*> blocks;
      for (int i = 0; i < 20000; ++i) {
        blocks.push_back(static_cast<unsigned char*>(memory::allocate(200)));
        std::memset(blocks.back(), t, 200);
        if (i % 3 == 0) continue;
        unsigned char* const block = blocks[blocks.size() / 2];
        damaged += block[0] != t || block[199] != t;
        std::swap(blocks[blocks.size() / 2], blocks.back());
        memory::deallocate(block, 200);
        blocks.pop_back();
      }
      for (unsigned char* block : blocks) memory::deallocate(block, 200);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(damaged == 0);
  CHECK(memory::stats().live_bytes == before.live_bytes);
}

TEST_CASE("memory: in steady state the system is asked for nothing") {
  if (!kCaches) return;
  std::vector<Tensor> parameters;
  for (const Shape& shape : {Shape{8, 16}, Shape{300, 301}, Shape{400, 500}})  // kept in classes, and joined when they are free
    parameters.push_back(full(shape, 0.5).requires_grad_());
  const auto step = [&] {
    std::vector<Tensor> losses;
    for (const Tensor& w : parameters) losses.push_back(sum(mul(exp(add(w, w)), w)));
    for (const Tensor& loss : losses) loss.backward();
    const NoGradGuard no_grad;
    for (Tensor& w : parameters) {
      add_(w, neg(w.grad()));
      w.zero_grad();
    }
  };
  for (int i = 0; i < 3; ++i) step();
  const Stats warm = memory::stats();
  for (int i = 0; i < 20; ++i) step();
  CHECK(memory::stats().system_allocations == warm.system_allocations);
  CHECK(memory::stats().live_bytes == warm.live_bytes);
  CHECK(memory::stats().peak_bytes == warm.peak_bytes);
}

TEST_CASE("memory: cached blocks go back on request") {
  constexpr size_t bytes = 30 << 20;
  memory::deallocate(memory::allocate(bytes), bytes);
  const int64_t asked = memory::stats().system_allocations;
  memory::deallocate(memory::allocate(bytes), bytes);
  CHECK(memory::stats().system_allocations == asked + (kCaches ? 0 : 1));
  memory::release_cached();
  memory::deallocate(memory::allocate(bytes), bytes);
  CHECK(memory::stats().system_allocations == asked + (kCaches ? 1 : 2));
}

#ifdef __linux__
/// How many of the whole pages in a block are in memory.
int64_t resident_pages(void* block, size_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(block) + page - 1) / page * page;
  std::vector<unsigned char> resident((reinterpret_cast<uintptr_t>(block) + bytes - first) / page);
  REQUIRE(::mincore(reinterpret_cast<void*>(first), resident.size() * page, resident.data()) == 0);
  return std::count_if(resident.begin(), resident.end(), [](unsigned char r) { return (r & 1) != 0; });
}

TEST_CASE("memory: of a region that is in use the free blocks' pages go back on request") {
  if (!kCaches) return;
  for (const size_t bytes : {size_t{20000}, size_t{3} << 20}) {
    auto* const used = static_cast<unsigned char*>(memory::allocate(bytes));
    void* const freed = memory::allocate(bytes);
    std::memset(used, 0xab, bytes);
    std::memset(freed, 0xcd, bytes);
    CHECK(resident_pages(freed, bytes) > 0);
    memory::deallocate(freed, bytes);
    memory::release_cached();
    CHECK(resident_pages(freed, bytes) == 0);
    CHECK(std::all_of(used, used + bytes, [](unsigned char c) { return c == 0xab; }));
    void* const again = memory::allocate(bytes);
    std::memset(again, 0xef, bytes);
    memory::deallocate(again, bytes);
    memory::deallocate(used, bytes);
  }
}
#endif

TEST_CASE("memory: what went back in a region that is in use serves blocks of other sizes") {
  if (!kCaches) return;
  constexpr size_t bytes = 128 << 10, larger = 160 << 10;  // of 64 MiB first 40 are taken, then 25
  std::vector<void*> blocks;
  for (int i = 0; i < 320; ++i) blocks.push_back(memory::allocate(bytes));
  for (size_t i = 1; i < blocks.size(); ++i) memory::deallocate(blocks[i], bytes);
  memory::release_cached();
  const int64_t asked = memory::stats().system_allocations;
  std::vector<void*> others;
  for (int i = 0; i < 160; ++i) others.push_back(memory::allocate(larger));
  CHECK(memory::stats().system_allocations == asked);
  for (void* block : others) memory::deallocate(block, larger);
  memory::deallocate(blocks[0], bytes);
}

TEST_CASE("memory: large blocks that are free serve one of any size together") {
  if (!kCaches) return;
  constexpr size_t bytes = 8 << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(memory::allocate(bytes));
  for (const size_t i : std::array<size_t, 3>{1, 3, 2})
    memory::deallocate(blocks[i], bytes);  // joined on one side, and on both
  const int64_t asked = memory::stats().system_allocations;
  auto* const one = static_cast<std::byte*>(memory::allocate(3 * bytes));
  CHECK(one == blocks[1]);
  CHECK(memory::stats().system_allocations == asked);
  for (const size_t i : std::array<size_t, 3>{0, 4, 5}) {
    auto* const other = static_cast<std::byte*>(blocks[i]);
    CHECK((one + 3 * bytes <= other || other + bytes <= one));
    memory::deallocate(other, bytes);
  }
  memory::deallocate(one, 3 * bytes);
}

TEST_CASE("memory: a large block takes the smallest free place and leaves a larger one room") {
  if (!kCaches) return;
  constexpr size_t small = 1 << 20, large = 9 << 20;
  memory::release_cached();
  std::vector<std::pair<void*, size_t>> blocks;
  for (const size_t bytes : {large, small, small, small}) blocks.emplace_back(memory::allocate(bytes), bytes);
  for (const size_t i : std::array<size_t, 2>{0, 2}) memory::deallocate(blocks[i].first, blocks[i].second);
  REQUIRE(memory::allocate(small) == blocks[2].first);
  REQUIRE(memory::allocate(large) == blocks[0].first);
  for (const auto& [block, bytes] : blocks) memory::deallocate(block, bytes);
}

TEST_CASE("memory: cached blocks go back before the system has none left") {
  const testing::MemoryLimit limit(uint64_t{48} << 20);
  for (size_t bytes = 10 << 20; bytes <= 30 << 20; bytes += 5 << 20) memory::deallocate(memory::allocate(bytes), bytes);
  memory::deallocate(memory::allocate(30 << 20), 30 << 20);
}

TEST_CASE("memory: small free blocks beside each other serve a larger one before the system has none left") {
  if (!kCaches) return;
  constexpr size_t bytes = 64 << 10, most = 6000;
  std::vector<void*> blocks;
  for (size_t i = 0; i < most; ++i) blocks.push_back(memory::allocate(bytes));
  for (void* block : blocks) memory::deallocate(block, bytes);  // the list of free ones has room for all below
  blocks.clear();
  const testing::MemoryLimit limit(uint64_t{300} << 20);
  try {
    while (blocks.size() < most) blocks.push_back(memory::allocate(bytes));
  } catch (const Error&) {
  }
  for (size_t i = 0; i < blocks.size(); ++i)  // three beside each other; what has a region of its own stays
    if (i % 4 != 0 && i + 16 < blocks.size()) memory::deallocate(blocks[i], bytes);
  void* larger = nullptr;
  REQUIRE_NOTHROW(larger = memory::allocate(3 * bytes));
  const bool limited = blocks.size() < most;  // not with clang and sanitizers (MemoryLimit)
  CHECK(std::count(blocks.begin(), blocks.end(), larger) == (limited ? 1 : 0));
  memory::deallocate(larger, 3 * bytes);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % 4 == 0 || i + 16 >= blocks.size()) memory::deallocate(blocks[i], bytes);
}

TEST_CASE("memory: too much is an error and not a crash") {
  CHECK_THROWS_WITH_AS(memory::allocate(size_t{1} << 60), "memory: a block of 1152921504606846976 bytes is too large", Error);
  if (kCaches)
    CHECK_THROWS_WITH_AS(memory::allocate(size_t{1} << 50),
                         "memory: the system has no block of 1125899906842624 bytes left (a smaller model, batch or context "
                         "needs less)",
                         Error);
  if (kCaches) CHECK_THROWS_AS(kernels::required_block(size_t{1} << 50), Error);
  const Stats before = memory::stats();
  CHECK_THROWS_AS(zeros({int64_t{1} << 40, int64_t{1} << 18}), Error);
  CHECK(memory::stats().live_bytes == before.live_bytes);
}

}  // namespace
}  // namespace onestep

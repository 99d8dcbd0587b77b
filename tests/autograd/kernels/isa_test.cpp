// The choice of instruction set and of threads.
#include <atomic>

#include "base/error.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

TEST_CASE("kernels: an instruction set is used only where it is supported") {
  const Settings restore;
  CHECK(isa_supported(Isa::generic));
  CHECK(isa_supported(active_isa()));
  for (const Isa isa : kAllIsas) {
    if (isa_supported(isa)) {
      set_isa(isa);
      CHECK(active_isa() == isa);
    } else {
      CHECK_THROWS_WITH_AS(set_isa(isa), (std::string("set_isa: this machine cannot run ") + name(isa)).c_str(), ConfigError);
    }
  }
}

TEST_CASE("kernels: the number of threads is checked") {
  const Settings restore;
  set_num_threads(3);
  CHECK(num_threads() == 3);
  CHECK_THROWS_WITH_AS(set_num_threads(0), "set_num_threads: the number of threads must be from 1 to 1024: 0", ConfigError);
  CHECK_THROWS_AS(set_num_threads(1025), ConfigError);
  CHECK(num_threads() == 3);
}

TEST_CASE("kernels: parallel_for covers the range once whatever the threads") {
  const Settings restore;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (const int64_t n : {0, 1, 2, 5, 1000}) {
      std::vector<int> visits(static_cast<size_t>(n), 0);
      parallel_for(n, 1e6, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      CHECK(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }));
    }
  }
}

TEST_CASE("kernels: work inside a parallel region stays on its thread") {
  const Settings restore;
  set_num_threads(4);
  set_min_work_per_thread(16000);
  CHECK(threads_for(100, 1e9) == 4);
  CHECK(threads_for(3, 1e9) == 3);
  CHECK(threads_for(1, 1e9) == 1);
  CHECK(threads_for(100, 1.0) == 1);
  CHECK(threads_for(100, 33000) == 2);
  set_min_work_per_thread(0);
  CHECK(threads_for(100, 1.0) == 4);
  CHECK(threads_for(1, 1.0) == 1);
  parallel_for(4, 1e6, [](int64_t, int64_t) {
    if (threads_for(100, 1e9) != 1) throw Error("a region within a region");
  });
}

TEST_CASE("kernels: what a thread throws leaves the parallel region as one exception") {
  const Settings restore;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::atomic<int> done{0};
    const auto fail_at = [&](int64_t i) {
      if (i % 2 == 1) throw ConfigError("item " + std::to_string(i % 2));
      ++done;
    };
    CHECK_THROWS_WITH_AS(parallel_for(4, 1e9,
                                      [&](int64_t i, int64_t end) {
                                        for (; i < end; ++i) fail_at(i);
                                      }),
                         "item 1", ConfigError);
    CHECK_THROWS_WITH_AS(parallel_pieces(threads, 4, [&](int64_t i, int) { fail_at(i); }), "item 1", ConfigError);
    CHECK(done > 0);
    done = 0;
    parallel_pieces(threads, 4, [&](int64_t, int) { ++done; });
    CHECK(done == 4);
  }
}

}  // namespace
}  // namespace onestep::kernels

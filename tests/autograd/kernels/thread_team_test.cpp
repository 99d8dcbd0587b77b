#include "autograd/kernels/thread_team.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <thread>

#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using testing::Settings;

/// Whether each of n pieces is done once by one of `threads` threads.
bool does_each_piece_once(int threads, int64_t n) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
  std::atomic<bool> known = true;
  parallel_pieces(threads, n, [&](int64_t i, int thread) {
    ++visits[static_cast<size_t>(i)];
    if (thread < 0 || thread >= threads) known = false;
  });
  return known && std::all_of(visits.begin(), visits.end(), [](const auto& v) { return v == 1; });
}

TEST_CASE("thread_team: each piece is done once, whatever the numbers of pieces and threads") {
  for (int round = 0; round < 200; ++round) {
    for (const int threads : {2, 3, 4, 9}) {
      for (const int64_t n : {0, 1, 3, 4, 50}) {
        if (!does_each_piece_once(threads, n)) FAIL("pieces lost: ", n, " on ", threads, " threads");
      }
    }
  }
}

TEST_CASE("thread_team: several threads of a program have regions at the same time") {
  std::latch inside(1), done(1);
  std::thread other([&] {
    parallel_pieces(2, 2, [&](int64_t i, int) {
      if (i != 0) return;
      inside.count_down();
      done.wait();  // keeps the region open
    });
  });
  inside.wait();
  CHECK(does_each_piece_once(3, 50));  // and does not wait for it
  done.count_down();
  other.join();

  std::vector<std::jthread> programs;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    programs.emplace_back([&right] {
      for (int i = 0; i < 500; ++i) right += does_each_piece_once(3, 20);
    });
  }
  programs.clear();
  CHECK(right == 2000);
}

TEST_CASE("thread_team: a forked child computes, too") {
  REQUIRE(does_each_piece_once(3, 50));  // the parent has workers now, which a child has not
  const pid_t child = ::fork();
  if (child == 0) ::_exit(does_each_piece_once(3, 50) && does_each_piece_once(2, 7) ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(does_each_piece_once(3, 50));
}

TEST_CASE("thread_team: regions have as many threads as are chosen for them") {
  static int asked = 0;
  ThreadTeam::instance().choose_threads([](int all) {
    asked = all;
    return 1;
  });
  int most = 0;
  parallel_pieces(3, 50, [&](int64_t, int thread) { most = std::max(most, thread); });
  ThreadTeam::instance().choose_threads(nullptr);
  CHECK(asked == 3);
  CHECK(most == 0);
}

}  // namespace
}  // namespace onestep::kernels

// Communicator's collectives, over threads that hand each other their messages. Real ranks: tests/cli/distributed_test.cpp.
#include "train/distributed/communicator.h"

#include <doctest/doctest.h>

#include "tests/train/distributed/thread_ranks.h"

using namespace onestep::train;
using onestep::testing::run_ranks;

namespace {

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("communicator: gathered texts and numbers come by rank and the root's bytes go everywhere") {
  for (int size = 1; size <= 4; ++size) {
    CAPTURE(size);
    const Texts failures = run_ranks(size, [](Communicator& ranks) {
      const auto count = static_cast<size_t>(ranks.size()), rank = static_cast<size_t>(ranks.rank());
      Texts texts;
      std::vector<std::vector<double>> numbers;
      for (size_t r = 0; r < count; ++r) {
        texts.emplace_back(r, 'x');  // of different lengths, the first one empty
        numbers.emplace_back(r, 0.5);
      }
      ONESTEP_CHECK(onestep::Error, ranks.gather_text(texts[rank]) == texts, "gather_text");
      ONESTEP_CHECK(onestep::Error, ranks.all_gather(numbers[rank]) == numbers, "all_gather");
      ONESTEP_CHECK(onestep::Error, ranks.broadcast(ranks.is_root() ? "root" : "none") == "root", "broadcast");
      int number = ranks.rank() + 7;
      ranks.broadcast(std::as_writable_bytes(std::span(&number, 1)));
      ONESTEP_CHECK(onestep::Error, number == 7, "broadcast of bytes");
      for (const int speaker : {0, ranks.size() - 1}) ONESTEP_CHECK(onestep::Error, ranks.any(ranks.rank() == speaker), "any");
      ONESTEP_CHECK(onestep::Error, !ranks.any(false), "any of none");
    });
    CHECK(failures == Texts(static_cast<size_t>(size)));
  }
}

TEST_CASE("communicator: what fails on the root ends the work everywhere") {
  const auto failing = [](Communicator& ranks) { ranks.on_root([] { onestep::fail<onestep::Error>("no disk"); }); };
  CHECK(run_ranks(3, failing) == Texts{"no disk", "shared: no disk", "shared: no disk"});
  CHECK(run_ranks(1, failing) == Texts{"no disk"});
}

TEST_CASE("communicator: what fails on one rank is said by the root with its name and what fails on all is said once") {
  const auto one = [](Communicator& ranks) {
    ranks.on_all([&] { ONESTEP_CHECK(onestep::Error, ranks.rank() != 1, "no file"); });
  };
  CHECK(run_ranks(3, one) == Texts{"rank 1: no file", "shared: no file", "shared: no file"});
  const auto all = [](Communicator& ranks) { ranks.on_all([&] { onestep::fail<onestep::Error>("no file"); }); };
  CHECK(run_ranks(3, all) == Texts{"no file", "shared: no file", "shared: no file"});
  CHECK(run_ranks(2, [](Communicator& ranks) { ranks.on_all([] {}); }) == Texts{"", ""});
}

TEST_CASE("communicator: traffic counts what is sent to others") {
  CHECK(run_ranks(3, [](Communicator& ranks) {
          std::byte number{};
          const std::span<std::byte> bytes(&number, 1);
          ranks.broadcast(bytes);
          const int64_t sent = ranks.traffic().bytes;
          ONESTEP_CHECK(onestep::Error, sent == (ranks.is_root() ? 2 : 0), "sent ", sent);
        }) == Texts{"", "", ""});
}

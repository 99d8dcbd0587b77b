// Communicator's collectives, over threads that hand each other their messages. Real ranks: tests/cli/distributed_test.cpp.
#include "train/communicator.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

using namespace onestep::train;

namespace {

/// Messages on their way, by sender and receiver.
struct Mail {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> boxes;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(int rank, int size, Mail& mail) : rank_(rank), size_(size), mail_(mail) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

 private:
  struct Receipt : Transfer {
    Receipt(ThreadCommunicator& r, const Incoming& messages) : ranks(r), from(messages) {}
    void wait() override {
      for (int r = 0; r < ranks.size_; ++r)
        if (r != ranks.rank_ && !from[static_cast<size_t>(r)].empty()) ranks.receive(r, from[static_cast<size_t>(r)]);
    }
    ThreadCommunicator& ranks;
    Incoming from;
  };

  std::unique_ptr<Transfer> transfer(const Outgoing& to, const Incoming& from) override {
    for (int r = 0; r < size_; ++r) {
      const auto& message = to[static_cast<size_t>(r)];
      if (r == rank_ || message.empty()) continue;
      const std::lock_guard lock(mail_.mutex);
      mail_.boxes[{rank_, r}].emplace_back(message.begin(), message.end());
      mail_.arrived.notify_all();
    }
    return std::make_unique<Receipt>(*this, from);
  }

  void receive(int sender, std::span<std::byte> message) {
    std::unique_lock lock(mail_.mutex);
    auto& box = mail_.boxes[{sender, rank_}];
    mail_.arrived.wait(lock, [&] { return !box.empty(); });
    onestep::check<onestep::Error>(box.front().size() == message.size(), "a message of another size");
    std::copy(box.front().begin(), box.front().end(), message.begin());
    box.pop_front();
  }

  int rank_, size_;
  Mail& mail_;
};

/// Runs `work` on so many ranks; what each threw, "" for nothing.
std::vector<std::string> run_ranks(int size, const std::function<void(Communicator&)>& work) {
  Mail mail;
  std::vector<std::string> failures(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      ThreadCommunicator ranks(r, size, mail);
      try {
        work(ranks);
      } catch (const SharedError& error) {
        failures[static_cast<size_t>(r)] = std::string("shared: ") + error.what();
      } catch (const onestep::Error& error) {
        failures[static_cast<size_t>(r)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

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
      onestep::check<onestep::Error>(ranks.gather_text(texts[rank]) == texts, "gather_text");
      onestep::check<onestep::Error>(ranks.all_gather(numbers[rank]) == numbers, "all_gather");
      onestep::check<onestep::Error>(ranks.broadcast(ranks.is_root() ? "root" : "none") == "root", "broadcast");
      int number = ranks.rank() + 7;
      ranks.broadcast(std::as_writable_bytes(std::span(&number, 1)));
      onestep::check<onestep::Error>(number == 7, "broadcast of bytes");
      for (const int speaker : {0, ranks.size() - 1}) onestep::check<onestep::Error>(ranks.any(ranks.rank() == speaker), "any");
      onestep::check<onestep::Error>(!ranks.any(false), "any of none");
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
    ranks.on_all([&] { onestep::check<onestep::Error>(ranks.rank() != 1, "no file"); });
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
          onestep::check<onestep::Error>(sent == (ranks.is_root() ? 2 : 0), "sent ", sent);
        }) == Texts{"", "", ""});
}

#pragma once
// Ranks that are threads of one process and hand each other their messages.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "train/distributed/communicator.h"

namespace onestep::testing {

/// Messages on their way, by sender and receiver.
struct Mail {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> boxes;
};

class ThreadCommunicator : public train::Communicator {
 public:
  ThreadCommunicator(int rank, int size, Mail& mail) : rank_(rank), size_(size), mail_(mail) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::function<void()> on_transfer = [] {};  ///< Called when messages leave.

 private:
  struct Receipt : Transfer {
    Receipt(ThreadCommunicator& r, const Incoming& messages) : ranks(r), from(messages) {}
    bool progress() override { return wait(), true; }
    void wait() override {
      for (size_t r = 0; r < from.size(); ++r)
        if (static_cast<int>(r) != ranks.rank_ && !from[r].empty()) ranks.receive(static_cast<int>(r), from[r]);
      from.clear();
    }
    ThreadCommunicator& ranks;
    Incoming from;
  };

  std::unique_ptr<Transfer> transfer(const Outgoing& to, const Incoming& from) override {
    on_transfer();
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
    ONESTEP_CHECK(Error, box.front().size() == message.size(), "a message of another size");
    std::copy(box.front().begin(), box.front().end(), message.begin());
    box.pop_front();
  }

  int rank_, size_;
  Mail& mail_;
};

/// Runs `work` on so many ranks; what each threw, "" for nothing.
inline std::vector<std::string> run_ranks(int size, const std::function<void(ThreadCommunicator&)>& work) {
  Mail mail;
  std::vector<std::string> failures(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      ThreadCommunicator ranks(r, size, mail);
      try {
        work(ranks);
      } catch (const train::SharedError& error) {
        failures[static_cast<size_t>(r)] = std::string("shared: ") + error.what();
      } catch (const Error& error) {
        failures[static_cast<size_t>(r)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

}  // namespace onestep::testing

#pragma once
// Ranks: processes that train one model together. This is the form for a single process; train/distributed/mpi/ has the one for
// several.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace onestep::train {

/// What failed on another rank, which says so.
struct SharedError : Error {
  using Error::Error;
};

/// How ranks talk. Every function but rank() and size() is collective: all ranks call it, in the same order. Throws Error
/// naming the rank that does not answer.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// 0 .. size() - 1. Rank 0, the root, alone writes logs and checkpoints.
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  bool is_root() const { return rank() == 0; }

  using Outgoing = std::vector<std::span<const std::byte>>;  ///< By rank.
  using Incoming = std::vector<std::span<std::byte>>;
  /// Messages on their way.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    /// Lets them continue without waiting for them. Whether all have been sent and received.
    virtual bool progress() { return true; }
    /// Returns when all have been sent and received.
    virtual void wait() {}
  };
  /// Starts to send to[r] to every other rank r and to fill from[r] with what it sends here; both know the sizes, 0 is no
  /// message. All of it must stay where it is until it has been waited for.
  std::unique_ptr<Transfer> start(const Outgoing& to, const Incoming& from);
  /// Waits for what was started.
  void wait(Transfer& transfer);
  /// Starts a transfer and waits for it.
  void exchange(const Outgoing& to, const Incoming& from) { wait(*start(to, from)); }

  /// What every rank gave, by rank.
  std::vector<std::string> gather_text(const std::string& mine);
  /// The numbers that every rank gave, by rank.
  std::vector<std::vector<double>> all_gather(const std::vector<double>& mine);
  /// Whether any rank says so.
  bool any(bool mine);
  /// The root's text, everywhere.
  std::string broadcast(const std::string& roots);
  /// The root's bytes, everywhere.
  void broadcast(std::span<std::byte> bytes);
  /// Does `work` on the root alone; an Error there ends it everywhere, as SharedError on the other ranks.
  void on_root(const std::function<void()>& work);
  /// Does `work` on all ranks; an Error anywhere ends it everywhere. The root throws it, naming the rank unless all failed
  /// alike; the others throw SharedError.
  void on_all(const std::function<void()>& work);
  /// Whether on_root or on_all has ended in an error, so that no rank waits for another.
  bool all_know() const { return all_know_; }

  /// Sent and waited for so far.
  struct Traffic {
    int64_t bytes = 0;
    double seconds = 0;
    Traffic operator-(const Traffic& before) const { return {bytes - before.bytes, seconds - before.seconds}; }
    void operator+=(const Traffic& more) { bytes += more.bytes, seconds += more.seconds; }
  };
  const Traffic& traffic() const { return traffic_; }
  /// After so many seconds without an answer a rank is taken to hang.
  void set_timeout(double seconds) { timeout_ = seconds; }

 protected:
  double timeout() const { return timeout_; }
  Traffic traffic_;

 private:
  virtual std::unique_ptr<Transfer> transfer(const Outgoing&, const Incoming&) { return std::make_unique<Transfer>(); }
  double timeout_ = 600;
  bool all_know_ = false;
};

}  // namespace onestep::train

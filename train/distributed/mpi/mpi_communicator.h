#pragma once
// The Communicator over MPI's point-to-point messages.
#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

#include "train/distributed/communicator.h"

namespace onestep::train {

/// Ranks of MPI_COMM_WORLD. MPI is initialised while it lives; where the program cannot continue, abort() ends all ranks.
class MpiCommunicator : public Communicator {
 public:
  /// Joins the other ranks, which must come within `timeout` seconds.
  explicit MpiCommunicator(double timeout);
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  /// Gives this rank its share of the cores that it and others of the same machine may run on. A rank whose number of threads
  /// is set keeps it; the others share what those leave, with one thread each at least. Collective.
  void share_cores();
  [[noreturn]] static void abort(int status);

 private:
  std::unique_ptr<Transfer> transfer(const Outgoing& to, const Incoming& from) override;

  int rank_ = 0, size_ = 1;
};

}  // namespace onestep::train

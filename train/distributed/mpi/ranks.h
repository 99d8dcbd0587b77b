#pragma once
// Where `mpirun` (or another launcher of MPI) has started the program several times, its processes are the ranks of one run.
#include <functional>
#include <memory>
#include <string>

#include "train/distributed/communicator.h"

namespace onestep::train {

/// `Open MPI v4.1.4`, or `not built in`.
std::string mpi_version();

/// Does `work` with the ranks that were started together (a single process for one that was started alone), and returns the
/// exit status of this one. Of several ranks one that fails says why, and all end; what all know of is said once. Unless the
/// user has set the threads, a rank takes its share of the cores it may run on. `timeout` says how many seconds they have to
/// start, and to end unless `work` has set another. Throws ConfigError if there are several and the program was built without
/// MPI.
int run_ranks(const std::function<double()>& timeout, const std::function<int(std::shared_ptr<Communicator>)>& work);

}  // namespace onestep::train

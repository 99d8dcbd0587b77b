#include "train/distributed/mpi/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#ifdef ONESTEP_MPI
#include "base/error.h"
#include "train/distributed/mpi/mpi_communicator.h"
#endif

namespace onestep::train {

namespace {

/// The processes that mpirun says it has started together; 0 where it does not say.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* ranks = std::getenv(name)) return std::atoi(ranks);
  return 0;
}

}  // namespace

#ifdef ONESTEP_MPI

namespace {

constexpr int kDiverged = 1, kBadInput = 2;

/// Whether a launcher has set what it sets for the ranks it starts: Open MPI, PMIx (Slurm), PMI (MPICH, Intel MPI).
bool is_launched() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMI_RANK") != nullptr;
}

/// In one piece: other ranks may be speaking, too.
void say(const MpiCommunicator& ranks, const std::string& reason) {
  const std::string who = ranks.is_root() ? "" : "rank " + std::to_string(ranks.rank()) + ": ";
  std::cerr << "onestep: " + who + reason + '\n' << std::flush;
}

/// Says why and ends all ranks with `status`: those that do not know may be waiting for this one. If all know, each ends by
/// itself, which the launcher takes more calmly than an abort.
int fail_all(MpiCommunicator& ranks, const std::string& reason, int status) {
  say(ranks, reason);
  if (!ranks.all_know()) MpiCommunicator::abort(status);
  return status;
}

}  // namespace

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, static_cast<size_t>(length));
  version = version.substr(0, version.find_first_of(",\n"));
  std::replace(version.begin(), version.end(), '\t', ' ');  // MPICH lines it up
  return version;
}

int run_ranks(const std::function<double()>& timeout, const std::function<int(std::shared_ptr<Communicator>)>& work) {
  if (!is_launched()) return work(std::make_shared<Communicator>());
  const auto ranks = std::make_shared<MpiCommunicator>(timeout());
  try {
    const int launched = launched_ranks();
    ONESTEP_CHECK(ConfigError, launched == 0 || launched == ranks->size(), "started as one of ", launched,
                  " MPI ranks, of which ", mpi_version(), " sees ", ranks->size(),
                  " (use the mpirun of the MPI that the program was built with)");
    ranks->share_cores();
    const int status = work(ranks);
    ONESTEP_CHECK(IoError, bool(std::cout.flush()), "stdout: cannot be written (disk full or closed?)");
    return status;
  } catch (const SharedError&) {  // said by the rank it comes from
    return kBadInput;
  } catch (const DivergedError& error) {  // on all ranks alike
    if (ranks->is_root()) say(*ranks, error.what());
    return kDiverged;
  } catch (const std::bad_alloc&) {
    return fail_all(*ranks, "out of memory (try a smaller model, batch or context)", kBadInput);
  } catch (const std::exception& error) {
    return fail_all(*ranks, error.what(), kBadInput);
  }
}

#else

std::string mpi_version() { return "not built in"; }

int run_ranks(const std::function<double()>&, const std::function<int(std::shared_ptr<Communicator>)>& work) {
  ONESTEP_CHECK(ConfigError, launched_ranks() <= 1, "started as one of ", launched_ranks(),
                " MPI ranks, but built without MPI (install an MPI such as libopenmpi-dev and build again)");
  return work(std::make_shared<Communicator>());
}

#endif

}  // namespace onestep::train

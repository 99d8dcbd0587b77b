#include "train/distributed/mpi/mpi_communicator.h"

#include <sched.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>

#include "autograd/kernels/parallel.h"

namespace onestep::train {
namespace {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, reason, &length);
  fail<Error>("distributed: ", call, " failed: ", std::string(reason, static_cast<size_t>(length)));
}

int count_of(size_t bytes) {
  ONESTEP_CHECK(Error, bytes <= INT_MAX, "distributed: a message of ", bytes, " bytes is too long");
  return static_cast<int>(bytes);
}

/// Sleeps longer the longer it has waited: a rank that waits leaves the core to those that compute.
class Patience {
 public:
  explicit Patience(double seconds) : left_(seconds) {}
  /// False when time is up. Time in which this process was stopped, too, does not count.
  bool wait() {
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    left_ -= std::min(passed, 0.1);
    waited_ += passed;
    if (waited_ > 50e-6) std::this_thread::sleep_for(std::chrono::microseconds(waited_ > 5e-3 ? 500 : 20));
    return left_ > 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double left_, waited_ = 0;
  Clock::time_point last_ = Clock::now();
};

/// MPI starts and ends together with all ranks and knows no timeout: one that waits too long for the others ends the job.
class StartAndEndAlarm {
 public:
  explicit StartAndEndAlarm(double timeout) {
    seconds_left = static_cast<std::sig_atomic_t>(std::ceil(timeout));
    std::signal(SIGALRM, [](int) {
      seconds_left = seconds_left - 1;  // while this process was stopped, too, one tick at most came
      if (seconds_left > 0) return;
      constexpr std::string_view kMessage =
          "onestep: distributed: the other ranks do not start or end (does one hang? otherwise raise distributed.timeout)\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
      ::_exit(2);
    });
    tick_every(1);
  }
  ~StartAndEndAlarm() { tick_every(0); }
  StartAndEndAlarm(const StartAndEndAlarm&) = delete;
  StartAndEndAlarm& operator=(const StartAndEndAlarm&) = delete;

 private:
  static void tick_every(time_t seconds) {
    const itimerval timer{{seconds, 0}, {seconds, 0}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  static inline volatile std::sig_atomic_t seconds_left = 0;
};

std::string join_ranks(const std::set<int>& ranks) {
  std::string out;
  for (const int rank : ranks) out += (out.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + out;
}

/// Where a rank runs, and with how many threads if its user has said so.
struct Seat {
  char machine[MPI_MAX_PROCESSOR_NAME] = "";
  cpu_set_t cores = {};
  int claimed = 0;
};

/// Whether there is a core on which both may run.
bool meet(const Seat& a, const Seat& b) {
  cpu_set_t common;
  CPU_AND(&common, &a.cores, &b.cores);
  return std::string_view(a.machine) == b.machine && CPU_COUNT(&common) > 0;
}

/// Requests and the ranks at their other ends.
class MpiTransfer : public Communicator::Transfer {
 public:
  explicit MpiTransfer(double timeout) : timeout_(timeout) {}
  MPI_Request* add(int peer) {
    peers_.push_back(peer);
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }
  bool progress() override { return test(); }
  void wait() override {
    Patience patience(timeout_);
    while (!test()) {
      if (patience.wait()) continue;
      fail<Error>("distributed: no answer from ", silent(), " for ", timeout_,
                  " s (does it hang? otherwise raise distributed.timeout)");
    }
  }

 private:
  bool test() {
    int done = 0;
    check_mpi(MPI_Testall(count_of(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    return done != 0;
  }
  std::string silent() const {
    std::set<int> ranks;
    for (size_t i = 0; i < requests_.size(); ++i) {
      int complete = 0;
      if (requests_[i] != MPI_REQUEST_NULL) MPI_Request_get_status(requests_[i], &complete, MPI_STATUS_IGNORE);
      if (requests_[i] != MPI_REQUEST_NULL && complete == 0) ranks.insert(peers_[i]);
    }
    return join_ranks(ranks);
  }

  double timeout_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
};

}  // namespace

MpiCommunicator::MpiCommunicator(double timeout) {
  set_timeout(timeout);
  const StartAndEndAlarm alarm(timeout);
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

MpiCommunicator::~MpiCommunicator() {
  const StartAndEndAlarm alarm(timeout());
  MPI_Finalize();
}

void MpiCommunicator::abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

void MpiCommunicator::share_cores() {
  Seat own;
  if (sched_getaffinity(0, sizeof own.cores, &own.cores) != 0) CPU_SET(0, &own.cores);
  int length = 0;
  check_mpi(MPI_Get_processor_name(own.machine, &length), "MPI_Get_processor_name");
  if (kernels::num_threads_is_set()) own.claimed = kernels::num_threads();
  int sharing = 0, claimed = 0;  // this rank is among those that share, unless it has claimed its threads
  for (const std::string& bytes : gather_text({reinterpret_cast<const char*>(&own), sizeof own})) {
    Seat other;
    std::memcpy(&other, bytes.data(), sizeof other);
    if (!meet(own, other)) continue;
    sharing += other.claimed == 0;
    claimed += other.claimed;
  }
  if (own.claimed == 0) kernels::set_num_threads(std::max(1, (kernels::num_threads() - claimed) / std::max(1, sharing)));
}

std::unique_ptr<Communicator::Transfer> MpiCommunicator::transfer(const Outgoing& to, const Incoming& from) {
  constexpr int kTag = 0;
  auto started = std::make_unique<MpiTransfer>(timeout());
  for (int r = 0; r < size_; ++r) {
    const std::span<std::byte> message = from[static_cast<size_t>(r)];
    if (r == rank_ || message.empty()) continue;
    check_mpi(MPI_Irecv(message.data(), count_of(message.size()), MPI_BYTE, r, kTag, MPI_COMM_WORLD, started->add(r)),
              "MPI_Irecv");
  }
  for (int r = 0; r < size_; ++r) {
    const std::span<const std::byte> message = to[static_cast<size_t>(r)];
    if (r == rank_ || message.empty()) continue;
    check_mpi(MPI_Isend(message.data(), count_of(message.size()), MPI_BYTE, r, kTag, MPI_COMM_WORLD, started->add(r)),
              "MPI_Isend");
  }
  return started;
}

}  // namespace onestep::train

#include "autograd/kernels/parallel.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace onestep::kernels {
namespace {

/// Distinct cores among the CPUs this process may run on: hyper-threads share the units the kernels saturate.
int physical_cores() {
  const int processors = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
#ifdef __linux__
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string list;
    if (!std::getline(siblings, list)) return processors;
    cores.insert(list);
  }
  if (!cores.empty()) return static_cast<int>(cores.size());
#endif
  return processors;
}

constexpr int kMaxThreads = ThreadTeam::kMostThreads;

/// Starts as many threads at once, once: those that were asked for must be there.
void check_threads_start(int threads) {
#ifdef __wasi__
  return;  // there are none: the one thread does the work of all (ThreadTeam::start_workers)
#endif
  if (threads <= static_cast<int>(std::thread::hardware_concurrency())) return;
  std::vector<std::jthread> started;
  std::latch all(1);
  try {
    while (static_cast<int>(started.size()) + 1 < threads) started.emplace_back([&all] { all.wait(); });
  } catch (const std::system_error& error) {
    all.count_down();
    fail<ConfigError>("threads: the system lets ", started.size() + 1, " run at once, not ", threads, ": ",
                      error.code().message(), " (set --threads or OMP_NUM_THREADS)");
  }
  all.count_down();
}

int initial_threads() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return physical_cores();
  int threads = 0;
  const char* const last = text + std::strlen(text);
  const auto [end, error] = std::from_chars(text, last, threads);
  const bool whole = end == last || *end == ',';  // `4,2` is for nested regions, of which there are none
  ONESTEP_CHECK(ConfigError, error == std::errc() && whole && threads >= 1 && threads <= kMaxThreads,
                "OMP_NUM_THREADS: the number of threads must be from 1 to ", kMaxThreads, ": got ", text);
  check_threads_start(threads);
  return threads;
}

int& current() {
  static int threads = initial_threads();
  return threads;
}

bool was_set = false;
double min_work = 6000;

}  // namespace

int num_threads() { return current(); }

void RegionError::store() noexcept {
  if (!stored_.test_and_set()) first_ = std::current_exception();
}

bool num_threads_is_set() {
  static const bool in_environment = std::getenv("OMP_NUM_THREADS") != nullptr;
  return was_set || in_environment;
}

void set_num_threads(int n) {
  ONESTEP_CHECK(ConfigError, n >= 1 && n <= kMaxThreads, "set_num_threads: the number of threads must be from 1 to ",
                kMaxThreads, ": ", n);
  check_threads_start(n);
  current() = n;
  was_set = true;
}

double min_work_per_thread() { return min_work; }

void set_min_work_per_thread(double nanoseconds) { min_work = nanoseconds; }

void parallel_ranges(int64_t n, double work, int threads, const void* f,
                     void (*call)(const void* f, int64_t begin, int64_t end)) {
  constexpr double kPiece = 25000, kMostPieces = 8;  // nanoseconds; of a thread's share
  const auto share = static_cast<int64_t>(std::clamp(work / (threads * kPiece), 1.0, kMostPieces));
  const int64_t pieces = std::min(n, threads * share);
  parallel_pieces(threads, pieces, [=](int64_t i, int) {
    const int64_t begin = n * i / pieces, end = n * (i + 1) / pieces;
    if (begin < end) call(f, begin, end);
  });
}

}  // namespace onestep::kernels

#include "train/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"

namespace onestep::train {
namespace {

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string describe_machine() {
  const int threads = kernels::num_threads();
  return processor_name() + ", " + std::string(kernels::name(kernels::active_isa())) + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

double memory_mib() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

}  // namespace onestep::train

#include "base/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

namespace onestep {
namespace {

namespace fs = std::filesystem;

double number_in(const fs::path& file) {  // "max" and no file at all are no limit
  double value = 0;
  return std::ifstream(file) >> value ? value : std::numeric_limits<double>::infinity();
}

/// The number of the line that begins with `key`; 0 if there is none.
double value_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  double value = 0;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) std::istringstream(line.substr(key.size())) >> value;
  return value;
}

/// What this group and those above it leave; pages of files can be given back.
double cgroup_left(const fs::path& root) {
  double left = std::numeric_limits<double>::infinity();
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool v2 = line.starts_with("0::/");
    if (!v2 && line.find(":memory:/") == std::string::npos) continue;
    const fs::path mount = root / (v2 ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    fs::path group = fs::path(line.substr(line.rfind(':') + 1)).relative_path();
    while (true) {
      const fs::path folder = mount / group;
      const double most = number_in(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"));
      const double used = number_in(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"));
      const double files = value_of(folder / "memory.stat", "inactive_file ");
      if (std::isfinite(most) && std::isfinite(used)) left = std::min(left, std::max(most - used + files, 0.0));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return left;
}

double rlimit_left([[maybe_unused]] const fs::path& root) {
#ifdef __wasi__
  return static_cast<double>(uint64_t{65536 - __builtin_wasm_memory_size(0)} << 16);  // of pages that 32 bits can address
#else
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::numeric_limits<double>::infinity();
  return std::max(static_cast<double>(limit.rlim_cur) - 1024 * value_of(root / "proc/self/status", "VmSize:"), 0.0);
#endif
}

}  // namespace

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

double memory_mib() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double peak_memory_mib() {
#ifdef __wasi__
  return static_cast<double>(__builtin_wasm_memory_size(0)) / 16;  // it never shrinks
#else
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
#endif
}

int64_t available_memory(const fs::path& root) {
  const fs::path meminfo = root / "proc/meminfo";
  const double system = 1024 * (value_of(meminfo, "MemAvailable:") + value_of(meminfo, "SwapFree:"));
  const double most = system > 0 ? system : std::numeric_limits<double>::infinity();
  return static_cast<int64_t>(std::min({most, cgroup_left(root), rlimit_left(root), 9e18}));
}

}  // namespace onestep

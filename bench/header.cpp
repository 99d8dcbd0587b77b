#include "bench/header.h"

#include <unistd.h>

#include <sstream>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "base/machine.h"

namespace onestep::bench {

double process_age() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text;
  double now = 0;
  std::getline(stat, text);
  uptime >> now;
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  for (int field = 3; field <= 22; ++field) fields >> text;  // proc(5): starttime is the 22nd
  return now - std::stod(text) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

nlohmann::ordered_json report(nlohmann::ordered_json result, const Timing& timing, double first_result) {
  result["median_ms"] = timing.median_ms;
  result["min_ms"] = timing.min_ms;
  result["p90_ms"] = timing.p90_ms;
  result["reps"] = timing.reps;
  result["process_s_at_first_result"] = first_result;
  result["peak_rss_mib"] = peak_memory_mib();
  return result;
}

nlohmann::ordered_json header(const std::string& bench) {
  return {{"bench", bench},
          {"framework", "onestep"},
          {"isa", kernels::name(kernels::active_isa())},
          {"cpu", processor_name()},
          {"threads", kernels::num_threads()}};
}

}  // namespace onestep::bench

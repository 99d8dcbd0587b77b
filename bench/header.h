#pragma once
// The keys that every result of a benchmark has.
#include <nlohmann/json.hpp>
#include <string>

#include "bench/measure.h"

namespace onestep::bench {

/// Seconds since this process was started, loading and command line included.
double process_age();

/// The benchmark, the machine and the settings.
nlohmann::ordered_json header(const std::string& bench);

/// `result` with the time of one call, the peak memory and `first_result`, the process_age() after the first call.
nlohmann::ordered_json report(nlohmann::ordered_json result, const Timing& timing, double first_result);

}  // namespace onestep::bench

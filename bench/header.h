#pragma once
// What every result of a benchmark says.
#include <nlohmann/json.hpp>
#include <string>

#include "bench/measure.h"

namespace onestep::bench {

/// Seconds since this process was started, with loading and command line.
double process_age();

/// Which work, on what.
nlohmann::ordered_json header(const std::string& bench);

/// `result` with the time of one call and what a reader needs to compare it; `first_result` is the process_age() after the
/// first.
nlohmann::ordered_json report(nlohmann::ordered_json result, const Timing& timing, double first_result);

}  // namespace onestep::bench

#pragma once
// Lists of ids, and the prompts of `generate`: of the command line, or of a file.
#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands/loaded_run.h"

namespace onestep::cli {

/// `1,2,3`. Throws ConfigError, which calls the list `what`, also for an id that the run's model does not have.
std::vector<int64_t> parse_id_list(const std::string& list, const std::string& what, const LoadedRun& run);

/// `--stop-ids`; `list` holds what was given.
void add_stop_ids(Command& command, std::string& list, const std::string& description);
/// Adds them to what ends a text of the run.
void stop_at_ids(const LoadedRun& run, const std::string& list, train::Stops& stops);

/// The ids of each line of a text file of at most 64 MiB, of standard input for `-`; in a file whose name ends in .jsonl, of
/// the JSON string on each line. Throws IoError, and ConfigError naming file and line.
std::vector<std::vector<int64_t>> read_prompts(const std::string& file, const LoadedRun& run);

}  // namespace onestep::cli

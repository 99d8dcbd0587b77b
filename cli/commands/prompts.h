#pragma once
// The prompts of `generate`: of the command line, or of a file.
#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands/loaded_run.h"

namespace onestep::cli {

/// `1,2,3`. Throws ConfigError, which calls the list `what`.
std::vector<int64_t> parse_id_list(const std::string& list, const std::string& what);

/// The ids of each line of a text file of at most 64 MiB, of standard input for `-`; in a file whose name ends in .jsonl, of
/// the JSON string on each line. Throws IoError, and ConfigError naming file and line.
std::vector<std::vector<int64_t>> read_prompts(const std::string& file, const LoadedRun& run);

}  // namespace onestep::cli

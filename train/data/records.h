#pragma once
// The rows of CSV, TSV and JSONL files.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/text/tokenizer.h"

namespace onestep::train {

/// Hands over the JSON value of every line that is not empty, and `FILE: line 12`. Throws IoError for a file that cannot be
/// read and ConfigError for a line that is no JSON.
void for_each_json_line(const std::string& file, const std::function<void(const nlohmann::json&, const std::string&)>& use);

/// A row of a table and where it begins: `FILE: line 12`.
struct TableRow {
  std::vector<std::string> fields;
  std::string place;
};

/// The rows of a CSV (RFC 4180: fields in quotes may hold commas, line ends and doubled quotes) or, by its name, of a TSV,
/// whose fields are what is between tabs. All have as many fields as the first; empty lines are none. Throws IoError, and
/// ConfigError naming file and line.
std::vector<TableRow> read_table(const std::string& file);

/// What `read` gives of each of the files, one after the other. Throws ConfigError for a file of which it gives nothing.
template <class Read>
auto read_all(const std::vector<std::string>& files, const Read& read) {
  decltype(read(files[0])) all;
  for (const std::string& file : files) {
    const size_t before = all.size();
    for (auto& each : read(file)) all.push_back(std::move(each));
    ONESTEP_CHECK(ConfigError, all.size() > before, file, ": has no examples");
  }
  return all;
}

/// work(), whose ConfigError gets the place in front.
template <class Work>
auto at_place(const std::string& place, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const ConfigError& error) {
    throw ConfigError(place + ": " + error.what());
  }
}

}  // namespace onestep::train

#include "cli/commands/prompts.h"

#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/read_file.h"
#include "base/utf8.h"

namespace onestep::cli {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;

std::string read_standard_input() {
  std::string text;
  char block[1 << 16];
  while (const size_t count = read_some(STDIN_FILENO, "standard input", block, sizeof block)) {
    text.append(block, count);
    ONESTEP_CHECK(ConfigError, std::ssize(text) <= kMostBytes, "standard input: more than ", format_bytes(kMostBytes));
  }
  return text;
}

}  // namespace

std::vector<int64_t> parse_id_list(const std::string& list, const std::string& what, const LoadedRun& run) {
  const int64_t vocabulary = run.model->vocab_size();
  std::vector<int64_t> ids;
  for (const char *at = list.data(), *end = at + list.size(); at <= end;) {
    int64_t id = 0;
    const auto [behind, error] = std::from_chars(at, end, id);
    ONESTEP_CHECK(ConfigError, error == std::errc() && (behind == end || *behind == ','), what,
                  ": must be ids with commas: got ", quote(list));
    ONESTEP_CHECK(ConfigError, 0 <= id && id < vocabulary, what, ": the model has no token ", id, ": ids are from 0 to ",
                  vocabulary - 1);
    ids.push_back(id);
    at = behind + 1;
  }
  return ids;
}

void add_stop_ids(Command& command, std::string& list, const std::string& description) {
  command.add_option("--stop-ids", list, description)->type_name("IDS")->check(not_empty("a list of ids"));
}

void stop_at_ids(const LoadedRun& run, const std::string& list, train::Stops& stops) {
  if (list.empty()) return;
  const std::vector<int64_t> ids = parse_id_list(list, "--stop-ids", run);
  stops.ids.insert(stops.ids.end(), ids.begin(), ids.end());
}

std::vector<std::vector<int64_t>> read_prompts(const std::string& file, const LoadedRun& run) {
  const bool standard_input = file == "-", json_lines = file.ends_with(".jsonl");
  const std::string shown = standard_input ? "standard input" : file;
  std::istringstream lines(standard_input ? read_standard_input() : read_file(file, kMostBytes));
  std::vector<std::vector<int64_t>> prompts;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = shown + ", line " + std::to_string(prompts.size() + 1);
    if (json_lines) {
      const nlohmann::json value = parse_json<ConfigError>(line, place);
      ONESTEP_CHECK(ConfigError, value.is_string(), place, ": must be a JSON string: got ", brief(value));
      line = value.get<std::string>();
    }
    prompts.push_back(run.encode(line, place));
    ONESTEP_CHECK(ConfigError, !prompts.back().empty(), place, ": the prompt is empty");
  }
  ONESTEP_CHECK(ConfigError, !prompts.empty(), shown, ": has no prompt");
  return prompts;
}

}  // namespace onestep::cli

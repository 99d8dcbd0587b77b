#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "train/log/metrics_reader.h"
#include "train/run_folder.h"

namespace onestep::cli {
namespace {

using nlohmann::json;

/// Every key, those of a training step first and in their usual order.
std::vector<std::string> columns(const std::string& run) {
  std::vector<std::string> names{"step", "loss", "lr", "grad_norm", "tokens_per_second", "seconds", "val_loss", "val_accuracy"};
  for_each_metrics(metrics_path(run), [&](const json& row) {
    for (const auto& [key, value] : row.items()) {
      if (std::find(names.begin(), names.end(), key) == names.end()) names.push_back(key);
    }
  });
  return names;
}

/// A field of RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

int print_csv(const std::string& run) {
  const std::vector<std::string> names =
      columns(run_path(run).string());  // reads all lines, so that nothing is printed of a damaged file
  for (size_t i = 0; i < names.size(); ++i) std::cout << (i == 0 ? "" : ",") << field(names[i]);
  std::cout << '\n';
  for_each_metrics(metrics_path(run), [&](const json& row) {
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = row.find(names[i]);
      std::cout << (i == 0 ? "" : ",") << (found == row.end() || found->is_null() ? "" : found->dump());
    }
    std::cout << '\n';
  });
  return 0;
}

}  // namespace

void add_export_csv(Command& app, Action& action) {
  auto run = std::make_shared<std::string>();
  auto* command = app.add_subcommand("export-csv", "The metrics of a run as comma-separated values");
  command->add_option("RUN", *run, "The run folder")->required();
  command->callback([run, &action] { action = [run] { return print_csv(*run); }; });
}

}  // namespace onestep::cli

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "base/format.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "train/checkpoint/safetensors.h"
#include "train/run_folder.h"
#include "train/runs/run_summary.h"
#include "train/runs/trained_run.h"
#include "train/trainer.h"

namespace onestep::cli {
namespace {

std::string shape_text(const Shape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}

/// A line a tensor and their total.
void print_tensors(const NamedTensors& tensors) {
  size_t width = 4;
  for (const auto& [name, tensor] : tensors) width = std::max(width, escaped(name).size());
  int64_t elements = 0, bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    std::cout << std::left << std::setw(static_cast<int>(width) + 2) << escaped(name) << std::setw(18)
              << shape_text(tensor.shape()) << std::setw(10) << tensor.dtype() << grouped_count(tensor.numel()) << '\n';
    elements += tensor.numel();
    bytes += tensor.numel() * size_of(tensor.dtype());
  }
  std::cout << tensors.size() << " tensors, " << grouped_count(elements) << " elements, "
            << grouped(static_cast<double>(bytes) / 1048576.0, 2) << " MiB\n";
}

int inspect_tensor_file(const std::string& path, const std::vector<std::string>& sets) {
  ONESTEP_CHECK(ConfigError, sets.empty(), "inspect: --set changes values of a config: ", path, " is a .safetensors file");
  const TensorFile file = read_safetensors(path);
  for (const auto& [key, value] : file.metadata) std::cout << escaped(key) << ": " << escaped(value) << '\n';
  print_tensors(file.tensors);
  return 0;
}

/// What the metrics of a run say.
void print_training(const RunSummary& summary, const Config& config) {
  std::cout << "trained      " << grouped_count(summary.steps) << " of " << grouped_count(config.train.steps) << " steps in "
            << grouped(summary.seconds, 1) << " s\n";
  if (!summary.loss.empty())
    std::cout << "train loss   " << loss_text(summary.loss.back().second) << " in the last logged step\n";
  if (summary.val_loss.empty()) return;
  std::cout << "val loss     " << loss_text(summary.val_loss.back().second) << ", best " << loss_text(summary.best()->second)
            << " after step " << grouped_count(summary.best()->first) << '\n';
}

int inspect_run(const std::filesystem::path& run, const std::vector<std::string>& sets) {
  const Config config = load_run_config(run);
  ONESTEP_CHECK(ConfigError, sets.empty(), "inspect: --set changes values of a config file: ", run.string(), " is a run");
  // All that may be refused is read before any of it is printed.
  std::error_code error;
  std::optional<RunSummary> summary;
  if (std::filesystem::exists(run / "metrics.jsonl", error)) summary = summarize_run(run);
  const auto tokenizer = load_run_tokenizer(run);
  const std::vector<std::filesystem::path> checkpoints = checkpoint_folders(run);
  std::optional<FoundCheckpoint> last;
  if (!checkpoints.empty()) last = choose_checkpoint(run, config, "last");
  std::cout << "run          " << run.string() << '\n';
  if (summary) print_training(*summary, config);
  if (tokenizer)
    std::cout << "tokenizer    " << name_of(tokenizer->kind()) << ", vocabulary " << grouped_count(tokenizer->vocab_size())
              << '\n';
  std::vector<std::string> names(checkpoints.size());
  std::transform(checkpoints.begin(), checkpoints.end(), names.begin(),
                 [](const auto& path) { return path.filename().string(); });
  std::cout << "checkpoints  " << (names.empty() ? "none" : join(names, ", ")) << "\n\n" << resolved_json(config) << '\n';
  if (!last) return 0;
  std::cout << (last->folder / "model.safetensors").string() << ":\n";
  print_tensors(last->checkpoint.trainer.model);
  return 0;
}

int inspect_config(const std::string& path, const std::vector<std::string>& sets) {
  Trainer trainer(load_config(path, sets));
  std::cout << resolved_json(trainer.config()) << '\n' << trainer.model() << "\n\n";
  print_tensors(trainer.model().named_parameters());
  return 0;
}

int inspect(const std::string& file, const std::vector<std::string>& sets) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return inspect_run(run_path(file), sets);
  return file.ends_with(".safetensors") ? inspect_tensor_file(file, sets) : inspect_config(file, sets);
}

struct Options {
  std::string file;
  std::vector<std::string> sets;
};

}  // namespace

void add_inspect(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("inspect", "What a config, a safetensors file or a run holds");
  command
      ->add_option(
          "FILE", options->file,
          "A config (its values and its model), a .safetensors file, or a run folder (its figures, config and parameters)")
      ->required();
  command->add_set_option(options->sets, "model.d_model=64");
  command->callback([options, &action] { action = [options] { return inspect(options->file, options->sets); }; });
}

}  // namespace onestep::cli

#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/format.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "train/checkpoint/safetensors.h"
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
              << shape_text(tensor.shape()) << std::setw(10) << tensor.dtype() << grouped(static_cast<double>(tensor.numel()))
              << '\n';
    elements += tensor.numel();
    bytes += tensor.numel() * size_of(tensor.dtype());
  }
  std::cout << tensors.size() << " tensors, " << grouped(static_cast<double>(elements)) << " elements, "
            << grouped(static_cast<double>(bytes) / 1048576.0, 2) << " MiB\n";
}

int inspect_tensor_file(const std::string& path, const std::vector<std::string>& sets) {
  ONESTEP_CHECK(ConfigError, sets.empty(), "inspect: --set changes values of a config: ", path, " is a .safetensors file");
  const TensorFile file = read_safetensors(path);
  for (const auto& [key, value] : file.metadata) std::cout << escaped(key) << ": " << escaped(value) << '\n';
  print_tensors(file.tensors);
  return 0;
}

int inspect_config(const std::string& path, const std::vector<std::string>& sets) {
  Trainer trainer(load_config(path, sets));
  std::cout << resolved_json(trainer.config()) << '\n' << trainer.model() << "\n\n";
  print_tensors(trainer.model().named_parameters());
  return 0;
}

struct Options {
  std::string file;
  std::vector<std::string> sets;
};

}  // namespace

void add_inspect(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("inspect", "What a config or a safetensors file holds");
  command->add_option("FILE", options->file, "A config (its values and its model) or a .safetensors file")->required();
  command->add_set_option(options->sets, "model.d_model=64");
  command->callback([options, &action] {
    action = [options] {
      return options->file.ends_with(".safetensors") ? inspect_tensor_file(options->file, options->sets)
                                                     : inspect_config(options->file, options->sets);
    };
  });
}

}  // namespace onestep::cli

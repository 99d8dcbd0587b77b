#include <iostream>
#include <map>
#include <memory>

#include "cli/commands/commands.h"
#include "train/models/pretrained_files.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"

namespace onestep::cli {
namespace {

/// What numbers may be rounded to.
const std::map<std::string, DType> kDTypes{{"float32", DType::float32}, {"bf16", DType::bfloat16}, {"f16", DType::float16}};

namespace fs = std::filesystem;

struct Options {
  std::string run, folder, checkpoint = "last", dtype = "float32";
  bool quiet = false;
};

int export_model(const Options& options) {
  const fs::path run = run_path(options.run), folder = run_path(options.folder);
  const Config config = load_run_config(run);
  ONESTEP_CHECK(ConfigError, config.model.kind == ModelKind::gpt, (run / "config.json").string(), ": /model/kind: is ",
                name_of(config.model.kind), ": only gpt can be exported");
  const FoundCheckpoint found = choose_checkpoint(run, config, options.checkpoint);
  Pretrained model{config.model, found.checkpoint.trainer.model};
  for (const auto& [name, tensor] : model.state)
    if (name == "transformer.wte.weight") model.model.vocab_size = tensor.size(0);  // the config leaves it to the data
  const auto tokenizer = load_run_tokenizer(run);
  write_pretrained(folder, model, {.tokenizer = tokenizer.get(), .dtype = kDTypes.at(options.dtype), .quiet = options.quiet});
  std::cout << "tokenizer    "
            << (tokenizer == nullptr                    ? "none"
                : tokenizer->kind() != "bpe"            ? tokenizer->kind() + ": not written (GPT-2's files are for bpe)"
                : fs::exists(folder / "tokenizer.json") ? "bpe, in tokenizer.json"
                                                        : "bpe, in vocab.json and merges.txt")
            << '\n'
            << "checkpoint   " << found.folder.string() << '\n'
            << "written to   " << folder.string() << '\n';
  return 0;
}

}  // namespace

void add_export(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("export", "Write a run's GPT as transformers' from_pretrained reads it");
  command->add_option("RUN", options->run, "The run folder")->required();
  command
      ->add_option("DIR", options->folder,
                   "The folder to write config.json and model.safetensors into, and the tokenizer of a bpe run")
      ->required();
  command->add_option("--dtype", options->dtype, "What numbers are rounded to")
      ->type_name("float32|bf16|f16")
      ->check(one_of({"float32", "bf16", "f16"}));
  command->add_checkpoint_option(options->checkpoint);
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->callback([options, &action] { action = [options] { return export_model(*options); }; });
}

}  // namespace onestep::cli

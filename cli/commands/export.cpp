#include <iostream>
#include <map>
#include <memory>

#include "cli/commands/commands.h"
#include "train/models/adapter_files.h"
#include "train/models/gguf_files.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"

namespace onestep::cli {
namespace {

namespace fs = std::filesystem;

/// What numbers may be rounded to, in a folder for transformers and in a GGUF.
const std::map<std::string, DType> kDTypes{{"float32", DType::float32}, {"bf16", DType::bfloat16}, {"f16", DType::float16}};
const std::map<std::string, GgmlType> kGgmlTypes{
    {"float32", GgmlType::f32}, {"bf16", GgmlType::bf16}, {"f16", GgmlType::f16}, {"q8_0", GgmlType::q8_0}};

struct Options {
  std::string run, target, checkpoint = "last", dtype = "float32";
  bool adapter = false, quiet = false;
};

/// Writes the model; returns where its tokenizer went.
std::string write_model(const fs::path& target, const Pretrained& model, const Tokenizer* tokenizer, const Options& options) {
  const bool gguf = target.extension() == ".gguf", bpe = tokenizer != nullptr && tokenizer->kind() == TokenizerKind::bpe;
  ONESTEP_CHECK(ConfigError, gguf || kDTypes.contains(options.dtype), "--dtype: ", options.dtype,
                " is for a FILE.gguf alone: got ", target.string());
  if (gguf)
    write_gguf(target, model, {.tokenizer = tokenizer, .type = kGgmlTypes.at(options.dtype), .quiet = options.quiet});
  else
    write_pretrained(target, model, {.tokenizer = tokenizer, .dtype = kDTypes.at(options.dtype), .quiet = options.quiet});
  if (tokenizer == nullptr) return "none";
  if (!bpe)
    return std::string(name_of(tokenizer->kind())) + ": not written (" +
           (gguf ? "a GGUF has those of bpe" : "GPT-2's files are for bpe") + ")";
  if (gguf) return "bpe, in the file";
  return fs::exists(target / "tokenizer.json") ? "bpe, in tokenizer.json" : "bpe, in vocab.json and merges.txt";
}

int export_adapters(const fs::path& run, const fs::path& target, const Pretrained& model, const FoundCheckpoint& found,
                    const Options& options) {
  ONESTEP_CHECK(ConfigError, model.model.lora.rank > 0, (run / "config.json").string(),
                ": has no model.lora: there are no adapters (export without --adapter)");
  ONESTEP_CHECK(ConfigError, target.extension() != ".gguf" && kDTypes.contains(options.dtype),
                "--adapter: writes a folder in float32, bf16 or f16: got ", target.string(), " and ", options.dtype);
  write_adapters(target, model, kDTypes.at(options.dtype), options.quiet);
  std::cout << "adapters     of rank " << model.model.lora.rank << '\n'
            << "checkpoint   " << found.folder.string() << '\n'
            << "written to   " << target.string() << '\n';
  return 0;
}

int export_model(const Options& options) {
  const fs::path run = run_path(options.run), target = run_path(options.target);
  const Config config = load_run_config(run);
  ONESTEP_CHECK(ConfigError, config.model.kind == ModelKind::gpt, (run / "config.json").string(), ": /model/kind: is ",
                name_of(config.model.kind), ": only gpt can be exported");
  ONESTEP_CHECK(ConfigError, num_classes(config) == 0, (run / "config.json").string(),
                ": /data/kind: is classification: a head over labels cannot be exported");
  FoundCheckpoint found = choose_checkpoint(run, config, options.checkpoint);
  if (!options.adapter) found = without_adapters(found, config.model);
  Pretrained model{config.model, found.checkpoint.trainer.model};
  if (!options.adapter) model.model.lora = {};
  for (const auto& [name, tensor] : model.state)
    if (name == "transformer.wte.weight") model.model.vocab_size = tensor.size(0);  // the config leaves it to the data
  if (options.adapter) return export_adapters(run, target, model, found, options);
  const auto tokenizer = load_run_tokenizer(run);
  const std::string written = write_model(target, model, tokenizer.get(), options);  // before the first word of output
  std::cout << "tokenizer    " << written << '\n'
            << "checkpoint   " << found.folder.string() << '\n'
            << "written to   " << target.string() << '\n';
  return 0;
}

}  // namespace

void add_export(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("export", "Write a run's GPT as transformers' from_pretrained or llama.cpp reads it");
  command->add_option("RUN", options->run, "The run folder")->required();
  command
      ->add_option(
          "DIR", options->target,
          "The folder to write config.json and model.safetensors into, and the tokenizer of a bpe run; or FILE.gguf, which "
          "holds all of it")
      ->check(not_empty("the name of a folder"))
      ->required();
  command->add_option("--dtype", options->dtype, "What numbers are rounded to (default: float32); q8_0 is for FILE.gguf")
      ->type_name("float32|bf16|f16|q8_0")
      ->check(one_of({"float32", "bf16", "f16", "q8_0"}));
  command->add_flag("--adapter", options->adapter,
                    "Adapters alone (model.lora), as peft's PeftModel.from_pretrained reads them; without it they are merged");
  command->add_checkpoint_option(options->checkpoint);
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->callback([options, &action] { action = [options] { return export_model(*options); }; });
}

}  // namespace onestep::cli

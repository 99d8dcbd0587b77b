#include <filesystem>
#include <iostream>
#include <memory>

#include "autograd/random/generator.h"
#include "base/format.h"
#include "cli/commands/commands.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/frozen_file.h"
#include "train/models/adapter_files.h"
#include "train/models/pretrained_files.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"
#include "train/text/tokenizer.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string folder, out, base;
  bool quiet = false;
};

/// The tokenizer beside the model, if there is one.
std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& folder, int64_t vocab_size) {
  if (!has_tokenizer(folder)) return nullptr;
  auto tokenizer = open_tokenizer(folder.string());
  ONESTEP_CHECK(IoError, tokenizer->vocab_size() <= vocab_size, folder.string(), ": its tokenizer has ",
                tokenizer->vocab_size(), " tokens, its model only ", vocab_size);
  return tokenizer;
}

/// runs/NAME, NAME being all of the folder's, which may hold dots (gpt2-v1.5).
std::filesystem::path default_run(const std::filesystem::path& folder) {
  return std::filesystem::path("runs") / run_path(std::filesystem::absolute(folder).string()).filename();
}

/// Makes the run of an imported model: no data, and its parameters as step 0. Those that are frozen are already in the file
/// `frozen`, if any are.
void save_run(const std::filesystem::path& run, Config config, const Tokenizer* tokenizer, TrainerState state,
              const std::filesystem::path& frozen, const Options& options) {
  config.data.kind = DataKind::none;
  config.origin.file = options.folder;
  config = resolve(config);
  const RunLock lock = create_run(run, config, tokenizer);
  Checkpoint checkpoint;
  checkpoint.trainer = std::move(state);
  checkpoint.trainer.config = fixed_values(config);
  checkpoint.trainer.generator = Generator(config.seed).state();
  try {
    lock.naming_errors([&] {
      if (!frozen.empty()) share_frozen(lock.folder(), frozen);
      save_checkpoint(lock.folder(), checkpoint, config.train.keep_checkpoints, options.quiet);
    });
  } catch (...) {
    discard_run(lock);
    throw;
  }
}

/// A run of the model of another one with adapters from a folder.
int import_adapters(const Options& options) {
  const std::filesystem::path folder = run_path(options.folder), base = run_path(options.base);
  const std::filesystem::path run = options.out.empty() ? default_run(folder) : run_path(options.out);
  check_stays(folder, run);
  check_stays(base, run);
  const Config theirs = load_run_config(base);
  ONESTEP_CHECK(ConfigError, theirs.model.kind == ModelKind::gpt && num_classes(theirs) == 0, (base / "config.json").string(),
                ": /model/kind: must be a gpt that continues texts: got ", name_of(theirs.model.kind));
  const FoundCheckpoint found = without_adapters(choose_checkpoint(base, theirs, "last"), theirs.model);
  Config config;
  config.model = theirs.model;
  config.model.vocab_size = trained_vocabulary(found);
  PretrainedAdapters adapters = read_adapters(folder, config.model);
  config.model.lora = adapters.lora;
  TrainerState state;
  state.model = found.checkpoint.trainer.model;
  for (const auto& [name, _] : state.model) state.frozen.insert(name);
  for (auto& named : adapters.state) state.model.push_back(std::move(named));
  save_run(run, config, load_run_tokenizer(base).get(), std::move(state), found.folder / "model.safetensors", options);
  std::cout << "adapters     of rank " << config.model.lora.rank << " for " << base.string() << '\n'
            << "run folder   " << run.string() << '\n';
  return 0;
}

int import_model(const Options& options) {
  if (!options.base.empty()) return import_adapters(options);
  const std::filesystem::path folder = run_path(options.folder);
  const std::filesystem::path run = options.out.empty() ? default_run(folder) : run_path(options.out);
  check_stays(folder, run);
  Pretrained pretrained = read_pretrained(folder, options.quiet);
  Config config;
  config.model = pretrained.model;
  int64_t parameters = 0;
  for (const auto& [_, tensor] : pretrained.state) parameters += tensor.numel();
  const std::unique_ptr<Tokenizer> tokenizer = read_tokenizer(folder, config.model.vocab_size);
  TrainerState state;
  state.model = std::move(pretrained.state);
  save_run(run, config, tokenizer.get(), std::move(state), {}, options);
  std::cout << "model        " << config.model.num_layers << " layers, " << config.model.d_model << " wide, "
            << grouped_count(parameters) << " parameters\n"
            << "run folder   " << run.string() << '\n';
  return 0;
}

}  // namespace

void add_import(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "import", "Make a run of a GPT-2, Llama, Mistral, Qwen2 or Qwen3 in the files of Hugging Face's transformers");
  command
      ->add_option("DIR", options->folder,
                   "The folder with config.json, model.safetensors (or its index) and tokenizer.json; with --base one with "
                   "adapter_config.json and adapter_model.safetensors")
      ->check(not_empty("the name of a folder"))
      ->required();
  command->add_option("--base", options->base, "The run of the model that DIR has adapters for, as peft saves them")
      ->type_name("RUN");
  command->add_option("--out", options->out, "Run folder (default: runs/<folder name>)")->type_name("RUN");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->callback([options, &action] { action = [options] { return import_model(*options); }; });
}

}  // namespace onestep::cli

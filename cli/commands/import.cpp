#include <filesystem>
#include <iostream>
#include <memory>

#include "autograd/random/generator.h"
#include "base/format.h"
#include "cli/commands/commands.h"
#include "train/checkpoint/checkpoint.h"
#include "train/models/pretrained_files.h"
#include "train/run_folder.h"
#include "train/text/tokenizer.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string folder, out;
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

int import_model(const Options& options) {
  const std::filesystem::path folder = run_path(options.folder);
  const std::filesystem::path run = options.out.empty() ? default_run(folder) : run_path(options.out);
  check_stays(folder, run);
  Pretrained pretrained = read_pretrained(folder, options.quiet);
  Config config;
  config.model = pretrained.model;
  config.data.kind = DataKind::none;
  config.origin.file = folder.string();
  config = resolve(config);
  int64_t parameters = 0;
  for (const auto& [_, tensor] : pretrained.state) parameters += tensor.numel();

  const std::unique_ptr<Tokenizer> tokenizer = read_tokenizer(folder, config.model.vocab_size);
  const RunLock lock = create_run(run, config, tokenizer.get());
  Checkpoint checkpoint;
  checkpoint.trainer.config = fixed_values(config);
  checkpoint.trainer.generator = Generator(config.seed).state();
  checkpoint.trainer.model = std::move(pretrained.state);
  lock.naming_errors([&] { save_checkpoint(lock.folder(), checkpoint, config.train.keep_checkpoints, options.quiet); });
  std::cout << "model        " << config.model.num_layers << " layers, " << config.model.d_model << " wide, "
            << grouped(static_cast<double>(parameters)) << " parameters\n"
            << "run folder   " << run.string() << '\n';
  return 0;
}

}  // namespace

void add_import(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "import", "Make a run of a GPT-2, Llama, Mistral, Qwen2 or Qwen3 in the files of Hugging Face's transformers");
  command
      ->add_option("DIR", options->folder, "The folder with config.json, model.safetensors (or its index) and tokenizer.json")
      ->required();
  command->add_option("--out", options->out, "Run folder (default: runs/<folder name>)")->type_name("RUN");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->callback([options, &action] { action = [options] { return import_model(*options); }; });
}

}  // namespace onestep::cli

// The program: `onestep COMMAND ...`. Reads the command line, runs one command, turns every failure into one sentence.

#include <iostream>
#include <new>
#include <string>

#include "autograd/error.h"
#include "autograd/kernels/parallel.h"
#include "train/commands/commands.h"

namespace {

using onestep::ConfigError;
using onestep::IoError;
namespace commands = onestep::train::commands;

// In the order of `onestep --help`.
constexpr void (*kCommands[])(CLI::App&, commands::Action&) = {
    commands::add_version,
};

constexpr int kBadInput = 2;

// The one sentence for a command line that cannot be read.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto called = app.get_subcommands();
  const std::string hint = called.empty() ? " (see onestep --help)" : " (see onestep " + called[0]->get_name() + " --help)";
  const auto extras = app.remaining(/*recurse=*/true);
  if (!extras.empty()) {
    const bool option = extras[0].starts_with('-');
    return (option ? "unknown option " : called.empty() ? "unknown command " : "unexpected argument ") + extras[0] + hint;
  }
  if (called.empty() && error.get_name() == "RequiredError") return "no command given" + hint;
  return error.what() + hint;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Understand attention and train small language models on the CPU you have.\n"
      "Results go to stdout, progress to stderr. Exit status: 0 done, 1 a check failed or training diverged,\n"
      "2 bad input, 130 interrupted after saving.",
      "onestep"};
  app.require_subcommand(1);
  app.fallthrough();  // `--threads` may stand before or after the command
  app.set_version_flag("--version", "onestep " ONESTEP_VERSION);
  int threads = 0;
  app.add_option("--threads", threads, "Threads to use (default: OMP_NUM_THREADS, else the physical cores)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  commands::Action action;
  for (const auto add : kCommands) add(app, action);
  for (auto* command : app.get_subcommands({})) command->footer("Every command also takes --threads N.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);  // prints what was asked for: help or version
  } catch (const CLI::ParseError& error) {
    throw ConfigError(usage_error(app, error));
  }
  if (threads > 0) onestep::kernels::set_num_threads(threads);
  const int status = action();
  if (!std::cout.flush()) throw IoError("stdout: cannot be written (disk full or closed?)");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "onestep: out of memory (try a smaller model, batch or context)\n";
  } catch (const std::exception& error) {
    std::cerr << "onestep: " << error.what() << '\n';
  }
  return kBadInput;
}

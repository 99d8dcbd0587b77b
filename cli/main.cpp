// The program: `onestep COMMAND ...`. Reads the command line, runs one command, turns every failure into one sentence.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/kernels/parallel.h"
#include "base/error.h"
#include "base/suggest.h"
#include "cli/commands/commands.h"
#include "cli/commands/help.h"
#include "cli/guarded.h"

namespace {

using onestep::ConfigError;
namespace commands = onestep::cli;

// In the order of `onestep --help`.
constexpr void (*kCommands[])(commands::Command&, commands::Action&) = {
    commands::add_train,     commands::add_sweep,      commands::add_eval,    commands::add_generate, commands::add_chat,
    commands::add_classify,  commands::add_tokenizer,  commands::add_import,  commands::add_export,   commands::add_book,
    commands::add_gradcheck, commands::add_inspect,    commands::add_graph,   commands::add_compare,  commands::add_report,
    commands::add_play,      commands::add_export_csv, commands::add_bench,   commands::add_schema,   commands::add_completion,
    commands::add_man,       commands::add_help,       commands::add_version,
};

// The program and the commands that were called: `onestep`, `onestep tokenizer`, `onestep tokenizer train`.
std::vector<const CLI::App*> called(const CLI::App& app) {
  std::vector<const CLI::App*> levels{&app};
  for (auto next = app.get_subcommands(); !next.empty(); next = next[0]->get_subcommands()) levels.push_back(next[0]);
  return levels;
}

// The message for an argument that no command takes.
std::string unknown_word(const CLI::App& app, const std::string& word, const std::string& hint) {
  const auto levels = called(app);
  std::vector<std::string> known = commands::command_names(*levels.back());
  const bool option = word.starts_with('-'), command = !option && !known.empty();
  if (option) {
    known.clear();
    for (const CLI::App* level : levels) {
      for (const auto* known_option : level->get_options()) known.push_back("--" + known_option->get_single_name());
    }
  }
  const std::string meant = onestep::nearest(word, known);
  return (option    ? "unknown option "
          : command ? "unknown command "
                    : "unexpected argument ") +
         word + onestep::did_you_mean(meant, hint);
}

// For a word after `--`, where all are arguments: `train -- config.json --out run`.
std::string word_behind_dashes(const std::string& word) {
  return "unexpected argument " + word + (word == "--" ? "" : " after --") + " (commands and options go before it)";
}

// CLI11 says `--out: 1 required RUN missing` or `--out: At Most 1 required but received 2`.
std::string mismatch(const std::string& what) {
  const std::string option = what.substr(0, what.find(": "));
  const std::string required = "1 required ", missing = " missing";
  if (what.find("received") != std::string::npos) return option + ": may be given only once";
  const size_t name = what.find(required) + required.size();
  return option + ": needs a value: " + option + ' ' + what.substr(name, what.rfind(missing) - name);
}

// CLI11 says `Could not convert: --profile = x`. All other options are checked before they are converted.
std::string flag_with_value(const std::string& what) {
  const size_t name = what.find(": ") + 2, equals = what.find(" = ");
  if (equals == std::string::npos) return what;
  return what.substr(name, equals - name) + ": takes no value: got " + what.substr(equals + 3);
}

// The one sentence for a command line that cannot be read; `behind_dashes` has the words after `--`.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, std::span<char* const> behind_dashes) {
  const auto levels = called(app);
  std::string hint = " (see ";
  for (const CLI::App* level : levels) hint += level->get_name() + ' ';
  hint += "--help)";
  const auto extras = app.remaining(/*recurse=*/true);
  if (!extras.empty() && std::find(behind_dashes.begin(), behind_dashes.end(), extras[0]) != behind_dashes.end())
    return word_behind_dashes(extras[0]);
  if (!extras.empty()) return unknown_word(app, extras[0], hint);
  const std::vector<std::string> commands = commands::command_names(*levels.back());
  if (error.get_name() == "ArgumentMismatch") return mismatch(error.what()) + hint;
  if (error.get_name() == "ConversionError") return flag_with_value(error.what()) + hint;
  if (commands.empty() || error.get_name() != "RequiredError") return error.what() + hint;
  if (levels.size() == 1) return "no command given" + hint;
  std::string needed = levels.back()->get_name() + ": needs one of";
  for (const std::string& name : commands) needed += (name == commands[0] ? " " : ", ") + name;
  return needed + hint;
}

// An unset variable of the shell must not turn `--out "$RUN"` into no option at all, nor `--out $RUN --quiet` or `--out=$RUN
// --quiet` into a run called --quiet. What an argument without a dash names is refused where it is opened.
void refuse_empty_names(CLI::App& command) {
  const auto takes_option = [&command](const std::string& text) {
    for (CLI::App* level = &command; level != nullptr && text.starts_with("--"); level = level->get_parent())
      if (level->get_option_no_throw(text) != nullptr) return "needs a value before " + text;
    return std::string();
  };
  for (CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    if (option->get_positional() || option->get_expected_max() == 0) continue;
    option->check(CLI::Validator(takes_option, ""));
    if (type == "FILE" || type == "RUN" || type == "FOLDER")
      option->check(CLI::Validator(commands::not_empty("the name of a " + type), ""));
  }
  for (CLI::App* second : command.get_subcommands({})) refuse_empty_names(*second);
}

// CLI11 takes the next argument as the value of `--out=`.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      throw ConfigError(std::string(word.substr(0, word.size() - 1)) + ": needs a value");
  }
}

int run(int argc, char** argv) {
  CLI::App app{
      "Understand attention and train small language models on the CPU you have.\n"
      "Results go to stdout, progress to stderr. Exit status: 0 done, 1 a check failed or training diverged,\n"
      "2 bad input, 130 interrupted (training finishes its step and saves first; a second signal ends it at once).",
      "onestep"};
  app.formatter(std::make_shared<commands::HelpFormatter>());
  app.require_subcommand(1);
  app.fallthrough();  // `--threads` may come before or after the command
  app.set_version_flag("--version", "onestep " ONESTEP_VERSION);
  int threads = 0;
  app.add_option("--threads", threads, "Threads to use (default: OMP_NUM_THREADS, else the physical cores)")
      ->type_name("N")
      ->check(CLI::Validator(commands::whole_number(1, 1024), ""));
  commands::Action action;
  commands::Command root(app);
  for (const auto add : kCommands) add(root, action);
  refuse_empty_names(app);
  for (auto* command : app.get_subcommands({})) {
    command->group("Commands");
    for (auto* second : command->get_subcommands({})) second->group("Commands");
  }
  app.footer(  // last: a command would begin with it

      "`onestep COMMAND --help` has the options of a command, `onestep man | man -l -` all of this. In a checkout ./onestep\n"
      "builds what is needed first, and also knows: ./onestep test (the whole test suite), ./onestep exercise [N].");
  refuse_empty_values(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    action = [&app, help] { return app.exit(help); };  // prints what was asked for: help or version
  } catch (const CLI::ParseError& error) {
    char** const end = argv + argc;
    char** const dashes = std::find(argv, end, std::string_view("--"));
    throw ConfigError(usage_error(app, error, {dashes, end}));
  }
  if (threads > 0) onestep::kernels::set_num_threads(threads);
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  return onestep::cli::guarded([&] { return run(argc, argv); });
}

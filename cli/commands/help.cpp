#include "cli/commands/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/commands/commands.h"
#include "train/config/config.h"

namespace onestep::cli {

HelpFormatter::HelpFormatter() {
  label("Positionals", "Arguments");
  label("OPTIONS", "OPTION ...");
  label("SUBCOMMAND", "COMMAND ...");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  return '\n' + Formatter::make_usage(app, std::move(name));
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string own = Formatter::make_footer(app);
  return app->get_parent() == nullptr ? own : "Every command also takes --threads N.\n" + (own.empty() ? "" : '\n' + own);
}

// An argument's name says what it is.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  return option->get_positional() || option->get_items_expected_max() == 0 ? "" : ' ' + option->get_type_name();
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required() && option->nonpositional()) text += " (required)";
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size && option->nonpositional()) text += " (repeatable)";
  if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ')';
  return text;
}

namespace {

int print_help(const CLI::App& app, const std::vector<std::string>& names) {
  if (!names.empty() && names[0] == "config") {
    ONESTEP_CHECK(ConfigError, names.size() <= 2, "help config: takes one section or key: got ", names.size() - 1);
    std::cout << train::config_help(names.size() == 2 ? names[1] : "");
    return 0;
  }
  const CLI::App* level = &app;
  std::string name = app.get_name();
  for (const std::string& next : names) {
    const std::vector<std::string> known = command_names(*level);
    const auto found = std::find(known.begin(), known.end(), next);
    const std::string meant = nearest(next, known);
    ONESTEP_CHECK(ConfigError, found != known.end(), "help: unknown command ", next,
                  did_you_mean(meant, " (see " + name + " --help)"));
    level = all_subcommands(*level)[static_cast<size_t>(found - known.begin())];
    name += ' ' + next;
  }
  std::cout << level->get_formatter()->make_help(level, name, CLI::AppFormatMode::Normal);
  return 0;
}

}  // namespace

void add_help(Command& app, Action& action) {
  const auto names = std::make_shared<std::vector<std::string>>();
  auto* command = app.add_subcommand("help", "What a command does, and its options: the same as COMMAND --help");
  command->add_option("COMMAND", *names,
                      "The command; of bench and tokenizer two words (default: a list of all). `help config` has the keys "
                      "of the config file, `help config KEY` one, or those of a section");
  command->callback([&app, names, &action] { action = [&app, names] { return print_help(app.app(), *names); }; });
}

}  // namespace onestep::cli

#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/commands/commands.h"
#include "learn/book/chapter.h"
#include "train/config/config_fields.h"

namespace onestep::cli {
namespace {

// Bash splits words at `=`: `--set model.kind=gpt` comes as four.
constexpr const char* kHelpers = R"sh(# Completion of onestep's command line for bash, as `onestep completion` prints it.
_onestep_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_onestep_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); }
_onestep_folders() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); }
_onestep_keys() { compopt -o nospace 2>/dev/null; _onestep_words "$_onestep_all_keys"; }
_onestep() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' key='' i
  COMPREPLY=()
  if [[ $cur == '=' ]]; then
    key=$prev cur=''
  elif [[ $prev == '=' ]]; then
    key=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ $key ]]; then
    _onestep_value_of "$key"
    return
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ " $_onestep_commands " == *" ${COMP_WORDS[i]} "* ]]; then
      command=${COMP_WORDS[i]}
      if ((i + 1 < COMP_CWORD)) && [[ $_onestep_second_words == *"|$command ${COMP_WORDS[i + 1]}|"* ]]; then
        command+=" ${COMP_WORDS[i + 1]}"
      fi
      break
    fi
  done
  _onestep_after_option "$command" "$prev" && return
  if [[ $cur == -* ]]; then
    _onestep_option "$command"
  else
    _onestep_argument "$command"
  fi
}
complete -F _onestep onestep ./onestep
)sh";

std::string words(const std::string& list) { return "_onestep_words '" + list + "'"; }

/// The call that completes a value of this kind: files, folders, config keys, the alternatives of `a|b`, or nothing.
std::string completer(const std::string& kind) {
  if (kind == "CONFIG" || kind == "FILE" || kind == "TEXT") return "_onestep_files";
  if (kind == "RUN" || kind == "FOLDER" || kind == "TOKENIZER") return "_onestep_folders";
  if (kind == "KEY=VALUE") return "_onestep_keys";
  if (kind == "SECTION") {
    std::vector<std::string> list;
    for (const book::Section& section : book::sections()) list.emplace_back(section.number, std::strcspn(section.number, " "));
    return words(join(list, " "));
  }
  std::string alternatives = kind;
  for (char& c : alternatives) c = c == '|' ? ' ' : c;
  return alternatives == kind ? ":" : words(alternatives);
}

/// The program as one command line sees it: its own options and arguments, or those of a command.
struct Level {
  std::string name;
  std::vector<std::string> options;
  std::string argument = ":";     ///< Completes what is no option.
  std::string after_option = {};  ///< The cases in which a value follows.
};

Level level_of(const CLI::App& app, const std::string& name) {
  Level level{name, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      if (level.argument == ":") level.argument = completer(option->get_name());  // the first one: the others come later
      continue;
    }
    const std::string option_name = "--" + option->get_lnames().front();
    level.options.push_back(option_name);
    if (option->get_items_expected_max() > 0)
      level.after_option.append("    '" + name)
          .append("':" + option_name + ") " + completer(option->get_type_name()) + " ;;\n");
  }
  return level;
}

int print_completion(const CLI::App& app) {
  std::vector<std::string> commands;
  std::vector<Level> levels;
  std::string second_words;
  for (const CLI::App* command : all_subcommands(app)) {
    const std::string name = command->get_name();
    commands.push_back(name);
    levels.push_back(level_of(*command, name));
    std::vector<std::string> seconds;
    for (const CLI::App* second : all_subcommands(*command)) {
      seconds.push_back(second->get_name());
      levels.push_back(level_of(*second, name + ' ' + second->get_name()));
      second_words += '|' + levels.back().name + '|';
    }
    const auto first = levels.end() - 1 - static_cast<std::ptrdiff_t>(seconds.size());
    if (!seconds.empty()) first->argument = words(join(seconds, " "));
  }
  for (Level& level : levels) level.options.emplace_back("--threads");
  levels.push_back(level_of(app, ""));
  levels.back().argument = words(join(commands, " "));

  std::string keys;
  for (const Field& field : config_fields()) keys += (keys.empty() ? "" : " ") + field.path + '=';
  std::cout << kHelpers << "_onestep_commands='" << join(commands, " ") << "'\n_onestep_second_words='" << second_words
            << "'\n_onestep_all_keys='" << keys << "'\n\n"
            << "_onestep_after_option() {\n  case $1:$2 in\n";
  for (const Level& level : levels) std::cout << level.after_option;
  std::cout << "    *:--threads) : ;;\n    *) return 1 ;;\n  esac\n}\n\n_onestep_option() {\n  case $1 in\n";
  for (const Level& level : levels) std::cout << "    '" << level.name << "') " << words(join(level.options, " ")) << " ;;\n";
  std::cout << "  esac\n}\n\n_onestep_argument() {\n  case $1 in\n";
  for (const Level& level : levels) std::cout << "    '" << level.name << "') " << level.argument << " ;;\n";
  std::cout << "  esac\n}\n\n_onestep_value_of() {\n  case $1 in\n";
  for (const Field& field : config_fields()) {
    const bool truth = std::holds_alternative<bool*>(default_value(field));
    if (truth || !field.choices.empty())
      std::cout << "    " << field.path << ") " << words(truth ? "true false" : join(field.choices, " ")) << " ;;\n";
  }
  std::cout << "    data.path) _onestep_files ;;\n  esac\n}\n";
  return 0;
}

}  // namespace

void add_completion(Command& app, Action& action) {
  app.add_subcommand("completion", "Print the script with which bash completes this command line")
      ->footer("Try it with: source <(onestep completion)")
      ->callback([&app, &action] { action = [&app] { return print_completion(app.app()); }; });
}

}  // namespace onestep::cli

#pragma once
// The commands of the program, one file each. A command registers its arguments on the CLI; nothing runs while parsing.
//
// To add one: write cli/commands/NAME.cpp with `add_NAME`, declare it here and list it in cli/main.cpp.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace onestep::train {}

namespace onestep::cli {

using namespace train;  // what commands are for

/// What runs once the whole command line is read; the result is the exit status (0 done, 1 a check failed or training
/// diverged, 130 interrupted). Bad input is a thrown Error, which becomes one sentence and exit status 2.
using Action = std::function<int()>;

/// The subcommands of a level in the order in which they were added, whether called or not.
inline std::vector<const CLI::App*> all_subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Their names.
inline std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : all_subcommands(app)) names.push_back(command->get_name());
  return names;
}

/// Adds `--set KEY=VALUE`, repeatable, which overrides values of the config; `example` is one.
inline void add_set_option(CLI::App& command, std::vector<std::string>& sets, const std::string& example) {
  command.add_option("--set", sets, "Override a config value: --set " + example)
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

/// Reads all of an argument as a number; CLI11's own reader takes octal, hexadecimal and empty ones, and cuts large ones off.
template <class Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Refuses an argument that is no whole number from `low` to `high` without leading zeros.
inline CLI::Validator whole_number(int64_t low, int64_t high) {
  return {[=](const std::string& text) {
            const auto value = parse_number<int64_t>(text);
            const bool good = value && std::to_string(*value) == text && low <= *value && *value <= high;
            return good
                       ? ""
                       : "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ": got " + text;
          },
          ""};
}

/// Refuses an argument that is no finite decimal number in the range, which `words` name: `of at least 0`.
inline CLI::Validator decimal_number(const std::string& words, const std::function<bool(double)>& in_range) {
  return {[=](const std::string& text) {
            const auto value = parse_number<double>(text);
            return value && std::isfinite(*value) && in_range(*value) ? "" : "must be a number " + words + ": got " + text;
          },
          ""};
}
inline CLI::Validator at_least_0() {
  return decimal_number("of at least 0", [](double value) { return value >= 0; });
}

/// Refuses an argument that is none of the words.
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : word == words.back() ? " or " : ", ") + word;
  return {[=](const std::string& text) {
            const bool good = std::find(words.begin(), words.end(), text) != words.end();
            return good ? "" : "must be " + list + ": got " + text;
          },
          ""};
}

/// Refuses an empty argument, which an unset variable of the shell gives: it must not pass for none at all.
inline CLI::Validator not_empty(const std::string& what) {
  return {[=](const std::string& text) { return text.empty() ? "must be " + what + ": got an empty one" : ""; }, ""};
}

/// Each adds its subcommand to `app`; when it is the one called, it puts its work into `action`.
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_graph(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_export_csv(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
void add_version(CLI::App& app, Action& action);
void add_gradcheck(CLI::App& app, Action& action);
void add_book(CLI::App& app, Action& action);
void add_tokenizer(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);

}  // namespace onestep::cli

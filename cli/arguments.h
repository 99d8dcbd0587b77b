#pragma once
// The arguments of commands: what they use of CLI11, which takes seconds to compile and is compiled here only.
#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace onestep::cli {

/// What is wrong with an argument; empty where nothing is.
using Check = std::function<std::string(const std::string&)>;

/// One option or argument of a command. Each function returns the option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* type_name(const std::string& name);  ///< The name of its value in help.
  Option* required();
  Option* capture_default_str();  ///< Help tells the value that the variable has now.
  Option* check(const Check& check);
  Option* excludes(const Option* other);
  bool was_given() const;  ///< Once the command line is read.

 private:
  CLI::Option* option_;
};

/// The program or one of its commands. Functions that add nothing return the command.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& description);
  /// `value` is written when the command line is read. T: std::string, an optional one, int64_t, double, bool, or a vector of
  /// strings, which is repeatable.
  template <class T>
  Option* add_option(const std::string& name, T& value, const std::string& description);
  /// An option that may be given several times, with one value each time.
  Option* add_repeatable_option(const std::string& name, std::vector<std::string>& values, const std::string& description);
  Option* add_flag(const std::string& name, bool& value, const std::string& description);
  /// `--set KEY=VALUE`, repeatable, which overrides values of the config; `example` is one.
  void add_set_option(std::vector<std::string>& sets, const std::string& example);
  /// `--checkpoint last, best or step-N`; `which` holds the default.
  void add_checkpoint_option(std::string& which);
  /// An option with a whole number from `low` to `high`; help tells the value that it has now.
  Option* add_whole_number(const std::string& name, int64_t& value, const std::string& description, int64_t low, int64_t high);
  /// `--weights float32, bf16 or int8`; `format` holds the default, and then the name of a WeightFormat.
  void add_weights_option(std::string& format);
  Command* callback(const std::function<void()>& called);
  Command* footer(const std::string& text);
  /// One of its commands has to follow.
  Command* require_subcommand();
  /// For what shows or completes a command line.
  CLI::App& app() const { return app_; }

 private:
  Option* keep(CLI::Option* option);

  CLI::App& app_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<Command>> commands_;
};

/// The subcommands of a level in the order in which they were added, whether called or not.
std::vector<const CLI::App*> all_subcommands(const CLI::App& app);
/// Their names.
std::vector<std::string> command_names(const CLI::App& app);

/// Reads all of an argument as a number; CLI11's own reader takes octal, hexadecimal and empty ones, and cuts large ones off.
template <class Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Refuses an argument that is no whole number from `low` to `high` without leading zeros.
Check whole_number(int64_t low, int64_t high);
/// Refuses an argument that is no finite decimal number in the range, which `words` name: `of at least 0`.
Check decimal_number(const std::string& words, const std::function<bool(double)>& in_range);
Check at_least_0();
/// Refuses an argument that is none of the words.
Check one_of(const std::vector<std::string>& words);
/// Refuses an empty argument, which an unset variable of the shell gives: it must not pass for none at all.
Check not_empty(const std::string& what);

}  // namespace onestep::cli

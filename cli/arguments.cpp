#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

namespace onestep::cli {

Option* Option::type_name(const std::string& name) { return option_->type_name(name), this; }
Option* Option::required() { return option_->required(), this; }
Option* Option::capture_default_str() { return option_->capture_default_str(), this; }
Option* Option::check(const Check& check) { return option_->check(CLI::Validator(check, "")), this; }
Option* Option::excludes(const Option* other) { return option_->excludes(other->option_), this; }

bool Option::was_given() const { return !option_->empty(); }

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  return commands_.emplace_back(std::make_unique<Command>(*app_.add_subcommand(name, description))).get();
}

Option* Command::keep(CLI::Option* option) { return options_.emplace_back(std::make_unique<Option>(option)).get(); }

template <class T>
Option* Command::add_option(const std::string& name, T& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, int64_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, bool&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option* Command::add_repeatable_option(const std::string& name, std::vector<std::string>& values,
                                       const std::string& description) {
  return keep(app_.add_option(name, values, description)->allow_extra_args(false));
}

Option* Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return keep(app_.add_flag(name, value, description));
}

void Command::add_set_option(std::vector<std::string>& sets, const std::string& example) {
  add_repeatable_option("--set", sets, "Override a config value: --set " + example)->type_name("KEY=VALUE");
}

void Command::add_checkpoint_option(std::string& which) {
  add_option("--checkpoint", which, "last (default), best (by validation loss) or step-N")->type_name("WHICH");
}

Option* Command::add_whole_number(const std::string& name, int64_t& value, const std::string& description, int64_t low,
                                  int64_t high) {
  return add_option(name, value, description)->type_name("N")->capture_default_str()->check(whole_number(low, high));
}

void Command::add_weights_option(std::string& format) {
  add_option("--weights", format,
             "How weights are kept: in a half (bf16) or a quarter (int8) of the bytes generation is faster, and the perplexity "
             "of eval tells what that costs (default: float32)")
      ->type_name("float32|bf16|int8")
      ->check(one_of({"float32", "bf16", "int8"}));
}

Command* Command::callback(const std::function<void()>& called) { return app_.callback(called), this; }
Command* Command::footer(const std::string& text) { return app_.footer(text), this; }
Command* Command::require_subcommand() { return app_.require_subcommand(1), this; }

std::vector<const CLI::App*> all_subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : all_subcommands(app)) names.push_back(command->get_name());
  return names;
}

Check whole_number(int64_t low, int64_t high) {
  return [=](const std::string& text) {
    const auto value = parse_number<int64_t>(text);
    const bool good = value && std::to_string(*value) == text && low <= *value && *value <= high;
    return good ? std::string()
                : "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ": got " + text;
  };
}

Check decimal_number(const std::string& words, const std::function<bool(double)>& in_range) {
  return [=](const std::string& text) {
    const auto value = parse_number<double>(text);
    const bool good = value && std::isfinite(*value) && in_range(*value);
    return good ? std::string() : "must be a number " + words + ": got " + text;
  };
}

Check at_least_0() {
  return decimal_number("of at least 0", [](double value) { return value >= 0; });
}

Check one_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : word == words.back() ? " or " : ", ") + word;
  return [=](const std::string& text) {
    const bool good = std::find(words.begin(), words.end(), text) != words.end();
    return good ? std::string() : "must be " + list + ": got " + text;
  };
}

Check not_empty(const std::string& what) {
  return [=](const std::string& text) { return text.empty() ? "must be " + what + ": got an empty one" : std::string(); };
}

}  // namespace onestep::cli

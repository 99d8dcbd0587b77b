#pragma once
// What `--help` looks like, for the program and all its commands.
#include <CLI/CLI.hpp>
#include <string>

namespace onestep::cli {

/// CLI11's layout in our words: `--set KEY=VALUE`, `(required)`, `(repeatable)`, `(default: 4)`.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace onestep::cli

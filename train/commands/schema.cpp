#include <iostream>

#include "train/commands/commands.h"
#include "train/config.h"

namespace onestep::train::commands {

void add_schema(CLI::App& app, Action& action) {
  app.add_subcommand("schema", "Print the JSON Schema of the config file")->callback([&action] {
    action = [] {
      std::cout << schema_json();
      return 0;
    };
  });
}

}  // namespace onestep::train::commands

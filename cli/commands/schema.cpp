#include <iostream>
#include <memory>

#include "cli/commands/commands.h"
#include "train/config/config.h"

namespace onestep::cli {

void add_schema(Command& app, Action& action) {
  const auto markdown = std::make_shared<bool>(false);
  auto* command = app.add_subcommand("schema", "Print the JSON Schema of the config file");
  command->add_flag("--markdown", *markdown, "Print the keys as a page instead (docs/config.md)");
  command->callback([&action, markdown] {
    action = [markdown] {
      std::cout << (*markdown ? config_markdown() : schema_json());
      return 0;
    };
  });
}

}  // namespace onestep::cli

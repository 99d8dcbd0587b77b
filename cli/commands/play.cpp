#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/page_process.h"
#include "train/run_folder.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string runs = "runs", page;
  int64_t port = 0;
};

int play(const Options& options) {
  const std::filesystem::path runs = run_path(options.runs);
  ONESTEP_CHECK(ConfigError, runs == "runs" || std::filesystem::is_directory(runs), runs.string(), ": is not a folder of runs");
  PageProcess page(runs, find_page(options.page), options.port);
  std::cout << page.address() << std::endl;
  std::cerr << "the page is served until Ctrl-C\n";
  open_browser(page.address());
  return page.wait();
}

}  // namespace

void add_play(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("play", "The web page, with your runs in it, at an address of this machine alone");
  command->add_option("RUNS", options->runs, "A folder of runs, or a run")->capture_default_str();
  command->add_option("--port", options->port, "The port (0: any that is free)")
      ->capture_default_str()
      ->check(whole_number(0, 65535));
  command->add_option("--page", options->page, "The page's folder (default: installed, or built by ./onestep web)")
      ->type_name("FOLDER");
  command->callback([options, &action] { action = [options] { return play(*options); }; });
}

}  // namespace onestep::cli

// Configs on the command line: which are refused, and what is printed about their keys.
#include "train/config/config.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process.h"
#include "tests/support.h"
#include "train/config/config_fields.h"

using onestep::testing::contains;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;

TEST_CASE("cli: schema prints what configs/schema.json and docs/config.md hold") {
  const ProcessResult schema = run_onestep({"schema"}), page = run_onestep({"schema", "--markdown"});
  CHECK(schema.status == 0);
  CHECK(schema.out == onestep::train::schema_json());
  CHECK(page.status == 0);
  CHECK(page.out == onestep::train::config_markdown());
}

TEST_CASE("cli: help config explains every key or one or a section") {
  const auto help = [](std::vector<std::string> names) {
    names.insert(names.begin(), {"help", "config"});
    return run_onestep(names);
  };
  CHECK(help({}).status == 0);
  CHECK(help({}).out == onestep::train::config_help());
  const std::string one = help({"optimizer.lr"}).out, section = help({"schedule"}).out, seed = help({"seed"}).out;
  CHECK(
      one.find(
          "\noptimizer.lr: a number of at least 0; default: 0.001; for rmsprop 0.01; for adagrad 0.01\n    learning rate\n") !=
      std::string::npos);
  CHECK(std::count(one.begin(), one.end(), '\n') == 4);
  CHECK(section.find("\nschedule.kind: ") != std::string::npos);
  CHECK(section.find("\noptimizer.") == std::string::npos);
  CHECK(seed.find("\nseed: ") != std::string::npos);
  CHECK(help({"optimizr"}).err == "onestep: help: the config has no section or key optimizr (did you mean optimizer?)\n");
  CHECK(contains(help({"xyz"}).err, " xyz (sections: model, "));
  CHECK(help({"xyz"}).status == 2);
  CHECK(help({"a", "b"}).status == 2);
}

TEST_CASE("cli: train --help fits on two screens and names every key") {
  const ProcessResult help = run_onestep({"train", "--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("Every command also takes --threads N.\n") != std::string::npos);
  CHECK(help.out.find(onestep::train::config_keys()) != std::string::npos);
  std::istringstream lines(help.out);
  size_t rows = 0;
  for (std::string line; std::getline(lines, line);) rows += std::max<size_t>(1, (line.size() + 79) / 80);
  CHECK(rows <= 96);
  std::istringstream words(onestep::train::config_keys());
  std::multiset<std::string> named{std::istream_iterator<std::string>(words), {}};
  for (const onestep::train::Field& field : onestep::train::config_fields())
    CHECK_MESSAGE(named.contains(field.key()), field.path);
}

TEST_CASE("cli: a config that cannot be used ends in one sentence and status 2") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("onestep_cli_config_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  };
  const std::string good = file("good.json", R"({"data": {"kind": "task", "task": "copy"}})");
  const std::string bad = file("bad.json", R"({"data": {"kind": "task", "task": "copy"}, "model": {"num_head": 4}})");
  const std::string text = file("text.json", R"({"data": {"kind": "text", "path": "no/such/text"}})");
  const std::string empty = file("empty.json", ""), pipe = folder / "pipe", none = folder / "none.json";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  struct Refused {
    std::vector<std::string> arguments;
    std::string place;
  };
  const std::vector<Refused> cases = {
      {{bad}, bad + ": /model/num_head: "},
      {{empty}, empty + ": "},
      {{pipe}, pipe + ": "},
      {{none}, none + ": "},
      {{folder}, folder.string() + ": "},
      {{text}, "no/such/text: "},
      {{good, "--set", "train.steps=many"}, "--set train.steps=many: /train/steps: "},
      {{good, "--set", "optimizer.lr=1e999"}, "--set optimizer.lr=1e999: /optimizer/lr: "},
  };
  for (const Refused& refused : cases) {
    CAPTURE(refused.place);
    std::vector<std::string> arguments{"train", "--out", (folder / "run").string()};
    arguments.insert(arguments.end(), refused.arguments.begin(), refused.arguments.end());
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err.starts_with("onestep: " + refused.place));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
  CHECK(!std::filesystem::exists(folder / "run"));  // nothing is written for a run that cannot start
  std::filesystem::remove_all(folder);
}

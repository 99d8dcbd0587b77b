// Configs from outside: what is refused, and what is printed about their keys.
#include "train/config/config.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/process.h"

using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;

TEST_CASE("cli: schema prints what configs/schema.json and docs/config.md hold") {
  const ProcessResult schema = run_onestep({"schema"}), page = run_onestep({"schema", "--markdown"});
  CHECK(schema.status == 0);
  CHECK(schema.out == onestep::train::schema_json());
  CHECK(page.status == 0);
  CHECK(page.out == onestep::train::config_markdown());
}

TEST_CASE("cli: train --help explains every key") {
  const ProcessResult help = run_onestep({"train", "--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("Every command also takes --threads N.\n") != std::string::npos);
  CHECK(help.out.find(onestep::train::config_help()) != std::string::npos);
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
    std::string message;
  };
  const std::vector<Refused> cases = {
      {{bad}, bad + ": /model/num_head: unknown key (did you mean num_heads?)"},
      {{empty}, empty + ": is empty"},
      {{pipe}, pipe + ": is not a regular file (a pipe, socket or device)"},
      {{none}, none + ": cannot be opened: no such file"},
      {{folder}, folder.string() + ": is a directory, not a file"},
      {{text}, "no/such/text: cannot be opened: no such file"},
      {{good, "--set", "train.steps=many"},
       "--set train.steps=many: /train/steps: must be a whole number from 1 to 1000000000000: got \"many\""},
      {{good, "--set", "optimizer.lr=1e999"},
       "--set optimizer.lr=1e999: /optimizer/lr: must be a number of at least 0: got \"1e999\""},
  };
  for (const Refused& refused : cases) {
    CAPTURE(refused.message);
    std::vector<std::string> arguments{"train", "--out", (folder / "run").string()};
    arguments.insert(arguments.end(), refused.arguments.begin(), refused.arguments.end());
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err == "onestep: " + refused.message + "\n");
  }
  CHECK(!std::filesystem::exists(folder / "run"));  // nothing is written for a run that cannot start
  std::filesystem::remove_all(folder);
}

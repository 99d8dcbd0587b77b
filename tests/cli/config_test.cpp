// Configs on the command line: which are refused, and what is printed about their keys.
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

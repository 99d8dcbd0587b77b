// The bash completion and the manual page: what they say is what the command line is.
#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/config/config_fields.h"

namespace onestep::testing {
namespace {

using Words = std::set<std::string>;

/// What bash offers after `line`; the last word is the one being typed. Bash takes `=` for a word of its own.
Words offered(std::vector<std::string> line) {
  const std::string script =
      "source <(" ONESTEP_BINARY_DIR
      "/onestep completion); COMP_WORDS=(onestep \"$@\"); COMP_CWORD=$#; _onestep; printf '%s\\n' \"${COMPREPLY[@]}\"";
  line.insert(line.begin(), {"bash", "-c", script, "bash"});
  const ProcessResult result = run_process(line, {.directory = ONESTEP_SOURCE_DIR});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  std::istringstream lines(result.out);
  Words words;
  for (std::string word; std::getline(lines, word);)
    if (!word.empty()) words.insert(word);
  return words;
}

Words commands() {
  const std::string help = run_onestep({"--help"}).out;
  return matches(help.substr(help.find("\nCommands:")), "^  ([a-z-]+) ");
}

/// The long options of `onestep COMMAND --help`.
Words options(const std::string& command) { return matches(run_onestep({command, "--help"}).out, "^  (?:-h,)?(--[a-z-]+)"); }

/// As roff wants them.
std::string with_escaped_hyphens(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '-' ? std::string("\\-") : std::string(1, c);
  return out;
}

TEST_CASE("completion: bash offers the commands and the options that help lists") {
  CHECK(commands().size() >= 9);
  CHECK(offered({""}) == commands());
  CHECK(offered({"tra"}) == Words{"train"});
  CHECK(offered({"--v"}) == Words{"--version"});
  for (const std::string& command : commands()) {
    CAPTURE(command);
    Words wanted = options(command);
    CHECK(wanted.contains("--help"));
    wanted.insert("--threads");
    CHECK(offered({command, "--"}) == wanted);
    CHECK(offered({"--threads", "2", command, "--"}) == wanted);
  }
}

TEST_CASE("completion: bash offers config keys and their values") {
  Words keys;
  for (const train::Field& field : train::config_fields()) keys.insert(field.path + '=');
  CHECK(offered({"train", "configs/text.json", "--set", ""}) == keys);
  CHECK(offered({"train", "x.json", "--set", "model.attention", "=", "mu"}) == Words{"multi_head", "multi_head_wrapper"});
  CHECK(offered({"train", "x.json", "--set", "data.task", "="}) == Words{"copy", "modular_addition", "reverse", "sort"});
  CHECK(offered({"inspect", "x.json", "--set", "optimizer.nesterov", "=", ""}) == Words{"false", "true"});
  CHECK(offered({"train", "x.json", "--set", "data.path", "=", "configs/sent"}) == Words{"configs/sentence.json"});
  CHECK(offered({"train", "x.json", "--set", "model.d_model", "=", ""}) == Words{});
}

TEST_CASE("completion: bash offers files or folders or sections where they belong") {
  CHECK(offered({"train", "configs/sent"}) == Words{"configs/sentence.json"});
  CHECK(offered({"inspect", "READ"}) == Words{"README.md"});
  CHECK(offered({"eval", "READ"}) == Words{});
  CHECK(offered({"eval", "attent"}) == Words{"attention"});
  CHECK(offered({"train", "x.json", "--out", "attent"}) == Words{"attention"});
  CHECK(offered({"book", "3.3"}) == Words{"3.3.1", "3.3.2"});
  CHECK(offered({"book", "--dialect", "torch-"}) == Words{"torch-mkl"});
  CHECK(offered({"version", "--threads", ""}) == Words{});
  CHECK(offered({"version", ""}) == Words{});
}

TEST_CASE("completion: bash offers the second words of a command and what belongs to them") {
  CHECK(offered({"tokenizer", ""}) == Words{"train", "encode", "decode"});
  CHECK(offered({"tokenizer", "train", "READ"}) == Words{"README.md"});
  CHECK(offered({"tokenizer", "train", "--"}) == Words{"--help", "--vocab-size", "--out", "--quiet", "--threads"});
  CHECK(offered({"tokenizer", "train", "x", "--out", "attent"}) == Words{"attention"});
  CHECK(offered({"tokenizer", "encode", "attent"}) == Words{"attention"});
  CHECK(offered({"tokenizer", "encode", "x", "--format", "j"}) == Words{"json"});
}

TEST_CASE("man: the page has every command and option and is good roff") {
  const ProcessResult page = run_onestep({"man"});
  CHECK(page.status == 0);
  CHECK(page.err == "");
  const auto contains = [&](const std::string& part) { return page.out.find(part) != std::string::npos; };
  CHECK(page.out.starts_with(".TH ONESTEP 1 "));
  for (const std::string& command : commands()) {
    CHECK_MESSAGE(contains(".SS onestep " + with_escaped_hyphens(command) + '\n'), command);
    for (const std::string& option : options(command))
      CHECK_MESSAGE(contains("\\fB" + with_escaped_hyphens(option) + "\\fR"), option);
  }
  CHECK(contains(".SS onestep tokenizer encode\n"));
  CHECK(contains("\\fB\\-\\-vocab\\-size\\fR"));
  for (const char* section :
       {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"})
    CHECK_MESSAGE(contains(std::string(".SH ") + section + '\n'), section);

  if (run_process({"man", "--version"}).status != 0) return;
  const TemporaryFolder folder;
  const std::string file = folder.path() / "onestep.1";
  std::ofstream(file) << page.out;
  const ProcessResult shown = run_process({"man", "--warnings", "-l", file}, {.environment = {{"MANWIDTH", "100"}}});
  CHECK(shown.status == 0);
  CHECK(shown.err == "");
  CHECK(shown.out.find("--set KEY=VALUE") != std::string::npos);
}

}  // namespace
}  // namespace onestep::testing

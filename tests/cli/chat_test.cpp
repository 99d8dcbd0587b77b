// `onestep chat` from outside: in a pipe, with a signal, and on a terminal.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/cli/stopped_run.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

using onestep::testing::kProgram;
using onestep::testing::Process;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;

namespace {

/// A run that has learnt two answers by heart.
std::string trained(const TemporaryFolder& folder, const std::string& steps = "150") {
  const std::string config = folder.path() / "config.json", run = folder.path() / "run";
  std::string text;
  for (const char* turn :
       {"hi|hello there", "bye|see you", "hi|hello there", "hi|hello there", "bye|see you", "bye|see you", "hi|hello there"}) {
    const std::string both = turn;
    const size_t bar = both.find('|');
    text += "User: " + both.substr(0, bar) + "\\nAssistant: " + both.substr(bar + 1) + "\\n";
  }
  onestep::testing::write(config, R"({"seed": 1, "model": {"kind": "gpt", "d_model": 48, "num_heads": 2, "num_layers": 2,
    "context_length": 64}, "data": {"kind": "text", "val_fraction": 0, "text": ")" +
                                      text +
                                      R"("}, "optimizer": {"lr": 0.005}, "train": {"batch_size": 8, "eval_batches": 1}})");
  REQUIRE(run_onestep({"train", config, "--out", run, "--quiet", "--set", "train.steps=" + steps}).status == 0);
  return run;
}

/// `onestep chat` with these lines on its standard input.
ProcessResult chat(const std::string& run, const std::string& lines, std::vector<std::string> options = {}) {
  options.insert(options.begin(),
                 {"sh", "-c", "lines=$1 program=$2; shift 2; printf '%b' \"$lines\" | \"$program\" chat \"$@\"", "sh", lines,
                  kProgram, run});
  return run_process(options);
}

}  // namespace

TEST_CASE("cli: chat answers each line of a pipe") {
  const TemporaryFolder folder;
  const std::string run = trained(folder);
  const ProcessResult result = chat(run, "hi\\nbye\\n\\nhi\\nhi", {"--temperature", "0", "--quiet"});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out == "hello there\nsee you\nhello there\nhello there\n");
  CHECK(chat(run, "hi\\nbye\\nbye\\nbye\\n", {"--temperature", "0"}).err ==
        "the context of 64 tokens is full: from now on the oldest messages are forgotten\n");
  CHECK(chat(run, "hi\\n", {"--temperature", "0", "--stop", "there"}).out == "hello \n");
  CHECK(chat(run, "hi\\n", {"--temperature", "0", "--tokens", "4"}).out == "hel\n");
  CHECK(chat(run, "hi", {"--temperature", "0", "--template", "User: {user}\\nAssistant:{answer}\\n"}).out == "hello there\n");
  CHECK(chat(run, "").out == "");

  const auto refused = [&](const std::string& lines, const std::vector<std::string>& options) {
    const ProcessResult wrong = chat(run, lines, options);
    CHECK(wrong.status == 2);
    return wrong.err;
  };
  CHECK(refused("hi\\nzzz\\nhi\\n", {"--quiet"}).starts_with("onestep: the message \"zzz\": encode: offset "));
  CHECK(refused("hi\\n", {"--template", "chatml"}).starts_with("onestep: --template or --system: encode: offset 0: "));
  CHECK(refused("hi\\n", {"--system", "zzz"}).starts_with("onestep: --template or --system: "));
  CHECK(refused("hi\\n", {"--template", "x"}).starts_with("onestep: --template: chat template: must be plain, "));
  CHECK(refused("hi\\n", {"--stop", ""}).starts_with("onestep: --stop: "));
  CHECK(refused("hi\\n", {"--stop-ids", "x"}).starts_with("onestep: --stop-ids: "));
}

TEST_CASE("cli: a signal stops an answer of chat and not the conversation") {
  const TemporaryFolder folder;
  const std::string run = trained(folder), pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  // Without a stop the model continues for ever.
  const Process chatting(
      {"sh", "-c", "exec \"$0\" chat \"$1\" --template none --tokens 100000000 --temperature 0 <\"$2\"", kProgram, run, pipe});
  std::ofstream lines(pipe);
  lines << "User: hi" << std::endl;
  CHECK(chatting.said("hello there").find("Assistant: hello there") != std::string::npos);
  ::kill(chatting.pid(), SIGINT);
  lines << "zzz" << std::endl;  // the next message, which is refused
  const ProcessResult result = chatting.wait();
  CHECK(result.status == 2);
  CHECK(result.err.starts_with("onestep: the message \"zzz\": "));
}

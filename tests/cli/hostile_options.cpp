// Options and keys with values that they cannot have.
#include <algorithm>

#include "tests/cli/hostile_lines.h"

namespace onestep::testing {
namespace {

/// An argument as a sentence quotes it: escaped, and no more of it than the first 60 characters.
std::string shown(const std::string& argument) {
  const size_t byte = argument.find('\xff');
  if (byte != std::string::npos) return argument.substr(0, byte) + "\\xff" + argument.substr(byte + 1);
  return argument.size() > 60 ? argument.substr(0, 60) + "..." : argument;
}

}  // namespace

CommandLines option_values(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), config = place.path("config.json");
  const auto generate = [&](Strings more, const std::string& named) {
    more.insert(more.begin(), {"generate", run});
    lines.push_back({more, named});
  };
  for (const char* count : {"0", "-1", "x", "1.5", "", "99999999999999999999", "1e3", "nan"}) {
    generate({"--prompt", "dog", "--tokens", count}, "--tokens: ");
    generate({"--prompt", "dog", "--tokens", "1", "--samples", count}, "--samples: ");
  }
  for (const char* value : {"nan", "-1", "1e999", "-inf", "inf", "", "x", "1x", "1,5", "0x1"}) {
    generate({"--prompt", "dog", "--tokens", "1", "--temperature", value}, "--temperature: ");
    generate({"--prompt", "dog", "--tokens", "1", "--top-p", value}, "--top-p: ");
  }
  for (const char* value : {"0", "1.5"}) generate({"--prompt", "dog", "--tokens", "1", "--top-p", value}, "--top-p: ");
  for (const char* value : {"x", "1x", "1,5", "1.5", "", "010", "0x200", "9223372036854775808", "1e3"}) {
    generate({"--prompt", "dog", "--tokens", "1", "--top-k", value}, "--top-k: ");
    generate({"--prompt", "dog", "--tokens", "1", "--seed", value}, "--seed: ");
  }
  generate({"--prompt", "dog", "--tokens", "1", "--top-k", "-1"}, "--top-k: ");
  for (const char* ids : {",", "1,", ",1", "1,,2", "1 2", "x", "1.5", "99999999999999999999", "0x1", ""})
    generate({"--prompt-ids", ids, "--tokens", "1"}, "--prompt-ids: ");
  for (const char* id : {"27", "-1", "9223372036854775807", "-9223372036854775808"})
    generate({"--prompt-ids", id, "--tokens", "1"}, "--prompt-ids: ");
  generate({"--tokens", "1"}, "generate: ");
  generate({"--prompt", "dog", "--prompt-ids", "1", "--tokens", "1"}, "--prompt excludes --prompt-ids");
  generate({"--prompt", "", "--tokens", "1"}, "--prompt: ");
  for (const char* value : {"nan", "-1", "1.5", "", "x"})
    generate({"--prompt", "dog", "--tokens", "1", "--min-p", value}, "--min-p: ");
  generate({"--prompt", "--json"}, "--prompt: needs a value before --json");
  generate({"--prompt", "--threads"}, "--prompt: needs a value before --threads");
  generate({"--prompt=", "--json"}, "--prompt: needs a value");
  for (const char* value : {"nan", "-1", "0", "1e-39", "", "inf", "x"})
    generate({"--prompt", "dog", "--tokens", "1", "--repetition-penalty", value}, "--repetition-penalty: ");
  for (const char* count : {"0", "-1", "x", ""}) generate({"--prompt", "dog", "--batch", count}, "--batch: ");
  for (const char* count : {"-1", "x", ""}) generate({"--prompt", "dog", "--json", "--logprobs", count}, "--logprobs: ");
  generate({"--prompt", "dog", "--stop", ""}, "--stop: ");
  for (const char* ids : {"x", "1,", ",1", "", "27", "-1", "1,27"})
    generate({"--prompt", "dog", "--stop-ids", ids}, "--stop-ids: ");
  lines.push_back({{"chat", run, "--stop-ids", "27"}, "--stop-ids: "});
  lines.push_back({{"chat", run, "--template", "no_such_one"}, "--template: "});
  generate({"--prompts", "-"}, "standard input: has no prompt");  // it is empty
  generate({"--prompt", "dog", "--json", "--format", "json"}, "--format excludes --json");
  generate({"--prompt", "dog", "--prompts", run}, "--prompt excludes --prompts");
  generate({"--prompts", run}, run + ": ");
  generate({"--prompts", run + "/no_such_file"}, run + "/no_such_file: ");
  generate({"--prompt", "dog", "--tokens", "1", "--format", "xml"}, "--format: ");
  generate({"--prompt", "DOG", "--tokens", "1"}, "--prompt: encode: offset 0: char \"D\"");
  generate({"--prompt", "\xff", "--tokens", "1"}, "--prompt: encode: offset 0: ");
  for (const char* which :
       {"x", "", "Last", "step-", "step--1", "step-01", "step-1e3", "step-99999999999999999999", "../..", "best/"})
    generate({"--prompt", "dog", "--tokens", "1", "--checkpoint", which}, "--checkpoint: ");
  generate({"--prompt", "dog", "--tokens", "1", "--checkpoint", "step-7"}, run + "/checkpoints/step-7: ");
  return lines;
}

CommandLines too_little_or_too_much(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), config = place.path("config.json"), out = place.path("out");
  for (const auto& [command, needed] : std::vector<std::pair<std::string, std::string>>{{"eval", "RUN"},
                                                                                        {"generate", "RUN"},
                                                                                        {"chat", "RUN"},
                                                                                        {"compare", "RUN"},
                                                                                        {"sweep", "CONFIG"},
                                                                                        {"export", "RUN"},
                                                                                        {"report", "RUN"},
                                                                                        {"export-csv", "RUN"},
                                                                                        {"import", "DIR"},
                                                                                        {"inspect", "FILE"},
                                                                                        {"graph", "CONFIG"}})
    lines.push_back({{command}, needed + " "});
  for (const char* command : {"version", "schema", "man", "completion", "gradcheck"})
    lines.push_back({{command, "x"}, "unexpected argument x"});
  for (const char* command :
       {"version", "schema", "train", "eval", "generate", "chat", "compare", "sweep", "book", "inspect", "report"})
    lines.push_back({{command, "--no-such-thing"}, "unknown option --no-such-thing"});
  for (const auto& [command, named] : std::vector<std::pair<Strings, std::string>>{
           {{"tokenizer"}, "tokenizer: "},
           {{"tokenizer", "train"}, "TEXT "},
           {{"tokenizer", "train", config}, "--vocab-size "},
           {{"tokenizer", "train", config, "--vocab-size", "300"}, "--out "},
           {{"tokenizer", "encode", run, config, "--format", "xml"}, "--format: "},
           {{"train"}, "train: "},
           {{"train", config, config}, "unexpected argument " + config + ""},
           {{"train", "--", config, "--out", out}, "unexpected argument --out after -- ("},
           {{"--", "train", config}, "unexpected argument -- ("},
           {{"train", config, "--resume", run}, "CONFIG excludes --resume"},
           {{"train", "--resume", run, "--out", out}, "--out excludes --resume"},
           {{"train", config, "--set"}, "--set: "},
           {{"train", ""}, "the name of the file "},
           {{"import", run, "--out="}, "--out: "},
           {{"eval", ""}, "the name of the run folder "},
           {{"tokenizer", "encode", run, ""}, "the name of the file "},
           {{"export", run}, "DIR "},
           {{"export", run, ""}, "DIR: "},
           {{"import", ""}, "DIR: "},
           {{"export-csv", ""}, "the name of the run folder "},
           {{"export", run, out}, run + "/config.json: /model/kind: "},
           {{"book", "no_such_section"}, "book: there is no section "},
           {{"book", "--dialect", "x"}, "--dialect: "},
           {{"book", "--dialect", ""}, "--dialect: "},
           {{"gradcheck", "--op", "no_such_op"}, "gradcheck: no differentiable op or module "}})
    lines.push_back({command, named});
  for (const char* vocab : {"256", "0", "-1", "16777217", "99999999999", "0x200", "0300", "x", ""})
    lines.push_back({{"tokenizer", "train", config, "--quiet", "--vocab-size", vocab, "--out", out}, "--vocab-size: "});
  for (const auto& [work, option] : std::vector<std::pair<std::string, std::string>>{
           {"step", "--heads"}, {"generate", "--heads"}, {"attention", "--H"}, {"conv", "--kernel"}})
    lines.push_back({{"bench", work, option, "1000"}, option + ": must "});
  for (const char* budget : {"nan", "-1", "0", "", "0x1"})
    lines.push_back({{"bench", "small", "--budget", budget}, "--budget: "});
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--bias", "2"}, {"--vocab", "20000000"}, {"--ctx", "2000000"}})
    lines.push_back({{"bench", "step", option, value}, option + ": "});
  for (const Strings& command : std::vector<Strings>{{"train", config, "--out", ""},
                                                     {"train", "--resume", ""},
                                                     {"import", run, "--out", ""},
                                                     {"sweep", config, "--grid", "seed=1", "--out", ""},
                                                     {"eval", run, "--data", ""},
                                                     {"report", run, "--out", ""},
                                                     {"book", "--svg", ""},
                                                     {"gradcheck", "--op", ""},
                                                     {"tokenizer", "train", config, "--vocab-size", "300", "--out", ""}})
    lines.push_back({command, command[command.size() - 2] + ": "});
  lines.push_back({{"book", ""}, "SECTION: "});
  lines.push_back({{"book", "--check", "--list"}, "--list excludes --check"});
  lines.push_back({{"book", "--list", "--dialect", "torch"}, "--list excludes --dialect"});
  lines.push_back({{"book", "3.5", "--svg", out}, "SECTION excludes --svg"});
  lines.push_back({{"book", "--check", "--svg", out}, "--check excludes --svg"});
  lines.push_back({{"book", "--list", "--svg", out}, "--list excludes --svg"});
  lines.push_back({{"inspect", place.path("run/checkpoints/step-1/model.safetensors"), "--set", "seed=1"}, "inspect: --set "});
  for (const char* threads : {"0", "-1", "1025", "1e9", "", "x", "1.5", "010", "99999999999999999999"})
    lines.push_back({{"train", config, "--threads", threads}, "--threads: "});
  return lines;
}

CommandLines values_of_keys(const Place& place) {
  const Strings sets = {"model.d_model=0",
                        "model.d_model=-1",
                        "model.d_model=1.5",
                        "model.d_model=nan",
                        "model.d_model=1e999",
                        "model.num_heads=0",
                        "model.num_heads=3",
                        "model.context_length=0",
                        "model.context_length=1e18",
                        "model.dropout=1.1",
                        "model.dropout=nan",
                        "model.kind=x",
                        "train.steps=-1",
                        "train.steps=1e999",
                        "train.batch_size=0",
                        "train.batch_size=1e30",
                        "train.grad_accumulation=0",
                        "train.grad_clip=-1",
                        "train.grad_clip=nan",
                        "optimizer.lr=-1",
                        "optimizer.lr=inf",
                        "optimizer.lr=1e999",
                        "optimizer.eps=-1",
                        "optimizer.kind=x",
                        "optimizer.betas=[1,1]",
                        "schedule.kind=x",
                        "schedule.warmup_steps=-1",
                        "data.kind=x",
                        "data.tokenizer=x",
                        "data.val_fraction=1",
                        "seed=x",
                        "seed=1e99",
                        "seed=1.5",
                        "nothing=1",
                        "model=1",
                        "seed=" + std::string(100'000, '[')};
  CommandLines lines;
  for (const char* command : {"train", "inspect", "graph"}) {
    const auto refused = [&](const std::string& set, const std::string& pointer) {
      lines.push_back({{command, place.path("config.json"), "--set", set}, "--set " + shown(set) + ": " + pointer});
    };
    for (const std::string& set : sets) {
      std::string pointer = '/' + set.substr(0, set.find('='));
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      refused(set, pointer);
    }
    for (const char* set : {"=1", "a..b=1", "seed", "seed=\xff", "\xff=1"}) refused(set, "");
  }
  return lines;
}

}  // namespace onestep::testing

#include "tests/cli/hostile_lines.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

namespace onestep::testing {
namespace {

namespace fs = std::filesystem;

/// `command` with each name that is no file in the place of "{}".
void add_no_file(const Place& place, const Strings& command, CommandLines& lines) {
  const auto refused = [&](const std::string& file, const std::string& named) {
    Strings arguments = command;
    std::replace(arguments.begin(), arguments.end(), std::string("{}"), file);
    lines.push_back({arguments, named});
  };
  for (const std::string& name : {std::string("none"), std::string("dangling"), std::string("directory"), std::string("fifo"),
                                  std::string("loop"), std::string("text.txt/x"), std::string("locked"), kLong})
    refused(place.path(name), place.path(name) + ": ");
  refused("/dev/zero", "/dev/zero: ");
  refused(place.path("a\x1b[2J\nb"), place.path("a\\u001b[2J\\nb") + ": ");  // nothing reaches the terminal
}

}  // namespace

Place::Place() {
  write("config.json", R"({"model": {"d_model": 4, "num_heads": 2, "context_length": 5}, "train": {"steps": 1},
                           "data": {"kind": "text", "text": "the quick brown fox jumps over the lazy dog and then goes home"}})");
  write("text.txt", "the dog");
  REQUIRE(run({"train", path("config.json"), "--quiet", "--out", path("run")}).status == 0);
  fs::create_directory(path("directory"));
  REQUIRE(::mkfifo(path("fifo").c_str(), 0600) == 0);
  write("empty", "");
  write("one", "d");
  write("locked", "{}");
  fs::permissions(path("locked"), fs::perms::none);
  fs::create_symlink("loop", path("loop"));
  fs::create_symlink("nowhere", path("dangling"));
  write("deep", std::string(100'000, '['));
  write("bytes", "\xff\xfe\x01\x80");
  write("large", "");
  fs::resize_file(path("large"), 100'000'000);  // all holes
}

void Place::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
}

ProcessResult Place::run(Strings arguments) {
  arguments.insert(arguments.begin(), {"timeout", "20", ONESTEP_BINARY_DIR "/onestep"});
  if (::geteuid() == 0)  // who could read what nobody may
    arguments.insert(arguments.begin(), {"setpriv", "--bounding-set=-dac_override,-dac_read_search"});
  return run_process(arguments);
}

CommandLines files_that_are_none(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), out = place.path("out");
  for (const Strings& command :
       std::vector<Strings>{{"train", "{}", "--out", out},
                            {"inspect", "{}"},
                            {"graph", "{}"},
                            {"eval", run, "--data", "{}"},
                            {"tokenizer", "encode", run, "{}"},
                            {"tokenizer", "decode", run, "{}"},
                            {"tokenizer", "train", "{}", "--vocab-size", "300", "--out", out, "--quiet"}})
    add_no_file(place, command, lines);
  return lines;
}

CommandLines configs_that_are_none(const Place& place) {
  CommandLines lines;
  const std::string out = place.path("out");
  for (const Strings& command : std::vector<Strings>{{"train", "{}", "--out", out}, {"inspect", "{}"}, {"graph", "{}"}}) {
    for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{
             {"empty", ": "}, {"deep", ": "}, {"bytes", ":1:1: "}, {"large", ": "}, {"text.txt", ":1:2: "}}) {
      Strings arguments = command;
      std::replace(arguments.begin(), arguments.end(), std::string("{}"), place.path(name));
      lines.push_back({arguments, place.path(name) + reason});
    }
  }
  return lines;
}

CommandLines runs_that_are_none(const Place& place) {
  CommandLines lines;
  const std::string out = place.path("out");
  for (const Strings& command : std::vector<Strings>{{"eval", "{}"},
                                                     {"generate", "{}", "--prompt", "a", "--tokens", "1"},
                                                     {"export", "{}", out},
                                                     {"report", "{}"},
                                                     {"train", "--resume", "{}"}}) {
    const auto refused = [&](const std::string& name, const std::string& reason) {
      Strings arguments = command;
      std::replace(arguments.begin(), arguments.end(), std::string("{}"), place.path(name));
      lines.push_back({arguments, place.path(name) + reason});
    };
    for (const char* name : {"directory", "none", "dangling", "fifo", "text.txt", "empty", "large"}) refused(name, ": ");
    refused(kLong, "/config.json: ");
  }
  return lines;
}

CommandLines other_arguments(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), config = place.path("config.json"), fifo = place.path("fifo"),
                    out = place.path("out");
  for (const char* name : {"none", "fifo", "text.txt", "empty"})
    lines.push_back({{"import", place.path(name), "--out", out}, place.path(name) + ": "});
  lines.push_back({{"import", place.path("directory"), "--out", out}, place.path("directory/config.json") + ": "});
  for (const char* name : {"none", "fifo", "text.txt", "directory"})
    lines.push_back({{"tokenizer", "encode", place.path(name), place.path("text.txt")}, place.path(name) + ": "});
  for (const char* name : {"none", "directory"}) lines.push_back({{"export-csv", place.path(name)}, place.path(name) + ": "});
  for (const char* name : {"fifo", "text.txt", "bytes", "large"})
    lines.push_back({{"train", config, "--quiet", "--out", place.path(name)}, place.path(name) + ": "});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", R"(train.init_from="run\u0000x")"}, R"("run\u0000x": )"});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", R"(data.paths=["/*\u0000x"])"},
       R"("/*\u0000x": )"});
  const std::string dangling = place.path("dangling");
  for (const Strings& command :
       std::vector<Strings>{{"train", config, "--quiet", "--out", dangling},
                            {"tokenizer", "train", config, "--quiet", "--vocab-size", "300", "--out", dangling},
                            {"book", "--svg", dangling}})
    lines.push_back({command, dangling + ": cannot be made: a file or a link to nothing "});
  for (const Strings& texts : std::vector<Strings>{{place.path("empty")}, {place.path("empty"), place.path("empty")}, {"-"}}) {
    Strings arguments{"tokenizer", "train", "--quiet", "--vocab-size", "300", "--out", out};
    arguments.insert(arguments.end(), texts.begin(), texts.end());
    lines.push_back({arguments, texts[0] == "-" ? "standard input: is empty: " : texts[0]});
  }
  lines.push_back({{"train", config, "--quiet", "--out", place.path("text.txt/x")}, place.path("text.txt/x") + ": "});
  lines.push_back({{"train", config, "--quiet", "--out", place.path(kLong)}, place.path(kLong) + ": "});
  lines.push_back({{"report", run, "--out", fifo}, fifo + ": "});
  lines.push_back({{"report", run, "--out", "/dev/null"}, "/dev/null: "});
  lines.push_back({{"report", run, "--out", place.path("directory")}, place.path("directory") + ": "});
  lines.push_back({{"report", run, "--out", place.path("none/x.html")},
                   place.path("none/x.html") + ": cannot be written: there is no folder "});
  lines.push_back({{"book", "--svg", fifo}, fifo + ": "});
  lines.push_back({{"tokenizer", "train", config, "--quiet", "--vocab-size", "300", "--out", fifo}, fifo + ": "});
  lines.push_back({{"tokenizer", "decode", run, config}, config + ": decode: "});
  lines.push_back({{"tokenizer", "encode", run, "--format", "json", config},  // no half of a list before the sentence
                   config + ": encode: offset 0: char \"{\""});
  const std::string bytes = place.path("bytes");
  lines.push_back({{"tokenizer", "decode", run, bytes}, bytes + ": decode: "});
  lines.push_back({{"tokenizer", "encode", run, bytes}, bytes + ": encode: offset 0: "});
  for (const char* text : {"empty", "one"})
    lines.push_back({{"eval", run, "--data", place.path(text)}, place.path(text) + ": "});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + place.path("empty")},
       place.path("empty") + ": "});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + place.path("none")},
       place.path("none") + ": "});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + fifo}, fifo + ": "});
  return lines;
}

CommandLines replaced_files(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), state = "/checkpoints/step-1/state.json",
                    model = "/checkpoints/step-1/model.safetensors", optimizer = "/checkpoints/step-1/optimizer.safetensors";
  const auto refused = [&](const Strings& command, const std::string& file, const std::string& by, const std::string& reason) {
    Strings arguments = command;
    std::replace(arguments.begin(), arguments.end(), std::string("{}"), run);
    lines.push_back({arguments, run + (reason.starts_with('/') ? "" : file) + reason, file, by});
  };
  const Strings eval{"eval", "{}"}, resume{"train", "--resume", "{}", "--quiet", "--set", "train.steps=2"};
  for (const Strings& command : {eval, resume}) {
    refused(command, "/config.json", "deep", ": ");
    refused(command, "/config.json", "bytes", ":1:1: ");
    refused(command, "/config.json", "large", ": ");
    for (const std::string by : {"fifo", "directory", "none", "loop"}) {
      refused(command, state, by, ": ");
      refused(command, model, by, ": ");
      if (by != "none" && by != "loop") refused(command, "/tokenizer.json", by, ": ");
    }
    for (const char* by : {"deep", "bytes", "empty", "large"}) refused(command, state, by, ": ");
    refused(command, model, "empty", ": is damaged: has 0 bytes");
    for (const char* by : {"bytes", "large"}) refused(command, model, by, ": ");
    refused(command, "/tokenizer.json", "deep", ": ");
    refused(command, "/tokenizer.json", "empty", ": ");
    refused(command, "/tokenizer.json", "large", ": ");
  }
  refused(resume, optimizer, "fifo", ": ");
  refused(resume, "/metrics.jsonl", "fifo", ": ");
  refused(resume, "/metrics.jsonl", "directory", ": ");
  refused({"export-csv", "{}"}, "/metrics.jsonl", "fifo", ": ");
  refused({"export-csv", "{}"}, "/metrics.jsonl", "deep", ": line 1: ");
  refused({"export-csv", "{}"}, "/metrics.jsonl", "bytes", ": line 1:1:1: ");
  refused({"report", "{}"}, "/summary.json", "fifo", ": ");
  refused({"inspect", "{}"}, "/metrics.jsonl", "deep", ": line 1: ");
  refused({"inspect", "{}"}, "/tokenizer.json", "empty", ": ");
  refused({"inspect", "{}"}, model, "bytes", ": ");
  return lines;
}

}  // namespace onestep::testing

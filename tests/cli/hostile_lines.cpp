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
  const auto refused = [&](const std::string& file, const std::string& sentence) {
    Strings arguments = command;
    std::replace(arguments.begin(), arguments.end(), std::string("{}"), file);
    lines.push_back({arguments, sentence});
  };
  for (const auto& [name, reason] :
       std::vector<std::pair<std::string, std::string>>{{"none", kNoFile},
                                                        {"dangling", kNoFile},
                                                        {"directory", kDirectory},
                                                        {"fifo", kPipe},
                                                        {"loop", kLoop},
                                                        {"text.txt/x", ": cannot be opened: Not a directory"}})
    refused(place.path(name), place.path(name) + reason);
  refused("/dev/zero", "/dev/zero" + kPipe);
  refused(place.path(kLong), place.path(kLong) + kTooLong);
  refused(place.path("a\x1b[2J\nb"), place.path("a\\u001b[2J\\nb") + kNoFile);  // nothing reaches the terminal
  refused(place.path("locked"), place.path("locked") + ": cannot be opened: permission denied");
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
    for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{{"empty", ": is empty"},
                                                                                       {"deep", ": "},
                                                                                       {"bytes", R"(:1:1: not UTF-8: "\xff")"},
                                                                                       {"large", ": "},
                                                                                       {"text.txt", ":1:2: "}}) {
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
    lines.push_back({{"import", place.path(name), "--out", out},
                     place.path(name) + ": is not a folder (needs one with config.json and model.safetensors)"});
  lines.push_back({{"import", place.path("directory"), "--out", out}, place.path("directory/config.json") + kNoFile});
  for (const char* name : {"none", "fifo", "text.txt", "directory"})
    lines.push_back({{"tokenizer", "encode", place.path(name), place.path("text.txt")}, place.path(name) + ": "});
  for (const char* name : {"none", "directory"}) lines.push_back({{"export-csv", place.path(name)}, place.path(name) + ": "});
  for (const char* name : {"fifo", "text.txt", "bytes", "large"})
    lines.push_back({{"train", config, "--quiet", "--out", place.path(name)}, place.path(name) + ": "});
  lines.push_back({{"train", config, "--quiet", "--out", place.path("text.txt/x")}, place.path("text.txt/x") + ": "});
  lines.push_back({{"train", config, "--quiet", "--out", place.path(kLong)}, place.path(kLong) + ": "});
  lines.push_back({{"report", run, "--out", fifo}, fifo + kPipe});
  lines.push_back({{"report", run, "--out", "/dev/null"}, "/dev/null" + kPipe});
  lines.push_back({{"report", run, "--out", place.path("directory")}, place.path("directory") + kDirectory});
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
  lines.push_back({{"eval", run, "--data", place.path("empty")}, place.path("empty") + ": is empty"});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + place.path("empty")},
       place.path("empty") + ": is empty"});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + place.path("none")},
       place.path("none") + kNoFile});
  lines.push_back(
      {{"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + fifo}, fifo + kPipe});
  return lines;
}

CommandLines replaced_files(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), state = "/checkpoints/step-1/state.json",
                    model = "/checkpoints/step-1/model.safetensors", optimizer = "/checkpoints/step-1/optimizer.safetensors",
                    none = " (and there is no older checkpoint)";
  const auto refused = [&](const Strings& command, const std::string& file, const std::string& by, const std::string& reason) {
    Strings arguments = command;
    std::replace(arguments.begin(), arguments.end(), std::string("{}"), run);
    lines.push_back({arguments, run + (reason.starts_with('/') ? "" : file) + reason, file, by});
  };
  const Strings eval{"eval", "{}"}, resume{"train", "--resume", "{}", "--quiet", "--set", "train.steps=2"};
  for (const Strings& command : {eval, resume}) {
    refused(command, "/config.json", "deep", ": ");
    refused(command, "/config.json", "bytes", R"(:1:1: not UTF-8: "\xff")");
    refused(command, "/config.json", "large", ": ");
    for (const auto& [by, reason] : std::vector<std::pair<std::string, std::string>>{
             {"fifo", kPipe}, {"directory", kDirectory}, {"none", kNoFile}, {"loop", kLoop}}) {
      refused(command, state, by, reason + none);
      refused(command, model, by, reason + none);
      if (by != "none" && by != "loop") refused(command, "/tokenizer.json", by, reason);
    }
    const std::string damaged = ": is damaged: ";
    for (const char* by : {"deep", "bytes", "empty"}) refused(command, state, by, by == std::string("deep") ? ": " : damaged);
    refused(command, state, "large", ": ");
    for (const auto& [by, bytes] :
         std::vector<std::pair<std::string, std::string>>{{"empty", "0"}, {"bytes", "4"}, {"large", "100000000"}})
      refused(command, model, by, ": is damaged: has " + bytes + " bytes");
    refused(command, "/tokenizer.json", "deep", ": ");
    refused(command, "/tokenizer.json", "empty", ": is empty");
    refused(command, "/tokenizer.json", "large", ": ");
  }
  refused(resume, optimizer, "fifo", kPipe + none);
  refused(resume, "/metrics.jsonl", "fifo", kPipe);
  refused(resume, "/metrics.jsonl", "directory", kDirectory);
  refused({"export-csv", "{}"}, "/metrics.jsonl", "fifo", kPipe);
  refused({"export-csv", "{}"}, "/metrics.jsonl", "deep", ": line 1: ");
  refused({"export-csv", "{}"}, "/metrics.jsonl", "bytes", R"(: line 1:1:1: not UTF-8: "\xff")");
  refused({"report", "{}"}, "/summary.json", "fifo", kPipe);
  return lines;
}

}  // namespace onestep::testing

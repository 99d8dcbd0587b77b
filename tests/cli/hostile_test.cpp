// Command lines that name what cannot be used: every command, every kind of thing that is no file or no run. The answer is exit
// status 2 and one sentence, soon and without a hang.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "tests/paths.h"
#include "tests/process.h"

using onestep::testing::ProcessResult;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

namespace {

/// A folder with a trained run and things that no command can use.
class Place {
 public:
  Place() {
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

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& bytes) const { std::ofstream(path(name), std::ios::binary) << bytes; }

  /// The program; after 20 s it is as good as hanging (status 124).
  static ProcessResult run(Strings arguments) {
    arguments.insert(arguments.begin(), {"timeout", "20", ONESTEP_BINARY_DIR "/onestep"});
    if (::geteuid() == 0)  // who could read what nobody may
      arguments.insert(arguments.begin(), {"setpriv", "--bounding-set=-dac_override,-dac_read_search"});
    return run_process(arguments, {.environment = {{"GOMP_SPINCOUNT", "1000"}}});  // else the program starts twice
  }

 private:
  TemporaryFolder folder_;
};

/// Refused with this sentence, in which {} is `name`.
void expect_refused(const Strings& arguments, const std::string& sentence) {
  const ProcessResult result = Place::run(arguments);
  std::string line;
  for (const std::string& argument : arguments) line += argument.substr(0, 80) + ' ';
  CAPTURE(line);
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err == "onestep: " + sentence + "\n");
}

const std::string kLong(5000, 'x');
const std::string kNoFile = ": cannot be opened: no such file", kDirectory = ": is a directory, not a file",
                  kPipe = ": is not a regular file (a pipe, socket or device)",
                  kTooLong = ": cannot be opened: File name too long",
                  kLoop = ": cannot be opened: Too many levels of symbolic links";

/// `command` with each name that is no file in the place of "{}".
void expect_no_file(const Place& place, const Strings& command) {
  const auto refused = [&](const std::string& file, const std::string& sentence) {
    Strings arguments = command;
    std::replace(arguments.begin(), arguments.end(), std::string("{}"), file);
    expect_refused(arguments, sentence);
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

TEST_CASE("hostile: commands that read a file refuse what is none") {
  const Place place;
  const std::string run = place.path("run"), out = place.path("out");
  for (const Strings& command :
       std::vector<Strings>{{"train", "{}", "--out", out},
                            {"inspect", "{}"},
                            {"graph", "{}"},
                            {"eval", run, "--data", "{}"},
                            {"tokenizer", "encode", run, "{}"},
                            {"tokenizer", "decode", run, "{}"},
                            {"tokenizer", "train", "{}", "--vocab-size", "300", "--out", out, "--quiet"}})
    expect_no_file(place, command);
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("hostile: configs that are none") {
  const Place place;
  const std::string out = place.path("out");
  for (const Strings& command : std::vector<Strings>{{"train", "{}", "--out", out}, {"inspect", "{}"}, {"graph", "{}"}}) {
    for (const auto& [name, reason] :
         std::vector<std::pair<std::string, std::string>>{{"empty", ": is empty"},
                                                          {"deep", ": nested more than 64 levels deep"},
                                                          {"bytes", R"(:1:1: not UTF-8: "\xff")"},
                                                          {"large", ": too large: 100000000 bytes, at most 1 MiB are read"},
                                                          {"text.txt", ":1:2: not JSON: invalid literal"}}) {
      Strings arguments = command;
      std::replace(arguments.begin(), arguments.end(), std::string("{}"), place.path(name));
      expect_refused(arguments, place.path(name) + reason);
    }
  }
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("hostile: commands on runs refuse what is none") {
  const Place place;
  const std::string out = place.path("out");
  for (const Strings& command : std::vector<Strings>{{"eval", "{}"},
                                                     {"generate", "{}", "--prompt", "a", "--tokens", "1"},
                                                     {"export", "{}", out},
                                                     {"report", "{}"},
                                                     {"train", "--resume", "{}"}}) {
    const auto refused = [&](const std::string& name, const std::string& reason) {
      Strings arguments = command;
      std::replace(arguments.begin(), arguments.end(), std::string("{}"), place.path(name));
      expect_refused(arguments, place.path(name) + reason);
    };
    const bool locks = command[0] == "train";  // opens the folder first
    const std::string no_run = ": is not the folder of a run (it has no config.json)";
    refused("directory", no_run);
    for (const char* name : {"none", "dangling"}) refused(name, locks ? kNoFile : no_run);
    for (const char* name : {"fifo", "text.txt", "empty", "large"})
      refused(name, locks ? ": cannot be opened: Not a directory" : no_run);
    if (locks) refused(kLong, kTooLong);
    if (!locks) refused(kLong, "/config.json: File name too long");
  }
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("hostile: other commands and options") {
  const Place place;
  const std::string run = place.path("run"), config = place.path("config.json"), fifo = place.path("fifo"),
                    out = place.path("out");
  for (const char* name : {"none", "fifo", "text.txt", "empty"})
    expect_refused({"import", place.path(name), "--out", out},
                   place.path(name) + ": is not a folder (needs one with config.json and model.safetensors)");
  expect_refused({"import", place.path("directory"), "--out", out}, place.path("directory/config.json") + kNoFile);
  for (const char* name : {"none", "fifo", "text.txt", "directory"})
    expect_refused({"tokenizer", "encode", place.path(name), place.path("text.txt")},
                   place.path(name) + ": holds no tokenizer (neither tokenizer.json of a run, nor vocab.json and merges.txt)");
  for (const char* name : {"none", "directory"})
    expect_refused({"export-csv", place.path(name)}, place.path(name) + "/metrics.jsonl" + kNoFile);
  for (const char* name : {"fifo", "text.txt", "bytes", "large"})
    expect_refused({"train", config, "--quiet", "--out", place.path(name)},
                   place.path(name) + ": is there already and not the folder of a run (name another with --out)");
  expect_refused({"train", config, "--quiet", "--out", place.path("text.txt/x")},
                 place.path("text.txt/x") + ": cannot be made: Not a directory");
  expect_refused({"train", config, "--quiet", "--out", place.path(kLong)}, place.path(kLong) + ": File name too long");
  expect_refused({"report", run, "--out", fifo}, fifo + kPipe);
  expect_refused({"report", run, "--out", "/dev/null"}, "/dev/null" + kPipe);
  expect_refused({"report", run, "--out", place.path("directory")}, place.path("directory") + kDirectory);
  expect_refused({"report", run, "--out", place.path("none/x.html")}, place.path("none/.x.html.tmp") + kNoFile);
  expect_refused({"book", "--svg", fifo}, fifo + ": cannot be made: Not a directory");
  expect_refused({"tokenizer", "train", config, "--quiet", "--vocab-size", "300", "--out", fifo},
                 fifo + ": cannot be made: Not a directory");
  expect_refused({"tokenizer", "decode", run, config}, R"(decode: not a token id: "{\"model\":")");
  expect_refused({"tokenizer", "decode", run, place.path("bytes")}, R"(decode: not a token id: "\xff\xfe\u0001\x80")");
  expect_refused({"tokenizer", "encode", run, place.path("bytes")},
                 R"(encode: offset 0: not UTF-8: byte "\xff" (data.tokenizer = byte or bpe takes any bytes))");
  expect_refused({"eval", run, "--data", place.path("empty")}, place.path("empty") + ": is empty");
  expect_refused(
      {"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + place.path("empty")},
      place.path("empty") + ": is empty");
  expect_refused(
      {"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + place.path("none")},
      place.path("none") + kNoFile);
  expect_refused({"train", config, "--quiet", "--out", out, "--set", "data.text=null", "--set", "data.path=" + fifo},
                 fifo + kPipe);
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("hostile: options with values that are none") {
  const Place place;
  const std::string run = place.path("run"), config = place.path("config.json");
  const auto generate = [&](Strings more, const std::string& sentence) {
    more.insert(more.begin(), {"generate", run});
    expect_refused(more, sentence);
  };
  const std::string see = " (see onestep generate --help)";
  for (const char* count : {"0", "-1", "x", "1.5", "", "99999999999999999999", "1e3", "nan"}) {
    const std::string range = "Value " + std::string(count) + " not in range 1 to 1099511627776" + see;
    generate({"--prompt", "dog", "--tokens", count}, "--tokens: " + range);
    generate({"--prompt", "dog", "--tokens", "1", "--samples", count}, "--samples: " + range);
  }
  for (const auto& [value, shown] : std::vector<std::pair<std::string, std::string>>{
           {"nan", "nan"}, {"-1", "-1"}, {"1e999", "inf"}, {"-inf", "-inf"}, {"inf", "inf"}})
    generate({"--prompt", "dog", "--tokens", "1", "--temperature", value},
             "generate: temperature must be at least 0: got " + shown);
  for (const auto& [value, shown] : std::vector<std::pair<std::string, std::string>>{
           {"nan", "nan"}, {"0", "0"}, {"-0.5", "-0.5"}, {"1.5", "1.5"}, {"inf", "inf"}})
    generate({"--prompt", "dog", "--tokens", "1", "--top-p", value},
             "generate: top_p must be above 0 and at most 1: got " + shown);
  for (const char* option : {"--temperature", "--top-p", "--top-k", "--seed"})
    for (const char* value : {"x", "1x", "1,5"})
      generate({"--prompt", "dog", "--tokens", "1", option, value},
               "Could not convert: " + std::string(option) + " = " + value + see);
  generate({"--prompt", "dog", "--tokens", "1", "--top-k", "-1"}, "generate: top_k must be at least 0: got -1");
  for (const char* ids : {",", "1,", ",1", "1,,2", "1 2", "x", "1.5", "99999999999999999999", "0x1"})
    generate({"--prompt-ids", ids, "--tokens", "1"}, "--prompt-ids: must be ids with commas: got \"" + std::string(ids) + '"');
  for (const char* id : {"27", "-1", "9223372036854775807", "-9223372036854775808"})
    generate({"--prompt-ids", id, "--tokens", "1"},
             "generate: the prompt has no token " + std::string(id) + ": ids are from 0 to 26");
  generate({"--tokens", "1"}, "generate: needs either --prompt or --prompt-ids");
  generate({"--prompt", "dog", "--prompt-ids", "1", "--tokens", "1"}, "generate: needs either --prompt or --prompt-ids");
  generate({"--prompt", "dog"}, "--tokens is required" + see);
  generate({"--prompt", "dog", "--tokens", "1", "--format", "xml"}, "--format: xml not in {text,json}" + see);
  generate({"--prompt", "DOG", "--tokens", "1"},
           R"(--prompt: encode: offset 0: char "D" (U+0044) is not in the vocabulary of 27)");
  generate({"--prompt", "\xff", "--tokens", "1"},
           R"(--prompt: encode: offset 0: not UTF-8: byte "\xff" (data.tokenizer = byte or bpe takes any bytes))");
  for (const char* which :
       {"x", "", "Last", "step-", "step--1", "step-01", "step-1e3", "step-99999999999999999999", "../..", "best/"})
    generate({"--prompt", "dog", "--tokens", "1", "--checkpoint", which},
             "--checkpoint: must be last, best or step-N: got " + std::string(which));
  generate({"--prompt", "dog", "--tokens", "1", "--checkpoint", "step-7"},
           run + "/checkpoints/step-7: there is no such checkpoint");
}

TEST_CASE("hostile: command lines that say too little or too much") {
  const Place place;
  const std::string run = place.path("run"), config = place.path("config.json"), out = place.path("out");
  for (const auto& [command, needed] : std::vector<std::pair<std::string, std::string>>{{"eval", "RUN"},
                                                                                        {"generate", "RUN"},
                                                                                        {"export", "RUN"},
                                                                                        {"report", "RUN"},
                                                                                        {"export-csv", "RUN"},
                                                                                        {"import", "DIR"},
                                                                                        {"inspect", "FILE"},
                                                                                        {"graph", "CONFIG"}})
    expect_refused({command}, needed + " is required (see onestep " + command + " --help)");
  for (const char* command : {"version", "schema", "man", "completion", "gradcheck"})
    expect_refused({command, "x"}, std::string("unexpected argument x (see onestep ") + command + " --help)");
  for (const char* command : {"version", "schema", "train", "eval", "generate", "book", "inspect", "report"})
    expect_refused({command, "--no-such-thing"},
                   std::string("unknown option --no-such-thing (see onestep ") + command + " --help)");
  for (const auto& [command, sentence] : std::vector<std::pair<Strings, std::string>>{
           {{"tokenizer"}, "tokenizer: needs one of train, encode, decode (see onestep tokenizer --help)"},
           {{"tokenizer", "train"}, "TEXT is required (see onestep tokenizer train --help)"},
           {{"tokenizer", "train", config}, "--vocab-size is required (see onestep tokenizer train --help)"},
           {{"tokenizer", "train", config, "--vocab-size", "300"}, "--out is required (see onestep tokenizer train --help)"},
           {{"tokenizer", "train", config, "--vocab-size", "x", "--out", out},
            "Could not convert: --vocab-size = x (see onestep tokenizer train --help)"},
           {{"tokenizer", "encode", run, config, "--format", "xml"},
            "--format: xml not in {lines,json} (see onestep tokenizer encode --help)"},
           {{"train"}, "train: needs a CONFIG, or --resume RUN (see onestep train --help)"},
           {{"train", config, config}, "unexpected argument " + config + " (see onestep train --help)"},
           {{"train", config, "--resume", run}, "CONFIG excludes --resume (see onestep train --help)"},
           {{"train", "--resume", run, "--out", out}, "--out excludes --resume (see onestep train --help)"},
           {{"train", config, "--set"}, "--set: 1 required KEY=VALUE missing (see onestep train --help)"},
           {{"train", ""}, "the name of the file is empty"},
           {{"train", "--resume", ""}, "the name of the run folder is empty"},
           {{"eval", ""}, "the name of the run folder is empty"},
           {{"export", run}, "DIR is required (see onestep export --help)"},
           {{"export", run, out}, run + "/config.json: /model/kind: is attention: only gpt can be exported as a GPT-2"},
           {{"book", "no_such_section"}, "book: there is no section no_such_section (onestep book --list shows them)"},
           {{"book", "--dialect", "x"}, "book: --dialect must be torch or torch-mkl: got x"},
           {{"gradcheck", "--op", "no_such_op"},
            "gradcheck: no differentiable op or module is called no_such_op (onestep gradcheck lists all)"}})
    expect_refused(command, sentence);
  for (const char* vocab : {"256", "0", "-1", "16777217", "99999999999"})
    expect_refused(
        {"tokenizer", "train", config, "--quiet", "--vocab-size", vocab, "--out", out},
        "tokenizer train: vocab-size must be from 257 (the bytes and 1 special token) to 16777216: got " + std::string(vocab));
  for (const char* threads : {"0", "-1", "1025", "1e9", "", "x", "1.5", "99999999999999999999"})
    expect_refused({"train", config, "--threads", threads},
                   "--threads: Value " + std::string(threads) + " not in range 1 to 1024 (see onestep train --help)");
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("hostile: a run whose files were replaced") {
  const Place place;
  const std::string run = place.path("run"), good = place.path("good"), state = "/checkpoints/step-1/state.json",
                    model = "/checkpoints/step-1/model.safetensors", optimizer = "/checkpoints/step-1/optimizer.safetensors",
                    none = " (and there is no older checkpoint)";
  fs::copy(run, good, fs::copy_options::recursive);
  const auto refused = [&](const Strings& command, const std::string& file, const std::string& by, const std::string& reason) {
    fs::remove_all(run);
    fs::copy(good, run, fs::copy_options::recursive);
    fs::rename(run + file, run + file + ".before");
    fs::create_symlink(place.path(by), run + file);
    Strings arguments = command;
    std::replace(arguments.begin(), arguments.end(), std::string("{}"), run);
    CAPTURE(by);
    expect_refused(arguments, run + (reason.starts_with('/') ? "" : file) + reason);
  };
  const Strings eval{"eval", "{}"}, resume{"train", "--resume", "{}", "--quiet", "--set", "train.steps=2"};
  for (const Strings& command : {eval, resume}) {
    refused(command, "/config.json", "deep", ": nested more than 64 levels deep");
    refused(command, "/config.json", "bytes", R"(:1:1: not UTF-8: "\xff")");
    refused(command, "/config.json", "large", ": too large: 100000000 bytes, at most 1 MiB are read");
    for (const auto& [by, reason] : std::vector<std::pair<std::string, std::string>>{
             {"fifo", kPipe}, {"directory", kDirectory}, {"none", kNoFile}, {"loop", kLoop}}) {
      refused(command, state, by, reason + none);
      refused(command, model, by, reason + none);
      if (by != "none" && by != "loop") refused(command, "/tokenizer.json", by, reason);
    }
    const std::string damaged = ": is damaged: its text does not have the hash at its end" + none;
    for (const char* by : {"deep", "bytes", "empty"})
      refused(command, state, by,
              by == std::string("deep") ? ": too large: 100000 bytes, at most 64 KiB are read" + none : damaged);
    refused(command, state, "large", ": too large: 100000000 bytes, at most 64 KiB are read" + none);
    for (const auto& [by, bytes] :
         std::vector<std::pair<std::string, std::string>>{{"empty", "0"}, {"bytes", "4"}, {"large", "100000000"}})
      refused(command, model, by,
              ": is damaged: has " + bytes + " bytes, was written with " + std::to_string(fs::file_size(good + model)) + none);
    refused(command, "/tokenizer.json", "deep", ": nested more than 64 levels deep");
    refused(command, "/tokenizer.json", "empty", ": is empty");
    refused(command, "/tokenizer.json", "large", ": too large: 100000000 bytes, at most 64 MiB are read");
  }
  refused(resume, optimizer, "fifo", kPipe + none);
  refused(resume, "/metrics.jsonl", "fifo", kPipe);
  refused(resume, "/metrics.jsonl", "directory", kDirectory);
  refused({"export-csv", "{}"}, "/metrics.jsonl", "fifo", kPipe);
  refused({"export-csv", "{}"}, "/metrics.jsonl", "deep", ": line 1: nested more than 64 levels deep");
  refused({"export-csv", "{}"}, "/metrics.jsonl", "bytes", R"(: line 1:1:1: not UTF-8: "\xff")");
  refused({"report", "{}"}, "/summary.json", "fifo", kPipe);
}

TEST_CASE("hostile: more memory and more threads than there are get one sentence before training starts") {
  const Place place;
  place.write("huge.json",
              R"({"model": {"kind": "gpt", "num_layers": 1000, "num_heads": 64, "d_model": 65536, "context_length": 5},
                               "data": {"kind": "text", "text": "the quick brown fox jumps over the lazy dog and then goes home"}})");
  const ProcessResult huge = Place::run({"train", place.path("huge.json"), "--out", place.path("out")});
  CHECK(huge.status == 2);
  CHECK(huge.err.starts_with("onestep: " + place.path("huge.json") + ": training needs about "));
  CHECK(huge.err.ends_with(" MiB left (a smaller model, batch_size or context_length needs less)\n"));
  CHECK_FALSE(fs::exists(place.path("out")));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)  // they take terabytes themselves
  const auto limited = [&](const std::string& kib, Strings arguments) {
    arguments.insert(arguments.begin(),
                     {"sh", "-c", "ulimit -v " + kib + "; exec \"$0\" \"$@\"", ONESTEP_BINARY_DIR "/onestep"});
    return run_process(arguments, {.environment = {{"GOMP_SPINCOUNT", "1000"}}});
  };
  const ProcessResult threads = limited("1000000", {"--threads", "1000", "eval", place.path("run")});
  CHECK(threads.status == 2);
  CHECK(threads.err.starts_with("onestep: threads: the system lets "));
  CHECK(threads.err.ends_with(" run at once, not 1000: Resource temporarily unavailable (set --threads or OMP_NUM_THREADS)\n"));
  const ProcessResult batch =
      limited("1000000", {"train", place.path("config.json"), "--set", "train.batch_size=1000000", "--out", place.path("out")});
  CHECK(batch.status == 2);
  CHECK(batch.err.starts_with("onestep: " + place.path("config.json") + ": training needs about "));
#endif
}

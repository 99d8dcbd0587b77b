// Options and keys with values that they cannot have.
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
  const auto generate = [&](Strings more, const std::string& sentence) {
    more.insert(more.begin(), {"generate", run});
    lines.push_back({more, sentence});
  };
  const std::string see = " (see onestep generate --help)";
  for (const char* count : {"0", "-1", "x", "1.5", "", "99999999999999999999", "1e3", "nan"}) {
    const std::string range = "must be a whole number from 1 to 1099511627776: got " + std::string(count) + see;
    generate({"--prompt", "dog", "--tokens", count}, "--tokens: " + range);
    generate({"--prompt", "dog", "--tokens", "1", "--samples", count}, "--samples: " + range);
  }
  for (const char* value : {"nan", "-1", "1e999", "-inf", "inf", "", "x", "1x", "1,5", "0x1"}) {
    const std::string got = ": got " + std::string(value) + see;
    generate({"--prompt", "dog", "--tokens", "1", "--temperature", value},
             "--temperature: must be a number of at least 0" + got);
    generate({"--prompt", "dog", "--tokens", "1", "--top-p", value}, "--top-p: must be a number above 0 and at most 1" + got);
  }
  for (const char* value : {"0", "1.5"})
    generate({"--prompt", "dog", "--tokens", "1", "--top-p", value},
             "--top-p: must be a number above 0 and at most 1: got " + std::string(value) + see);
  for (const char* value : {"x", "1x", "1,5", "1.5", "", "010", "0x200", "9223372036854775808", "1e3"}) {
    const std::string to = " to 9223372036854775807: got " + std::string(value) + see;
    generate({"--prompt", "dog", "--tokens", "1", "--top-k", value}, "--top-k: must be a whole number from 0" + to);
    generate({"--prompt", "dog", "--tokens", "1", "--seed", value},
             "--seed: must be a whole number from -9223372036854775808" + to);
  }
  generate({"--prompt", "dog", "--tokens", "1", "--top-k", "-1"},
           "--top-k: must be a whole number from 0 to 9223372036854775807: got -1" + see);
  for (const char* ids : {",", "1,", ",1", "1,,2", "1 2", "x", "1.5", "99999999999999999999", "0x1", ""})
    generate({"--prompt-ids", ids, "--tokens", "1"}, "--prompt-ids: must be ids with commas: got \"" + std::string(ids) + '"');
  for (const char* id : {"27", "-1", "9223372036854775807", "-9223372036854775808"})
    generate({"--prompt-ids", id, "--tokens", "1"},
             "generate: the prompt has no token " + std::string(id) + ": ids are from 0 to 26");
  generate({"--tokens", "1"}, "generate: needs either --prompt or --prompt-ids");
  generate({"--prompt", "dog", "--prompt-ids", "1", "--tokens", "1"}, "--prompt excludes --prompt-ids" + see);
  generate({"--prompt", "", "--tokens", "1"}, "generate: the prompt is empty (it takes at least one token to continue)");
  generate({"--prompt", "dog"}, "--tokens is required" + see);
  generate({"--prompt", "dog", "--tokens", "1", "--format", "xml"}, "--format: must be text or json: got xml" + see);
  generate({"--prompt", "DOG", "--tokens", "1"},
           R"(--prompt: encode: offset 0: char "D" (U+0044) is not in the vocabulary of 27)");
  generate({"--prompt", "\xff", "--tokens", "1"},
           R"(--prompt: encode: offset 0: not UTF-8: byte "\xff" (data.tokenizer = byte or bpe takes any bytes))");
  for (const char* which :
       {"x", "", "Last", "step-", "step--1", "step-01", "step-1e3", "step-99999999999999999999", "../..", "best/"})
    generate({"--prompt", "dog", "--tokens", "1", "--checkpoint", which},
             "--checkpoint: must be last, best or step-N: got " + std::string(which));
  generate({"--prompt", "dog", "--tokens", "1", "--checkpoint", "step-7"},
           run + "/checkpoints/step-7: there is no such checkpoint (there is step-1)");
  return lines;
}

CommandLines too_little_or_too_much(const Place& place) {
  CommandLines lines;
  const std::string run = place.path("run"), config = place.path("config.json"), out = place.path("out");
  for (const auto& [command, needed] : std::vector<std::pair<std::string, std::string>>{{"eval", "RUN"},
                                                                                        {"generate", "RUN"},
                                                                                        {"export", "RUN"},
                                                                                        {"report", "RUN"},
                                                                                        {"export-csv", "RUN"},
                                                                                        {"import", "DIR"},
                                                                                        {"inspect", "FILE"},
                                                                                        {"graph", "CONFIG"}})
    lines.push_back({{command}, needed + " is required (see onestep " + command + " --help)"});
  for (const char* command : {"version", "schema", "man", "completion", "gradcheck"})
    lines.push_back({{command, "x"}, std::string("unexpected argument x (see onestep ") + command + " --help)"});
  for (const char* command : {"version", "schema", "train", "eval", "generate", "book", "inspect", "report"})
    lines.push_back(
        {{command, "--no-such-thing"}, std::string("unknown option --no-such-thing (see onestep ") + command + " --help)"});
  for (const auto& [command, sentence] : std::vector<std::pair<Strings, std::string>>{
           {{"tokenizer"}, "tokenizer: needs one of train, encode, decode (see onestep tokenizer --help)"},
           {{"tokenizer", "train"}, "TEXT is required (see onestep tokenizer train --help)"},
           {{"tokenizer", "train", config}, "--vocab-size is required (see onestep tokenizer train --help)"},
           {{"tokenizer", "train", config, "--vocab-size", "300"}, "--out is required (see onestep tokenizer train --help)"},
           {{"tokenizer", "encode", run, config, "--format", "xml"},
            "--format: must be lines or json: got xml (see onestep tokenizer encode --help)"},
           {{"train"}, "train: needs a CONFIG, or --resume RUN (see onestep train --help)"},
           {{"train", config, config}, "unexpected argument " + config + " (see onestep train --help)"},
           {{"train", config, "--resume", run}, "CONFIG excludes --resume (see onestep train --help)"},
           {{"train", "--resume", run, "--out", out}, "--out excludes --resume (see onestep train --help)"},
           {{"train", config, "--set"}, "--set: needs a value: --set KEY=VALUE (see onestep train --help)"},
           {{"train", ""}, "the name of the file is empty"},
           {{"import", run, "--out="}, "--out: needs a value: --out RUN (see onestep import --help)"},
           {{"eval", ""}, "the name of the run folder is empty"},
           {{"tokenizer", "encode", run, ""}, "the name of the file is empty"},
           {{"export", run}, "DIR is required (see onestep export --help)"},
           {{"export", run, out}, run + "/config.json: /model/kind: is attention: only gpt can be exported as a GPT-2"},
           {{"book", "no_such_section"}, "book: there is no section no_such_section (onestep book --list shows them)"},
           {{"book", "--dialect", "x"}, "--dialect: must be torch or torch-mkl: got x (see onestep book --help)"},
           {{"book", "--dialect", ""}, "--dialect: must be torch or torch-mkl: got  (see onestep book --help)"},
           {{"gradcheck", "--op", "no_such_op"},
            "gradcheck: no differentiable op or module is called no_such_op (onestep gradcheck lists all)"}})
    lines.push_back({command, sentence});
  for (const char* vocab : {"256", "0", "-1", "16777217", "99999999999", "0x200", "0300", "x", ""})
    lines.push_back({{"tokenizer", "train", config, "--quiet", "--vocab-size", vocab, "--out", out},
                     "--vocab-size: must be a whole number from 257 to 16777216: got " + std::string(vocab) +
                         " (see onestep tokenizer train --help)"});
  for (const char* budget : {"nan", "-1", "0", "", "0x1"})
    lines.push_back({{"bench", "small", "--budget", budget},
                     "--budget: must be a number above 0: got " + std::string(budget) + " (see onestep bench small --help)"});
  for (const auto& [option, sentence] : std::vector<std::pair<Strings, std::string>>{
           {{"--bias", "2"}, "--bias: must be 0 or 1: got 2"},
           {{"--vocab", "20000000"}, "--vocab: must be a whole number from 1 to 16777216: got 20000000"},
           {{"--ctx", "2000000"}, "--ctx: must be a whole number from 1 to 1048576: got 2000000"}})
    lines.push_back({{"bench", "step", option[0], option[1]}, sentence + " (see onestep bench step --help)"});
  const std::string empty = "must be the name of a ";
  for (const auto& [command, sentence] : std::vector<std::pair<Strings, std::string>>{
           {{"train", config, "--out", ""}, "--out: " + empty + "RUN"},
           {{"train", "--resume", ""}, "--resume: " + empty + "RUN"},
           {{"import", run, "--out", ""}, "--out: " + empty + "RUN"},
           {{"eval", run, "--data", ""}, "--data: " + empty + "FILE"},
           {{"report", run, "--out", ""}, "--out: " + empty + "FILE"},
           {{"book", "--svg", ""}, "--svg: " + empty + "FOLDER"},
           {{"book", ""}, "SECTION: must be the number of a section"},
           {{"gradcheck", "--op", ""}, "--op: must be the name of an op or module"},
           {{"tokenizer", "train", config, "--vocab-size", "300", "--out", ""}, "--out: " + empty + "FOLDER"}}) {
    const std::string second = command[0] == "tokenizer" ? " train" : "";
    lines.push_back({command, sentence + ": got an empty one (see onestep " + command[0] + second + " --help)"});
  }
  const std::string see_book = " (see onestep book --help)";
  lines.push_back({{"book", "--check", "--list"}, "--list excludes --check" + see_book});
  lines.push_back({{"book", "--list", "--dialect", "torch"}, "--list excludes --dialect" + see_book});
  lines.push_back({{"book", "3.5", "--svg", out}, "SECTION excludes --svg" + see_book});
  lines.push_back({{"book", "--check", "--svg", out}, "--check excludes --svg" + see_book});
  lines.push_back({{"book", "--list", "--svg", out}, "--list excludes --svg" + see_book});
  lines.push_back({{"inspect", place.path("run/checkpoints/step-1/model.safetensors"), "--set", "seed=1"},
                   "inspect: --set changes values of a config: " + place.path("run/checkpoints/step-1/model.safetensors") +
                       " is a .safetensors file"});
  for (const char* threads : {"0", "-1", "1025", "1e9", "", "x", "1.5", "010", "99999999999999999999"})
    lines.push_back(
        {{"train", config, "--threads", threads},
         "--threads: must be a whole number from 1 to 1024: got " + std::string(threads) + " (see onestep train --help)"});
  return lines;
}

CommandLines values_of_keys(const Place& place) {
  const std::string width = "must be a whole number from 1 to 65536: got ", rate = "must be a number of at least 0: got ",
                    whole = "must be a whole number from -2^63 to 2^63 - 1: got ",
                    missing = "part of the key is empty (write --set section.key=value)";
  const std::vector<std::pair<std::string, std::string>> sets = {
      {"model.d_model=0", "/model/d_model: " + width + "0"},
      {"model.d_model=-1", "/model/d_model: " + width + "-1"},
      {"model.d_model=1.5", "/model/d_model: " + width + "1.5"},
      {"model.d_model=nan", "/model/d_model: " + width + "\"nan\""},
      {"model.d_model=1e999", "/model/d_model: " + width + "\"1e999\""},
      {"model.num_heads=0", "/model/num_heads: " + width + "0"},
      {"model.num_heads=3", "/model/num_heads: must divide d_model = 4: got 3"},
      {"model.context_length=0", "/model/context_length: must be a whole number from 1 to 1048576: got 0"},
      {"model.context_length=1e18", "/model/context_length: must be a whole number from 1 to 1048576: got 1e+18"},
      {"model.dropout=1.1", "/model/dropout: must be a number from 0 to 1: got 1.1"},
      {"model.dropout=nan", "/model/dropout: must be a number from 0 to 1: got \"nan\""},
      {"model.kind=x", "/model/kind: must be attention or gpt: got \"x\""},
      {"train.steps=-1", "/train/steps: must be a whole number from 1 to 1000000000000: got -1"},
      {"train.steps=1e999", "/train/steps: must be a whole number from 1 to 1000000000000: got \"1e999\""},
      {"train.batch_size=0", "/train/batch_size: must be a whole number from 1 to 1048576: got 0"},
      {"train.batch_size=1e30", "/train/batch_size: must be a whole number from 1 to 1048576: got 1e+30"},
      {"train.grad_accumulation=0", "/train/grad_accumulation: must be a whole number from 1 to 1048576: got 0"},
      {"train.grad_clip=-1", "/train/grad_clip: " + rate + "-1"},
      {"train.grad_clip=nan", "/train/grad_clip: " + rate + "\"nan\""},
      {"optimizer.lr=-1", "/optimizer/lr: " + rate + "-1"},
      {"optimizer.lr=inf", "/optimizer/lr: " + rate + "\"inf\""},
      {"optimizer.lr=1e999", "/optimizer/lr: " + rate + "\"1e999\""},
      {"optimizer.eps=-1", "/optimizer/eps: " + rate + "-1"},
      {"optimizer.kind=x", "/optimizer/kind: must be sgd, adam, adamw, rmsprop or adagrad: got \"x\""},
      {"optimizer.betas=[1,1]", "/optimizer/betas/0: must be a number from 0 to below 1: got 1"},
      {"schedule.kind=x", "/schedule/kind: must be constant, linear, cosine, wsd or step: got \"x\""},
      {"schedule.warmup_steps=-1", "/schedule/warmup_steps: must be a whole number from 0 to 1000000000000: got -1"},
      {"data.kind=x", "/data/kind: must be tokens, text, task or none: got \"x\""},
      {"data.tokenizer=x", "/data/tokenizer: must be char, byte, word or bpe: got \"x\""},
      {"data.val_fraction=1", "/data/val_fraction: must be a number from 0 to below 1: got 1"},
      {"seed=x", "/seed: " + whole + "\"x\""},
      {"seed=1e99", "/seed: " + whole + "1e+99"},
      {"seed=1.5", "/seed: " + whole + "1.5"},
      {"nothing=1", "/nothing: unknown key (known here: seed, model, data, optimizer, schedule, train, distributed)"},
      {"model=1", "/model: must be an object: got 1"},
      {"=1", missing},
      {"a..b=1", missing},
      {"seed", "has no = (write --set section.key=value)"},
      {"seed=\xff", "not UTF-8"},
      {"\xff=1", "not UTF-8"},
      {"seed=" + std::string(100'000, '['), "/seed: " + whole + '"' + std::string(60, '[') + "...\""},
  };
  CommandLines lines;
  for (const char* command : {"train", "inspect", "graph"})
    for (const auto& [set, reason] : sets)
      lines.push_back({{command, place.path("config.json"), "--set", set}, "--set " + shown(set) + ": " + reason});
  return lines;
}

}  // namespace onestep::testing

// `onestep generate` from outside.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/hash.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

using onestep::testing::ProcessResult;
using onestep::testing::read;
using onestep::testing::run_onestep;
using onestep::testing::TemporaryFolder;

namespace {

const std::string kConfigs = ONESTEP_SOURCE_DIR "/configs/";

/// A run of a config, trained for so many steps.
std::string trained(const TemporaryFolder& folder, const std::string& config, const std::vector<std::string>& sets) {
  const std::string run = (folder.path() / config).string();
  std::vector<std::string> command = {"train", kConfigs + config + ".json", "--out", run, "--quiet"};
  for (const std::string& set : sets) command.insert(command.end(), {"--set", set});
  REQUIRE(run_onestep(command).status == 0);
  return run;
}

/// What `generate` prints with these further arguments.
std::string generated(const std::string& run, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"generate", run, "--quiet"});
  const ProcessResult result = run_onestep(arguments);
  CHECK(result.status == 0);
  CHECK(result.err == "");
  return result.out;
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("cli: generate continues a text that the model has learnt") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {});
  const std::vector<std::string> greedy = {"--prompt", "Your journey", "--tokens", "4", "--temperature", "0"};
  CHECK(generated(run, greedy) == "Your journey starts with one step\n");

  std::vector<std::string> json = greedy;
  json.insert(json.end(), {"--format", "json", "--samples", "2"});
  const auto lines = lines_of(generated(run, json));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == lines[1]);
  CHECK(lines[0]["text"] == " starts with one step");
  CHECK(lines[0]["ids"].size() == 4);
  REQUIRE(lines[0]["logprobs"].size() == 4);
  for (const double logprob : lines[0]["logprobs"]) CHECK((-0.3 < logprob && logprob <= 0));
  CHECK(lines[0]["finish_reason"] == "length");
  CHECK(lines[0].size() == 4);

  const auto sampled = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--prompt", "one",     "--tokens", "30",      "--temperature",
                                    "3",        "--top-k", "5",        "--top-p", "0.9"};
    all.insert(all.end(), more.begin(), more.end());
    return generated(run, all);
  };
  const std::string first = sampled({"--seed", "1", "--samples", "2"});
  CHECK(first.find("\n---------------\none ") != std::string::npos);
  CHECK(sampled({"--seed", "1", "--samples", "2", "--no-cache"}) == first);
  CHECK(sampled({"--seed", "2", "--samples", "2"}) != first);
  CHECK(first.starts_with(sampled({"--seed", "1"})));
}

TEST_CASE("cli: generate continues several prompts at once as each alone") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {"train.steps=3"});
  const std::vector<std::string> options = {"--tokens", "9", "--seed", "5", "--samples", "2"};
  const auto with = [&](std::vector<std::string> prompts, const std::vector<std::string>& more) {
    prompts.insert(prompts.end(), options.begin(), options.end());
    prompts.insert(prompts.end(), more.begin(), more.end());
    return generated(run, prompts);
  };
  const std::vector<std::string> both = {"--prompt", "Your", "--prompt", "one step"};
  const auto lines = lines_of(with(both, {"--format", "json"}));
  const auto first = lines_of(with({"--prompt", "Your"}, {"--format", "json"})),
             second = lines_of(with({"--prompt", "one step"}, {"--format", "json"}));
  REQUIRE(lines.size() == 4);
  CHECK(lines == std::vector{first.at(0), second.at(0), first.at(1), second.at(1)});
  const auto text = [](const char* prompt, const nlohmann::json& line) {
    return prompt + line["text"].get<std::string>() + "\n";
  };
  const std::string ruler = "---------------\n";
  CHECK(with(both, {}) == text("Your", lines[0]) + ruler + text("one step", lines[1]) + ruler + text("Your", lines[2]) + ruler +
                              text("one step", lines[3]));
}

TEST_CASE("cli: generate reads prompts from a file and continues some of them at a time") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {"train.steps=3"}), file = folder.path() / "prompts.txt",
                    json_file = folder.path() / "prompts.jsonl";
  onestep::testing::write(file, "Your\none step\njourney starts");
  onestep::testing::write(json_file, "\"Your\"\n\"one\\nstep\"\n");
  const auto lines = lines_of(generated(run, {"--prompts", file, "--format", "json", "--tokens", "6", "--samples", "2"}));
  REQUIRE(lines.size() == 6);
  const std::vector<std::string> prompts = {"Your", "one step", "journey starts"};
  for (size_t i = 0; i < 3; ++i) {
    const auto alone =
        lines_of(generated(run, {"--prompt", prompts[i], "--format", "json", "--tokens", "6", "--samples", "2"}));
    CHECK(alone == std::vector{lines[i], lines[3 + i]});
  }
  CHECK(lines_of(generated(run, {"--prompts", file, "--format", "json", "--tokens", "6", "--samples", "2", "--batch", "2"})) ==
        lines);
  const auto from_json = lines_of(generated(run, {"--prompts", json_file, "--format", "json", "--tokens", "6"}));
  CHECK(from_json == std::vector{lines[0], lines[1]});  // of words; white space is none

  const auto refused = [&](const std::string& name, const std::string& bytes) {
    onestep::testing::write(folder.path() / name, bytes);
    const ProcessResult result = run_onestep({"generate", run, "--prompts", (folder.path() / name).string()});
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err.starts_with("onestep: " + (folder.path() / name).string()));
    return result.err.substr(result.err.find(name) + name.size());
  };
  CHECK(refused("a.txt", "") == ": has no prompt\n");
  CHECK(refused("b.txt", "Your\n\none\n") == ", line 2: the prompt is empty\n");
  CHECK(refused("c.txt", "Your\ntrip\n").starts_with(", line 2: encode: offset 0: "));
  CHECK(refused("d.jsonl", "\"Your\"\n[1]\n") == ", line 2: must be a JSON string: got [1]\n");
  CHECK(refused("e.jsonl", "\"Your").starts_with(", line 1:"));
}

TEST_CASE("cli: generate ends at stop strings and stop tokens") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {});
  const auto with = [&](std::vector<std::string> stop) {
    stop.insert(stop.begin(), {"--prompt", "Your journey", "--temperature", "0", "--tokens", "4"});
    const std::string text = generated(run, stop);
    stop.insert(stop.end(), {"--format", "json"});
    const auto line = lines_of(generated(run, stop)).at(0);
    CHECK("Your journey" + line["text"].get<std::string>() + "\n" == text);
    return line;
  };
  CHECK(with({})["text"] == " starts with one step");
  const auto stopped = with({"--stop", "one", "--stop", "nowhere"});
  CHECK(stopped["text"] == " starts with ");
  CHECK(stopped["finish_reason"] == "stop");
  CHECK(stopped["ids"].size() == 3);
  CHECK(with({"--stop", "steps"})["text"] == " starts with one step");
  CHECK(with({"--stop", "steps"})["finish_reason"] == "length");
  const std::string id = with({})["ids"][1].dump();
  CHECK(with({"--stop-ids", "0," + id})["text"] == " starts");
  CHECK(with({"--stop-ids", id})["ids"].size() == 2);
}

TEST_CASE("cli: generate writes lines of JSON as tokens come") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {"train.steps=3"});
  const std::vector<std::string> prompts = {"--prompt", "Your", "--prompt", "one", "--tokens", "3", "--seed", "4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), prompts.begin(), prompts.end());
    return lines_of(generated(run, more));
  };
  const auto lines = with({"--json", "--logprobs", "2"}), whole = with({"--format", "json", "--logprobs", "2"});
  REQUIRE(lines.size() == 8);
  for (size_t prompt = 0; prompt < 2; ++prompt) {
    std::string text;
    for (size_t i = 0; i < 3; ++i) {
      const nlohmann::json& token = lines[2 * i + prompt];
      CHECK(token["prompt"] == prompt);
      CHECK(token["sample"] == 0);
      CHECK(token["id"] == whole[prompt]["ids"][i]);
      CHECK(token["logprob"] == whole[prompt]["logprobs"][i]);
      CHECK(token["alternatives"] == whole[prompt]["alternatives"][i]);
      CHECK(token["alternatives"].size() == 2);
      CHECK(token["alternatives"][0]["logprob"] >= token["alternatives"][1]["logprob"]);
      text += token["text"].get<std::string>();
    }
    nlohmann::json last = lines[6 + prompt];
    CHECK(last["text"] == text);
    CHECK(last["prompt"] == prompt);
    last.erase("prompt"), last.erase("sample");
    CHECK(last == whole[prompt]);
  }
  const ProcessResult result = run_onestep({"generate", run, "--prompt", "Your", "--logprobs", "2"});
  CHECK(result.status == 2);
  CHECK(result.err == "onestep: --logprobs: needs --json or --format json\n");
}

TEST_CASE("cli: generate repeats less with a penalty and keeps to likely tokens with min-p") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {"train.steps=2"});
  const auto ids = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--prompt", "Your", "--tokens", "40", "--format", "json"});
    const auto line = lines_of(generated(run, more)).at(0);
    return line["ids"].get<std::vector<int64_t>>();
  };
  const auto different = [](const std::vector<int64_t>& all) { return std::set(all.begin(), all.end()).size(); };
  CHECK(different(ids({"--temperature", "0", "--repetition-penalty", "50"})) >
        different(ids({"--temperature", "0", "--repetition-penalty", "0.02"})));
  CHECK(ids({"--min-p", "1"}) == ids({"--temperature", "0"}));
  CHECK(ids({"--min-p", "0.5"}) != ids({}));
}

TEST_CASE("cli: generate and eval take weights of fewer bytes") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {});
  const auto perplexity = [&](const std::string& weights) {
    const ProcessResult result = run_onestep({"eval", run, "--quiet", "--weights", weights});
    CHECK(result.status == 0);
    const size_t at = result.out.find("perplexity   ");
    REQUIRE(at != std::string::npos);
    return std::stod(result.out.substr(at + 13));
  };
  const double plain = perplexity("float32");
  for (const char* const weights : {"float32", "bf16", "int8"}) {
    CHECK(generated(run, {"--prompt", "Your journey", "--tokens", "4", "--temperature", "0", "--weights", weights}) ==
          "Your journey starts with one step\n");
    CHECK(std::abs(perplexity(weights) / plain - 1) < 0.02);
  }
  const auto logprobs = [&](const char* weights) {
    return lines_of(
        generated(run, {"--prompt", "Your", "--tokens", "5", "--format", "json", "--weights", weights}))[0]["logprobs"];
  };
  CHECK(logprobs("bf16") != logprobs("float32"));
  CHECK(logprobs("int8") != logprobs("bf16"));
  for (const char* const command : {"generate", "eval"}) {
    const ProcessResult result = run_onestep({command, run, "--weights", "int4"});
    CHECK(result.status == 2);
    CHECK(result.err.starts_with("onestep: --weights: must be float32, bf16 or int8: got int4 (see onestep "));
  }
}

TEST_CASE("cli: generate continues ids where there is no text") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence",
                                  {"train.steps=2", "model.attention=fused_qkv", "model.rope=true", "data.kind=tokens",
                                   "data.tokens=[0,3,1,15,7,30,31,2,4,5]", "data.vocab_size=32"});
  const std::string text = generated(run, {"--prompt-ids", "3,1,15", "--tokens", "40", "--seed", "7"});
  CHECK(text.starts_with("3 1 15 "));
  const auto line =
      lines_of(generated(run, {"--prompt-ids", "3,1,15", "--tokens", "40", "--seed", "7", "--format", "json"}))[0];
  std::ostringstream joined;
  joined << "3 1 15";
  for (const int64_t id : line["ids"]) joined << ' ' << id;
  CHECK(text == joined.str() + "\n");
  CHECK(line["text"].is_null());

  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"generate", run});
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refused({"--tokens", "3"}) == "onestep: generate: needs one of --prompt, --prompts and --prompt-ids\n");
  CHECK(refused({"--tokens", "3", "--prompt", "a", "--prompt-ids", "1"}) ==
        "onestep: --prompt excludes --prompt-ids (see onestep generate --help)\n");
  CHECK(refused({"--tokens", "3", "--prompt", "a"}) ==
        "onestep: --prompt: " + run + " was trained on ids and has no tokenizer (use --prompt-ids)\n");
  CHECK(refused({"--tokens", "3", "--prompt-ids", "1,x"}) == "onestep: --prompt-ids: must be ids with commas: got \"1,x\"\n");
  CHECK(refused({"--tokens", "3", "--prompt-ids", "1,"}).starts_with("onestep: --prompt-ids: "));
  CHECK(refused({"--tokens", "3", "--prompt-ids", "1,32"}) ==
        "onestep: --prompt-ids: the model has no token 32: ids are from 0 to 31\n");
  CHECK(refused({"--tokens", "3", "--prompt-ids", "1", "--top-p", "2"}) ==
        "onestep: --top-p: must be a number above 0 and at most 1: got 2 (see onestep generate --help)\n");
  CHECK(refused({"--tokens", "3", "--prompt-ids", "1", "--temperature", "-1"}) ==
        "onestep: --temperature: must be a number of at least 0: got -1 (see onestep generate --help)\n");
  CHECK(refused({"--tokens", "0", "--prompt-ids", "1"}).starts_with("onestep: --tokens: "));
  CHECK(refused({"--tokens", "3", "--prompt-ids", "1", "--format", "xml"}).starts_with("onestep: --format: "));
}

TEST_CASE("cli: generate shows a task without a prompt and names its symbols") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "next_token", {"model.context_length=8", "data.length=4", "data.vocab_size=8"});
  const ProcessResult shown = run_onestep({"generate", run});
  CHECK(shown.status == 0);
  const std::string said = "a held-out prompt; the right answer is ";
  REQUIRE(shown.err.starts_with(said));
  const std::string answer = shown.err.substr(said.size(), shown.err.size() - said.size() - 1);
  CHECK(answer.size() == 7);  // `a b c d`
  CHECK(shown.out == answer + ' ' + answer + '\n');
  CHECK(run_onestep({"generate", run, "--seed", "1"}).err != shown.err);
  CHECK(generated(run, {}) == shown.out);
  CHECK(generated(run, {"--prompt", "h a f f"}) == "h a f f h a f f\n");
  CHECK(generated(run, {"--prompt-ids", "7,0,5,5", "--tokens", "2"}) == "h a f f h a\n");
  const ProcessResult refused = run_onestep({"generate", run, "--prompt", "a i"});
  CHECK(refused.status == 2);
  CHECK(refused.err.starts_with("onestep: --prompt: encode: offset 2: word \"i\""));
}

TEST_CASE("cli: generate writes the ids that the tokenizer does not have as <id>") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {"train.steps=1", "model.vocab_size=500"});  // of six words
  const std::string text = generated(run, {"--prompt", "Your journey", "--tokens", "20"});
  CHECK(text.starts_with("Your journey"));
  CHECK(text.find('<') != std::string::npos);
  const auto line = lines_of(generated(run, {"--prompt", "Your journey", "--tokens", "20", "--format", "json"})).at(0);
  CHECK("Your journey" + line["text"].get<std::string>() + "\n" == text);
  for (const int64_t id : line["ids"]) CHECK((id < 6 || text.find('<' + std::to_string(id) + '>') != std::string::npos));
}

TEST_CASE("cli: generate refuses what is no run and a text outside the vocabulary") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK(run_onestep({"generate", path, "--prompt", "a", "--tokens", "1"}).err.starts_with("onestep: " + path + ": "));
  const std::string run = trained(folder, "sentence", {"train.steps=1"});
  const ProcessResult result = run_onestep({"generate", run, "--prompt", "Your trip", "--tokens", "1"});
  CHECK(result.status == 2);
  CHECK(result.err.starts_with("onestep: --prompt: "));
  CHECK(result.err.find("trip") != std::string::npos);
}

TEST_CASE("cli: a run that claims a larger model than its checkpoint holds is refused before one is made") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "sentence", {"train.steps=1", "model.attention=fused_qkv"});
  const std::string config = run + "/config.json", state = run + "/checkpoints/step-1/state.json";
  const auto replace = [](const std::string& path, const std::string& from, const std::string& to) {
    std::string text = read(path);
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    std::ofstream(path) << text.replace(at, from.size(), to);
  };
  const std::string context = std::to_string(nlohmann::json::parse(read(config))["model"]["context_length"].get<int>());
  replace(config, "\"context_length\": " + context, "\"context_length\": 1000000");
  replace(state, "\"model.context_length\": \"" + context + "\"", "\"model.context_length\": \"1000000\"");
  std::string text = read(state);
  text.resize(text.rfind(",\n  \"xxh3_128\""));
  std::ofstream(state) << text << ",\n  \"xxh3_128\": \"" << onestep::hash_of(text) << "\"\n}\n";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"generate", run, "--prompt", "Your", "--tokens", "1"}, {"eval", run}}) {
    const ProcessResult result = run_onestep(command);
    CHECK(result.status == 2);
    CHECK(result.err.starts_with("onestep: " + run + "/checkpoints/step-1/model.safetensors: does not fit the config: holds "));
  }
}

// `onestep bench`: what it prints, not how long anything takes.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/process.h"
#include "tests/support.h"

using nlohmann::json;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;

namespace {

json bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  for (const char* more : {"--json", "--budget", "0.001"}) arguments.emplace_back(more);
  const ProcessResult result = run_onestep(arguments);
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(result.err == "");
  const json figures = json::parse(result.out);
  for (const char* key : {"median_ms", "min_ms", "p90_ms", "reps", "peak_rss_mib"}) CHECK_MESSAGE(figures.at(key) > 0, key);
  CHECK(figures.contains("process_s_at_first_result"));
  CHECK(figures.at("framework") == "onestep");
  return figures;
}

}  // namespace

TEST_CASE("bench: a training step is the trainer's and asks the system for no memory") {
  const json figures = bench({"step", "--layers", "1", "--heads", "2", "--embd", "8", "--ctx", "4", "--batch", "2", "--vocab",
                              "5", "--steps", "3", "--profile", "--threads", "1"});
  CHECK(figures["bench"] == "gpt_step");
  CHECK(figures["threads"] == 1);
  CHECK(figures["params"] == 5 * 8 + 4 * 8 + 12 * 8 * 8 + 3 * 8);
  CHECK(figures["loss0"].get<double>() == doctest::Approx(1.61).epsilon(0.05));  // log 5
#if !defined(__SANITIZE_ADDRESS__)  // which is to see every tensor's memory: none is kept for the next
  CHECK(figures["system_allocations_after_first_step"] == 0);
#endif
  CHECK(figures["profile"].at("linear").at("calls") == 5);
  CHECK(figures["profile"].at("optimizer").at("calls") == 1);
}

TEST_CASE("bench: a step of adapters") {
  const json figures = bench({"step", "--layers", "2", "--heads", "2", "--embd", "8", "--ctx", "4", "--batch", "2", "--vocab",
                              "5", "--steps", "3", "--lora", "3"});
  CHECK(figures["lora"] == 3);
  CHECK(figures["params"] == 5 * 8 + 4 * 8 + 2 * 12 * 8 * 8 + 5 * 8 + 2 * 3 * (8 + 24));
}

TEST_CASE("bench: attention matmul convolutions and generation") {
  for (const char* mode : {"fwd", "fwdbwd"})
    CHECK(bench({"attention", "--B", "1", "--T", "8", "--C", "8", "--H", "2", "--mode", mode})["mode"] == mode);
  for (const char* op : {"NN", "NT", "TN"})
    CHECK(bench({"matmul", "--m", "5", "--n", "7", "--k", "3", "--op", op, "--batch", "2"})["gflops"] > 0);
  CHECK(bench({"matmul", "--m", "5", "--n", "7", "--k", "3", "--op", "TN", "--precision", "bf16"})["precision"] == "bf16");
  CHECK(bench({"attention", "--B", "1", "--T", "8", "--C", "8", "--H", "2", "--precision", "bf16"})["precision"] == "bf16");
  CHECK(bench({"matmul", "--m", "5", "--n", "7", "--k", "3", "--precision", "bf16_amx"})["precision"] == "bf16_amx");
  CHECK(bench({"conv", "--batch", "1", "--in", "2", "--out", "3", "--size", "5", "--first", "1"})["gflop"] > 0);
  CHECK(bench({"generate", "--layers", "1", "--heads", "1", "--embd", "8", "--ctx", "8", "--tokens", "7"})["tokens_per_s"] > 0);
}

TEST_CASE("bench: small graphs") {
  for (const char* which : {"mlp", "mha", "scalarops", "addchain", "recorded"})
    CHECK(bench({"small", "--case", which})["case"] == which);
}

TEST_CASE("bench: single ops, the same that the peer and compare.py time") {
  const std::string sentence = run_onestep({"bench", "op", "--op", "none"}).err;
  REQUIRE(onestep::testing::has_match(sentence, "must be (.*) or (\\w+): got none"));
  const std::set<std::string> ours =
      onestep::testing::matches(sentence.substr(sentence.find("must be ")), "(\\w+)(?=,| or |: got none)");
  const ProcessResult peers = run_process({"python3", "-c",
                                           "import json, sys; sys.path.insert(0, sys.argv[1]); import op_cases as o; "
                                           "print(json.dumps([sorted(o.CASES), sorted(o.WITHOUT_BACKWARD)]))",
                                           ONESTEP_SOURCE_DIR "/bench/peers"});
  const json theirs = json::parse(peers.out);
  CHECK(theirs[0].get<std::set<std::string>>() == ours);
  const bool all = !onestep::testing::skips_without_ci();
  const auto without_backward = theirs[1].get<std::set<std::string>>();
  for (const std::string& op : all ? ours : std::set<std::string>{"abs", "argmax", "batch_norm"}) {
    if (without_backward.contains(op))
      CHECK_MESSAGE(run_onestep({"bench", "op", "--op", op, "--mode", "fwdbwd"}).status == 2, op);
    else
      CHECK(bench({"op", "--op", op, "--mode", "fwdbwd"})["op"] == op);
  }
  CHECK(bench({"op", "--op", "argmax", "--mode", "fwd"})["mode"] == "fwd");
}

TEST_CASE("bench: limits of the machine") { CHECK(bench({"limits"})["gb_per_s"] > 0); }

TEST_CASE("bench: compare.py makes a table of who is there and a picture") {
  if (onestep::testing::skips_without_ci()) return;
  const std::string script = ONESTEP_SOURCE_DIR "/bench/compare.py";
  const TemporaryFolder folder;
  const auto compare = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"python3", script, "--onestep", ONESTEP_BINARY_DIR "/onestep"};
    command.insert(command.end(), more.begin(), more.end());
    return run_process(command);
  };
  const ProcessResult help = compare({"--help"});
  if (help.status == 127) {
    MESSAGE("python3 is not installed: not run");
    return;
  }
  const std::string figures = (folder.path() / "figures.json").string(), picture = (folder.path() / "ratios.svg").string();
  const ProcessResult result =
      compare({"small", "--only", "MLP", "--rounds", "1", "--budget", "0.001", "--json", figures, "--svg", picture});
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(result.out.find("| MLP step | ") != std::string::npos);
  const json rows = json::parse(std::ifstream(figures))["rows"];
  CHECK(rows.size() == 1);
  CHECK(rows[0]["ms"]["onestep"] > 0);
  CHECK(std::filesystem::file_size(picture) > 300);
  const std::string drawn = (folder.path() / "drawn.svg").string();
  CHECK(compare({"--draw", figures, "--svg", drawn}).status == 0);
  CHECK(onestep::testing::read(drawn) == onestep::testing::read(picture));
  CHECK(compare({"--draw", figures}).status == 2);
  const ProcessResult weights =
      compare({"generate", "--weights", "int8", "--only", "(b)", "--rounds", "1", "--budget", "0.001", "--json", figures});
  CHECK_MESSAGE(weights.status == 0, weights.err);
  CHECK(weights.out.find(", int8: ") != std::string::npos);
  CHECK(weights.out.find("generate: torch") != std::string::npos);  // left out, installed or not
  CHECK(json::parse(std::ifstream(figures))["rows"][0]["ms"]["onestep"] > 0);
  CHECK(compare({"nothing"}).status == 2);
  CHECK(compare({"generate", "step", "--weights", "int8"}).err.ends_with("error: --weights int8 is for generate: got step\n"));
  CHECK(run_process({"python3", script, "--onestep", "/nowhere"}).err.find("/nowhere bench limits failed") !=
        std::string::npos);
}

TEST_CASE("bench: steady.py follows a run with any schedule") {
  const std::string script = ONESTEP_SOURCE_DIR "/bench/steady.py", config = ONESTEP_SOURCE_DIR "/configs/sentence.json";
  const ProcessResult result =
      run_process({"python3", script, "--onestep", ONESTEP_BINARY_DIR "/onestep", "--config", config, "--steps", "100"});
  if (result.status == 127) {
    MESSAGE("python3 is not installed: not run");
    return;
  }
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(result.out.starts_with("| steps | ms a step | resident MiB |\n|---|---:|---:|\n| 0-10 | "));
  CHECK(result.out.find("\n| 90-100 | ") != std::string::npos);
  CHECK(run_process({"python3", script, "--steps", "9"}).err.ends_with("argument --steps: must be at least 100: got 9\n"));
}

TEST_CASE("bench: refusals") {
  const auto refusal = [](const std::vector<std::string>& arguments) {
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    return result.err;
  };
  CHECK(refusal({"bench", "generate", "--ctx", "8", "--tokens", "8"}) ==
        "onestep: bench generate: --prompt and --tokens must fit into --ctx 8: got 9\n");
  CHECK(refusal({"bench", "attention", "--B", "2000000", "--T", "100000", "--C", "512", "--H", "8", "--mode", "fwd"})
            .starts_with("onestep: bench attention: the tensors of --B, --T and --C need 2,343,750,000 MiB, there are "));
  CHECK(refusal({"bench", "generate", "--layers", "1000", "--embd", "65536", "--heads", "8"})
            .starts_with("onestep: bench generate: the parameters of --layers, --embd and --vocab need "));
  CHECK(refusal({"bench", "matmul", "--op", "TT"}).find("--op") != std::string::npos);
  CHECK(refusal({"bench", "matmul", "--m", "2147483648", "--n", "2147483648", "--k", "1"})
            .starts_with(
                "onestep: bench matmul: the matrices of --m, --n, --k and --batch need 17,592,186,060,800 MiB, there are "));
  CHECK(refusal({"bench", "attention", "--H", "3"}) == "onestep: --H: must divide --C, 128: got 3\n");
  CHECK(refusal({"bench", "conv", "--kernel", "50"}) ==
        "onestep: --kernel: must be at most --size and twice --padding, 34: got 50\n");
  CHECK(refusal({"bench"}) != "");
}

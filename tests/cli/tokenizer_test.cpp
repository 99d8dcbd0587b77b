// Tokenizers from outside: training one, text to ids and back, and evaluation on another text.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"

using onestep::testing::contains;
using onestep::testing::matches;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;
using onestep::testing::write;
namespace fs = std::filesystem;

namespace {

double figure(const std::string& out, const std::string& name) {
  const std::set<std::string> found = matches(out, name + " +([0-9.]+)");
  REQUIRE(found.size() == 1);
  return std::stod(*found.begin());
}

const std::string kBpe = ONESTEP_SOURCE_DIR "/tests/goldens/bpe";

}  // namespace

TEST_CASE("cli: tokenizer train writes GPT-2's two files and encode and decode use them") {
  const TemporaryFolder folder;
  const std::string text = (folder.path() / "text.txt").string(), out = (folder.path() / "new/bpe").string();
  write(text, "low lower lowest low low<|endoftext|>new newer newest\n");
  const ProcessResult result = run_onestep({"tokenizer", "train", text, "--vocab-size", "264", "--out", out, "--quiet"});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "tokens       264\n"));
  const auto vocabulary = onestep::train::read_bpe_folder(out);
  CHECK(vocabulary.tokens.size() == 264);
  CHECK(onestep::train::merges_text(vocabulary).starts_with("#version: 0.2\nl o\nlo w\n"));

  const std::string bytes = "low\xff <|endoftext|> n\xc3\xa9w\r\n", file = (folder.path() / "some.bin").string();
  write(file, bytes);
  const auto expected = onestep::train::BpeTokenizer(vocabulary).encode(bytes);
  const ProcessResult lines = run_onestep({"tokenizer", "encode", out, file});
  std::string expected_lines;
  for (const int64_t id : expected) expected_lines += std::to_string(id) + "\n";
  CHECK(lines.out == expected_lines);
  const ProcessResult json = run_onestep({"tokenizer", "encode", out, file, "--format", "json"});
  CHECK(nlohmann::json::parse(json.out).get<std::vector<int64_t>>() == expected);
  for (const std::string& ids : {lines.out, json.out}) {
    write(folder.path() / "ids", ids);
    CHECK(run_onestep({"tokenizer", "decode", out, (folder.path() / "ids").string()}).out == bytes);
  }
}

TEST_CASE("cli: tokenizer says in one sentence what is wrong") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string(), text = path + "/text.txt";
  write(text, "abc");
  write(path + "/ids", "1 2 x");
  const auto refusal = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "tokenizer");
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    return result.err;
  };
  CHECK(refusal({"train", text, "--vocab-size", "10", "--out", path + "/bpe"}).starts_with("onestep: --vocab-size: "));
  CHECK(refusal({"train", path + "/none", "--vocab-size", "300", "--out", path + "/bpe"})
            .starts_with("onestep: " + path + "/none: "));
  CHECK(refusal({"train", text, "--vocab-size", "300", "--out", text}) ==
        "onestep: " + text + ": cannot be made: Not a directory\n");
  CHECK(refusal({"encode", path, text}) ==
        "onestep: " + path + ": holds no tokenizer (neither tokenizer.json of a run, nor vocab.json and merges.txt)\n");
  CHECK(refusal({"decode", kBpe, path + "/ids"}) == "onestep: " + path + "/ids: decode: not a token id: \"x\"\n");
  write(path + "/ids", "[99999]");
  CHECK(refusal({"decode", kBpe, path + "/ids"}).starts_with("onestep: " + path + "/ids: "));
  CHECK(refusal({}).starts_with("onestep: tokenizer: needs one of train, encode, decode ("));
}

TEST_CASE("cli: tokenizer says what is wrong with standard input") {
  const std::string tokenizer = ONESTEP_BINARY_DIR "/onestep tokenizer ", unreadable = "onestep: standard input: ";
  const TemporaryFolder folder;
  const std::string train = "train - --quiet --vocab-size 300 --out " + (folder.path() / "bpe").string();
  for (const std::string& command : {"encode " + kBpe, "decode " + kBpe + " -", train}) {
    CAPTURE(command);
    const ProcessResult folder_given = run_process({"sh", "-c", tokenizer + command + " < /"});
    CHECK(folder_given.status == 2);
    CHECK(folder_given.out == "");
    CHECK(folder_given.err == unreadable + "cannot be read: Is a directory\n");
    const ProcessResult closed = run_process({"sh", "-c", tokenizer + command + " <&-"});
    CHECK(closed.status == 2);
    CHECK(closed.out == "");
    CHECK(closed.err.starts_with(unreadable));
  }
  const ProcessResult no_id = run_process({"sh", "-c", "echo x | " + tokenizer + "decode " + kBpe});
  CHECK(no_id.status == 2);
  CHECK(no_id.err.starts_with(unreadable));
}

TEST_CASE("cli: a run trains with bpe and evaluates on another text though its own is gone") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const std::string text = (folder.path() / "text.txt").string(), other = (folder.path() / "other.txt").string();
  std::string words;
  for (int i = 0; i < 400; ++i) words += i % 3 ? "the attention of each token " : "é is one character, two bytes\n";
  write(text, words);
  write(other, words.substr(0, 2000));
  const std::string config =
      R"({"model": {"d_model": 16, "num_heads": 2, "context_length": 8}, "data": {"kind": "text", "path": ")" + text +
      R"(", "tokenizer": "bpe", "tokenizer_path": ")" + kBpe +
      R"("}, "optimizer": {"lr": 0.01}, "train": {"steps": 60, "eval_batches": 5}})";
  write(folder.path() / "run.json", config);
  const ProcessResult trained = run_onestep({"train", (folder.path() / "run.json").string(), "--out", run.string(), "--quiet"});
  CHECK(trained.err == "");
  REQUIRE(trained.status == 0);
  const ProcessResult held_out = run_onestep({"eval", run.string()});
  CHECK(held_out.status == 0);
  CHECK(contains(held_out.out, "predictions on validation tokens\nbits/char "));

  fs::remove(text);
  CHECK(run_onestep({"eval", run.string()}).status == 2);
  const ProcessResult on_other = run_onestep({"eval", run.string(), "--data", other, "--quiet"});
  CHECK(on_other.err == "");
  REQUIRE(on_other.status == 0);
  const onestep::train::BpeTokenizer tokenizer(onestep::train::read_bpe_folder(kBpe));
  const std::string evaluated = words.substr(0, 2000);
  const auto ids = tokenizer.encode(evaluated);
  const auto scored = static_cast<double>(ids.size() - 1);
  CHECK(contains(on_other.out, " % of " + std::to_string(ids.size() - 1) + " predictions on " + other));
  const double loss = figure(on_other.out, "loss"),
               bytes = static_cast<double>(2000 - tokenizer.decode({ids.data(), 1}).size());
  const auto tails = static_cast<double>(std::count(evaluated.begin(), evaluated.end(), '\xa9'));
  CHECK(figure(on_other.out, "perplexity") == doctest::Approx(std::exp(loss)).epsilon(1e-3));
  CHECK(figure(on_other.out, "bits/byte") == doctest::Approx(loss / std::log(2.0) * scored / bytes).epsilon(1e-3));
  CHECK(figure(on_other.out, "bits/char") == doctest::Approx(loss / std::log(2.0) * scored / (bytes - tails)).epsilon(1e-3));

  // The run's tokenizer travels with it.
  const ProcessResult encoded = run_onestep({"tokenizer", "encode", run.string(), other, "--format", "json"});
  CHECK(nlohmann::json::parse(encoded.out).get<std::vector<int64_t>>() == ids);
}

TEST_CASE("cli: eval --data of a run without text is refused") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  write(folder.path() / "run.json", R"({"data": {"kind": "task", "task": "copy"}, "train": {"steps": 1}})");
  CHECK(run_onestep({"train", (folder.path() / "run.json").string(), "--out", run, "--quiet"}).status == 0);
  const ProcessResult result = run_onestep({"eval", run, "--data", ONESTEP_SOURCE_DIR "/README.md"});
  CHECK(result.status == 2);
  CHECK(result.err == "onestep: " + run + ": was not trained on text, so --data cannot be evaluated\n");
}

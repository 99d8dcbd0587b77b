// Forged checkpoint manifests: state.json with a valid hash and one invalid value. state_file_test.cpp pins the sentences.
#include <doctest/doctest.h>

#include "base/hash.h"
#include "tests/train/hostile.h"
#include "train/checkpoint/state_file.h"

using namespace onestep;
using namespace onestep::testing;

namespace {

std::string good_text() {
  train::Checkpoint checkpoint;
  checkpoint.trainer.step = 3;
  checkpoint.trainer.sequences = 36;
  checkpoint.trainer.config = {{"seed", "7"}};
  checkpoint.trainer.data_hash = hash_of("data");
  checkpoint.trainer.generator = "mt19937";
  checkpoint.run.seconds = 0.5;
  checkpoint.run.best = checkpoint.run.best_due = train::BestEvaluation{2, 1.25};
  checkpoint.run.unfinished =
      train::StepMetrics{.step = 2, .loss = 2.5, .lr = 0.25, .grad_norm = 4.5, .tokens_per_second = 1000, .seconds = 0.125};
  return state_json(checkpoint, {{"model.safetensors", {8, hash_of("m")}}, {"optimizer.safetensors", {9, hash_of("o")}}});
}

/// The text with a valid hash.
std::string signed_text(const std::string& text) { return text + ",\n  \"xxh3_128\": \"" + hash_of(text) + "\"\n}\n"; }

std::string unsigned_text() {
  const std::string text = good_text();
  return text.substr(0, text.rfind(",\n  \"xxh3_128\""));
}

Hostile crafted(const std::string& from, const std::string& to, const std::string& message) {
  return {signed_text(replaced(unsigned_text(), from, to)), message};
}

void expect_refused(const std::vector<Hostile>& files) { testing::expect_refused(files, train::read_state_file); }

}  // namespace

TEST_CASE("hostile state: the unmodified file is accepted") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "state.json").string();
  write(path, signed_text(unsigned_text()));
  CHECK(refusal<IoError>([&] { train::read_state_file(path); }) == "");
}

TEST_CASE("hostile state: invalid counts") {
  std::vector<Hostile> cases;
  const std::vector<std::string> bad{"-1",
                                     "-9223372036854775808",
                                     "9223372036854775808",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "3.0",
                                     "1e3",
                                     "null",
                                     "true",
                                     "\"3\"",
                                     "[3]"};
  const std::vector<std::pair<std::string, std::string>> counts{
      {"\"step\": 3", "/step"}, {"\"sequences\": 36", "/data/sequences"}, {"\"bytes\": 8", "/files/model.safetensors/bytes"}};
  for (const auto& [member, pointer] : counts) {
    const std::string key = member.substr(0, member.find(' ') + 1);
    for (const std::string& value : bad) cases.push_back(crafted(member, key + value, ": " + pointer + ": "));
  }
  for (const std::string& value : bad) {
    cases.push_back(crafted("\"step\": 2,\n    \"val_loss\"", "\"step\": " + value + ",\n    \"val_loss\"", ": /best/step: "));
    cases.push_back(crafted("\"step\": 2,\n    \"loss\"", "\"step\": " + value + ",\n    \"loss\"", ": /unfinished/step: "));
  }
  expect_refused(cases);
}

TEST_CASE("hostile state: values of a wrong type") {
  std::vector<Hostile> cases;
  for (const char* value : {"null", "true", "\"1\"", "[1]", "{}"}) {
    for (const auto& [member, pointer] :
         std::vector<std::pair<std::string, std::string>>{{"\"seconds\": 0.5", "/seconds"},
                                                          {"\"val_loss\": 1.25", "/best/val_loss"},
                                                          {"\"loss\": 2.5", "/unfinished/loss"},
                                                          {"\"lr\": 0.25", "/unfinished/lr"},
                                                          {"\"grad_norm\": 4.5", "/unfinished/grad_norm"},
                                                          {"\"seconds\": 0.125", "/unfinished/seconds"}})
      cases.push_back(crafted(member, member.substr(0, member.find(' ') + 1) + value, ": " + pointer + ": "));
  }
  for (const char* value : {"null", "1", "true", "[]", "{}"}) {
    cases.push_back(crafted("\"generator\": \"mt19937\"", std::string("\"generator\": ") + value, ": /generator: "));
    cases.push_back(crafted("\"seed\": \"7\"", std::string("\"seed\": ") + value, ": /config/seed: "));
    cases.push_back(crafted('"' + hash_of("m") + '"', value, ": /files/model.safetensors/xxh3_128: "));
  }
  for (const char* value : {"1", "true", "\"x\"", "[]"}) {
    for (const char* key : {"config", "data", "best", "unfinished", "files"}) {  // what was there becomes one more key
      const std::string name = '"' + std::string(key) + "\": ";
      cases.push_back(crafted(name + "{", name + value + ", \"other\": {", ": /other: "));
    }
    cases.push_back({signed_text(R"({"format": "onestep checkpoint 2", "step": 1, "seconds": 0, "config": {}, "data": )" +
                                 std::string(value) + R"(, "generator": "", "best": null, "unfinished": null, "files": {})"),
                     ": /data: "});
    cases.push_back(
        {signed_text(
             R"({"format": "onestep checkpoint 2", "step": 1, "seconds": 0, "config": )" + std::string(value) +
             R"(, "data": {"sequences": 0, "xxh3_128": ""}, "generator": "", "best": null, "unfinished": null, "files": {})"),
         ": /config: "});
    cases.push_back(
        {signed_text(R"({"format": "onestep checkpoint 2", "step": 1, "seconds": 0, "config": {}, "data": {"sequences": 0,
                                 "xxh3_128": ""}, "generator": "", "best": null, "unfinished": null, "files": )" +
                     std::string(value)),
         ": /files: "});
  }
  for (const char* hash :
       {"", "0", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0", "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef0123456789abcdeg", "../../../../../../etc/passwd...."})
    cases.push_back(crafted(hash_of("m"), hash, ": /files/model.safetensors/xxh3_128: "));
  cases.push_back(crafted(hash_of("data"), "abc", ": /data/xxh3_128: "));
  expect_refused(cases);
}

TEST_CASE("hostile state: missing and unknown and duplicate keys") {
  std::vector<Hostile> cases;
  for (const char* key : {"step", "seconds", "config", "data", "generator", "best", "unfinished", "files"}) {
    const std::string name = '"' + std::string(key) + "\": ";
    cases.push_back(crafted("\n  " + name, "\n  \"other\": ", ": "));
    cases.push_back(crafted("\n  " + name, "\n  " + name + "0,\n  " + name, ": /" + std::string(key) + ": "));
  }
  for (const char* format :
       {"\"onestep checkpoint 1\"", "\"onestep checkpoint 3\"", "\"\"", "2", "null", "[\"onestep checkpoint 2\"]"})
    cases.push_back(crafted("\"onestep checkpoint 2\"", format, ": "));
  cases.insert(cases.end(),
               {crafted("\"sequences\"", "\"x\"", ": /data: "),
                crafted("\"sequences\": 36", "\"sequences\": 36, \"x\": 1", ": /data/x: "),
                crafted("\"val_loss\"", "\"x\"", ": /best: "), crafted("\"grad_norm\"", "\"x\"", ": /unfinished: "),
                crafted("\"bytes\": 8", "\"bytes\": 8, \"path\": \"/etc/passwd\"", ": /files/model.safetensors/path: "),
                crafted("\"bytes\": 8", "\"byte\": 8", ": /files/model.safetensors: "),
                crafted("\"model.safetensors\"", "\"../model.safetensors\"", ": /files/..~1model.safetensors: "),
                crafted("\"model.safetensors\"", "\"/etc/passwd\"", ": /files/~1etc~1passwd: "),
                crafted("\"model.safetensors\"", "\"model.safetensors\\u0000\"", ": /files/model.safetensors\\u0000: "),
                crafted("\"model.safetensors\"", "\"\"", ": /files/: "),
                crafted("\"model.safetensors\"", "\"optimizer.safetensors\"", ": /files/optimizer.safetensors: ")});
  expect_refused(cases);
}

TEST_CASE("hostile state: inconsistent numbers") {
  expect_refused({
      crafted("\"step\": 3", "\"step\": 1", ": /best/step: "),
      crafted("\"step\": 2,\n    \"val_loss\"", "\"step\": 4,\n    \"val_loss\"", ": /best/step: "),
      crafted("\"step\": 2,\n    \"loss\"", "\"step\": 1,\n    \"loss\"", ": /unfinished/step: is not the last step 2: got 1"),
      crafted("\"step\": 2,\n    \"loss\"", "\"step\": 3,\n    \"loss\"", ": /unfinished/step: "),
      crafted("\"seconds\": 0.5", "\"seconds\": -0.5", ": /seconds: "),
      crafted("\"seconds\": 0.5", "\"seconds\": -5e-324", ": /seconds: "),
  });
}

TEST_CASE("hostile state: text that is not a state") {
  std::vector<Hostile> cases;
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("}"), unsigned_text(), good_text() + "\n", good_text() + good_text(),
        replaced(good_text(), "\"step\": 3", "\"step\": 4"), std::string(good_text().size(), '\0'), signed_text("").substr(1)})
    cases.push_back({text, ": "});
  for (const std::string& text :
       {std::string("{\"a\": 1"), std::string("{\"format\": null"), std::string("{\"format\": \"safetensors\"")})
    cases.push_back({signed_text(text), ": "});
  cases.push_back({signed_text("{\"a\": " + std::string(60000, '[')), ": "});
  cases.push_back({signed_text("{\"a\": 1e999"), ":1:11: "});
  cases.push_back({signed_text("{\"a\": \"\xff\""), ":1:8: "});
  cases.push_back({signed_text(std::string("{\"a\": \"\0\"", 9)), ":1:8: "});
  cases.push_back({signed_text("{\"xxh3_128\": 1"), ": /xxh3_128: "});
  cases.push_back({std::string(100'000, ' '), ": "});
  expect_refused(cases);
}

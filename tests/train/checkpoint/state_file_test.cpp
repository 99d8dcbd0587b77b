// state.json: a round trip, and forged files with a valid hash, each refused with the pointer of its field.
#include "train/checkpoint/state_file.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.h"
#include "base/file_stamp.h"
#include "base/hash.h"
#include "tests/process.h"
#include "tests/support.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::TemporaryFolder;

namespace {

std::string good_text() {
  Checkpoint checkpoint;
  checkpoint.trainer.step = 3;
  checkpoint.trainer.sequences = 36;
  checkpoint.trainer.config = {{"seed", "7"}, {"model.d_model", "8"}};
  checkpoint.trainer.data_hash = hash_of("data");
  checkpoint.trainer.generator = "mt19937";
  checkpoint.run.seconds = 0.1;
  checkpoint.run.best = checkpoint.run.best_due = BestEvaluation{2, 1.25};
  return state_json(checkpoint, {{"model.safetensors", {8, hash_of("m")}}, {"optimizer.safetensors", {9, hash_of("o")}}});
}

/// With `from` replaced and the hash recomputed.
std::string crafted(const std::string& from, const std::string& to) {
  std::string text = good_text();
  const size_t end = text.rfind(",\n  \"xxh3_128\"");
  text.resize(end);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return text + ",\n  \"xxh3_128\": \"" + hash_of(text) + "\"\n}\n";
}

std::string refusal_of(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "state.json").string();
  testing::write(path, text);
  const std::string message = testing::refusal<IoError>([&] { read_state_file(path); });
  REQUIRE((message.empty() || message.starts_with(path)));
  return message.empty() ? message : message.substr(path.size());
}

}  // namespace

TEST_CASE("state file: what is written is read back") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "state.json").string();
  std::ofstream(path) << good_text();
  const StateFile state = read_state_file(path);
  CHECK(state.checkpoint.trainer.step == 3);
  CHECK(state.checkpoint.trainer.sequences == 36);
  CHECK(state.checkpoint.trainer.config == std::map<std::string, std::string>{{"seed", "7"}, {"model.d_model", "8"}});
  CHECK(state.checkpoint.trainer.data_hash == hash_of("data"));
  CHECK(state.checkpoint.trainer.generator == "mt19937");
  CHECK(state.checkpoint.run.seconds == 0.1);
  CHECK(state.checkpoint.run.best->val_loss == 1.25);
  CHECK_FALSE(state.checkpoint.run.unfinished.has_value());
  CHECK(state.files.at("optimizer.safetensors") == FileStamp{9, hash_of("o")});
}

TEST_CASE("state file: the best evaluation that was due is another one than the best or left out") {
  const auto read_back = [](const std::string& text) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "state.json").string();
    std::ofstream(path, std::ios::binary) << text;
    return read_state_file(path).checkpoint.run;
  };
  CHECK(good_text().find("best_due") == std::string::npos);
  CHECK(read_back(good_text()).best_due == BestEvaluation{2, 1.25});
  CHECK_FALSE(read_back(crafted("\"unfinished\"", "\"best_due\": null, \"unfinished\"")).best_due.has_value());
  const std::string other = crafted("\"unfinished\"", "\"best_due\": {\"step\": 1, \"val_loss\": 2}, \"unfinished\"");
  CHECK(read_back(other).best_due == BestEvaluation{1, 2});
  CHECK(read_back(other).best == BestEvaluation{2, 1.25});
}

TEST_CASE("state file: a crafted one is refused with the field and the rule") {
  REQUIRE(refusal_of(crafted("\"step\": 3", "\"step\": 3")) == "");
  const auto refused = [](const std::string& from, const std::string& to, const std::string& message) {
    CAPTURE(to);
    testing::expect_refusal(refusal_of(crafted(from, to)), message);
  };
  refused("checkpoint 2", "checkpoint 1", ": is not of the format \"onestep checkpoint 2\"");
  refused("\"step\": 3", "\"step\": -1", ": /step: must be a whole number from 0: got -1");
  refused("\"step\": 3", "\"step\": 3.0", ": /step: ");
  refused("\"step\": 3", "\"step\": 18446744073709551615", ": /step: ");
  refused("\"step\": 3", "\"step\": 1", ": /best/step: comes after the checkpoint's own step 1: got 2");
  refused("\"step\": 3", "\"steps\": 3", ": lacks \"step\"");
  refused("\"step\": 3", "\"step\": 3, \"more\": 1", ": /more: unknown key");
  refused("\"step\": 3", "\"step\": 3, \"step\": 3", ": /step: ");
  refused("\"seconds\": 0.1", "\"seconds\": -0.1", ": /seconds: must not be negative: got -0.1");
  refused("\"seconds\": 0.1", "\"seconds\": \"long\"", ": /seconds: must be a number: got \"long\"");
  refused("\"mt19937\"", "null", ": /generator: ");
  refused(hash_of("data"), "abc", ": /data/xxh3_128: must be 32 hexadecimal digits: got \"abc\"");
  refused("\"unfinished\"", "\"best_due\": {\"step\": 4, \"val_loss\": 1}, \"unfinished\"", ": /best_due/step: ");
  refused("\"best\": {", "\"best\": 1, \"other\": {", ": /other: ");
  refused("\"val_loss\": 1.25", "\"val_loss\": true", ": /best/val_loss: ");
  refused("\"unfinished\": null", "\"unfinished\": []", ": /unfinished: ");
  refused("\"model.safetensors\"", "\"../../model\"", ": /files/..~1..~1model: unknown file");
  refused("\"model.safetensors\"", "\"optimizer.safetensors\"", ": /files/optimizer.safetensors: ");
  refused("\"bytes\": 8", "\"bytes\": 1e3", ": /files/model.safetensors/bytes: ");
  refused("\"bytes\": 8,", "", ": /files/model.safetensors: ");
  refused("mt19937", std::string(70000, 'x'), ": ");
}

TEST_CASE("state file: other bytes than the hash was made of are refused") {
  const std::string text = good_text();
  CHECK(refusal_of(text + " ") == ": is damaged: its text does not have the hash at its end");
  for (const std::string& bytes :
       {std::string(), std::string("{}"), text.substr(1), text.substr(0, text.size() - 1), std::string(text.size(), '\0')})
    testing::expect_refusal(refusal_of(bytes), ": ");
}

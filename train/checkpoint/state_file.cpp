#include "train/checkpoint/state_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/hash.h"
#include "base/json_reader.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "train/checkpoint/frozen_file.h"

namespace onestep::train {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "onestep checkpoint 2";
constexpr int64_t kMaxBytes = 1 << 16;  // the generator's state takes 5 KB of it

/// The end of the file: the hash of all before it.
std::string trailer(std::string_view text) { return ",\n  \"xxh3_128\": \"" + hash_of(text) + "\"\n}\n"; }

/// One value of the file and where it is.
struct Entry {
  const json& value;
  const std::string& path;
  std::string pointer = {};

  Entry operator[](const std::string& key) const { return {value[key], path, json_pointer(pointer, key)}; }
  template <class... P>
  void require(bool ok, const P&... parts) const {
    ONESTEP_CHECK(IoError, ok, path, ": ", pointer, pointer.empty() ? "" : ": ", parts...);
  }
  /// Refuses all but an object of these keys.
  void check_keys(const std::vector<std::string>& keys) const {
    require(value.is_object(), "must be an object: got ", brief(value));
    for (const std::string& key : keys) require(value.contains(key), "lacks ", quote(key));
    for (const auto& [key, _] : value.items())
      (*this)[key].require(std::find(keys.begin(), keys.end(), key) != keys.end(), "unknown key");
  }
  int64_t count() const {
    require(value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX),
            "must be a whole number from 0: got ", brief(value));
    return value.get<int64_t>();
  }
  double number() const {
    require(value.is_number(), "must be a number: got ", brief(value));
    return value.get<double>();
  }
  std::string text() const {
    require(value.is_string(), "must be a string: got ", brief(value));
    return value.get<std::string>();
  }
  std::string hash() const {
    const std::string digits = text();
    require(digits.size() == 32 && digits.find_first_not_of("0123456789abcdef") == std::string::npos,
            "must be 32 hexadecimal digits: got ", brief(value));
    return digits;
  }
};

ordered_json state_json(const std::optional<BestEvaluation>& best) {
  if (!best) return nullptr;
  return {{"step", best->step}, {"val_loss", best->val_loss}};
}

std::optional<BestEvaluation> read_best(const Entry& entry, int64_t step) {
  if (entry.value.is_null()) return std::nullopt;
  entry.check_keys({"step", "val_loss"});
  const BestEvaluation best{entry["step"].count(), entry["val_loss"].number()};
  entry["step"].require(best.step <= step, "comes after the checkpoint's own step ", step, ": got ", best.step);
  return best;
}

ordered_json state_json(const std::optional<StepMetrics>& m) {
  if (!m) return nullptr;
  return {{"step", m->step},
          {"loss", m->loss},
          {"lr", m->lr},
          {"grad_norm", m->grad_norm},
          {"tokens_per_second", m->tokens_per_second},
          {"seconds", m->seconds}};
}

std::optional<StepMetrics> read_unfinished(const Entry& entry, int64_t step) {
  if (entry.value.is_null()) return std::nullopt;
  entry.check_keys({"step", "loss", "lr", "grad_norm", "tokens_per_second", "seconds"});
  const StepMetrics metrics{.step = entry["step"].count(),
                            .loss = entry["loss"].number(),
                            .lr = entry["lr"].number(),
                            .grad_norm = entry["grad_norm"].number(),
                            .tokens_per_second = entry["tokens_per_second"].number(),
                            .seconds = entry["seconds"].number()};
  entry["step"].require(metrics.step == step - 1, "is not the last step ", step - 1, ": got ", metrics.step);
  return metrics;
}

std::map<std::string, std::string> read_config(const Entry& entry) {
  entry.require(entry.value.is_object(), "must be an object: got ", brief(entry.value));
  std::map<std::string, std::string> values;
  for (const auto& [key, _] : entry.value.items()) values[key] = entry[key].text();
  return values;
}

FileStamps read_stamps(const Entry& entry) {
  entry.require(entry.value.is_object(), "must be an object: got ", brief(entry.value));
  FileStamps files;
  for (const auto& [name, _] : entry.value.items()) {
    const Entry file = entry[name];
    file.require(name == "model.safetensors" || name == "optimizer.safetensors" || name == kFrozenFile, "unknown file");
    file.check_keys({"bytes", "xxh3_128"});
    files[name] = {static_cast<uint64_t>(file["bytes"].count()), file["xxh3_128"].hash()};
  }
  entry.require(files.contains("model.safetensors"), "lacks \"model.safetensors\"");
  return files;
}

/// The text without its trailer, which must be right.
json parse_whole(const std::string& text, const std::string& path) {
  const size_t length = trailer("").size();
  const bool whole = text.size() > length && text.ends_with(trailer({text.data(), text.size() - length}));
  ONESTEP_CHECK(IoError, whole, path, ": is damaged: its text does not have the hash at its end");
  return parse_json<IoError>(text, path);
}

}  // namespace

std::string state_json(const Checkpoint& checkpoint, const FileStamps& files) {
  const TrainerState& trainer = checkpoint.trainer;
  ordered_json stamps = ordered_json::object();
  for (const auto& [name, stamp] : files) stamps[name] = {{"bytes", stamp.bytes}, {"xxh3_128", stamp.hash}};
  ordered_json state{{"format", kFormat},
                     {"step", trainer.step},
                     {"seconds", checkpoint.run.seconds},
                     {"config", trainer.config},
                     {"data", {{"sequences", trainer.sequences}, {"xxh3_128", trainer.data_hash}}},
                     {"generator", trainer.generator},
                     {"best", state_json(checkpoint.run.best)},
                     {"best_due", state_json(checkpoint.run.best_due)},
                     {"unfinished", state_json(checkpoint.run.unfinished)},
                     {"files", stamps}};
  if (checkpoint.run.best_due == checkpoint.run.best) state.erase("best_due");
  std::string text = state.dump(2);
  text.resize(text.size() - 2);  // "\n}" comes with the trailer
  return text + trailer(text);
}

StateFile read_state_file(const std::string& path) {
  const json root = parse_whole(read_file(path, kMaxBytes), path);
  const Entry state{root, path};
  state.require(root.is_object() && root.contains("format") && root["format"] == kFormat, "is not of the format ",
                quote(kFormat));
  std::vector<std::string> keys{"format",    "step", "seconds",    "config", "data",
                                "generator", "best", "unfinished", "files",  "xxh3_128"};
  const bool has_best_due = root.contains("best_due");
  if (has_best_due) keys.emplace_back("best_due");
  state.check_keys(keys);
  const Entry data = state["data"];
  data.check_keys({"sequences", "xxh3_128"});
  StateFile file;
  TrainerState& trainer = file.checkpoint.trainer;
  trainer.step = state["step"].count();
  trainer.config = read_config(state["config"]);
  trainer.sequences = data["sequences"].count();
  trainer.data_hash = data["xxh3_128"].text().empty() ? "" : data["xxh3_128"].hash();
  trainer.generator = state["generator"].text();
  file.checkpoint.run.seconds = state["seconds"].number();
  state["seconds"].require(file.checkpoint.run.seconds >= 0, "must not be negative: got ", file.checkpoint.run.seconds);
  file.checkpoint.run.best = read_best(state["best"], trainer.step);
  file.checkpoint.run.best_due = read_best(state[has_best_due ? "best_due" : "best"], trainer.step);
  file.checkpoint.run.unfinished = read_unfinished(state["unfinished"], trainer.step);
  file.files = read_stamps(state["files"]);
  return file;
}

}  // namespace onestep::train

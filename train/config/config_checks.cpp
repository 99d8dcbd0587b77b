// What a single key cannot tell: the checks between fields.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "train/config/config.h"
#include "train/config/config_fields.h"

namespace onestep::train {
namespace {

void check_model(const Config& config) {
  const ModelConfig& model = config.model;
  const int64_t head_dim = model.head_dim > 0 ? model.head_dim : model.d_model / model.num_heads;
  ONESTEP_CHECK(
      ConfigError,
      !holds(find_field("model.num_heads")->when, config) || model.head_dim > 0 || model.d_model % model.num_heads == 0,
      config.origin.at("/model/num_heads"), ": must divide d_model = ", model.d_model, ": got ", model.num_heads);
  if (!holds(find_field("model.num_kv_heads")->when, config)) return;
  ONESTEP_CHECK(ConfigError, model.num_heads % model.num_kv_heads == 0, config.origin.at("/model/num_kv_heads"),
                ": must divide num_heads = ", model.num_heads, ": got ", model.num_kv_heads);
  ONESTEP_CHECK(ConfigError, !model.rope || head_dim % 2 == 0, config.origin.at("/model/rope"),
                ": needs heads of even width: got ", model.head_dim > 0 ? "head_dim = " : "d_model / num_heads = ", head_dim);
  ONESTEP_CHECK(ConfigError,
                model.rope_scaling != RotaryScaling::Kind::llama3 || model.rope_low_freq_factor < model.rope_high_freq_factor,
                config.origin.at("/model/rope_high_freq_factor"),
                ": must be above rope_low_freq_factor = ", to_json(model.rope_low_freq_factor), ": got ",
                to_json(model.rope_high_freq_factor));
}

void check_no_data(const Config& config) {
  ONESTEP_CHECK(ConfigError, config.model.vocab_size > 0, config.origin.at("/model/vocab_size"),
                ": must be at least 1 where data.kind is none: got 0");
}

void check_tokens(const Config& config) {
  const DataConfig& data = config.data;
  const int64_t count = static_cast<int64_t>(data.tokens.size()), length = config.model.context_length;
  // There may be many tokens: the place is looked up for the wrong one alone.
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    if (data.tokens[i] < data.vocab_size) continue;
    fail<ConfigError>(config.origin.at("/data/tokens/" + std::to_string(i)), ": must be below vocab_size = ", data.vocab_size,
                      ": got ", data.tokens[i]);
  }
  const int64_t usable = training_tokens(count, data.val_fraction);
  ONESTEP_CHECK(ConfigError, usable > length, config.origin.at("/data/tokens"),
                ": too few for one window of context_length + 1 = ", length + 1, " tokens: got ", usable,
                usable < count ? " for training, the others are for validation" : "");
  for (size_t i = 0; i < data.window_starts.size(); ++i) {
    if (data.window_starts[i] < usable - length) continue;
    fail<ConfigError>(config.origin.at("/data/window_starts/" + std::to_string(i)), ": must be from 0 to ", usable - length - 1,
                      ", so that context_length + 1 = ", length + 1, " of the ", usable, " tokens",
                      usable < count ? " to train on" : "", " follow: got ", data.window_starts[i]);
  }
  const auto windows = static_cast<int64_t>(data.window_starts.size());
  ONESTEP_CHECK(ConfigError, windows == 0 || config.train.batch_size == windows, config.origin.at("/train/batch_size"),
                ": must be the number of data.window_starts = ", windows, ": got ", config.train.batch_size, " (leave it out)");
}

void check_text(const Config& config) {
  const DataConfig& data = config.data;
  std::vector<std::string> given;
  if (!data.path.empty()) given.emplace_back("path");
  if (!data.paths.empty()) given.emplace_back("paths");
  if (!data.text.empty()) given.emplace_back("text");
  ONESTEP_CHECK(ConfigError, !given.empty(), config.origin.at("/data"),
                ": needs exactly one of path, paths and text: got none (--set data.path=FILE)");
  const auto from_file = std::find_if(given.begin(), given.end(),
                                      [&](const std::string& key) { return !config.origin.sets.contains("/data/" + key); });
  ONESTEP_CHECK(ConfigError, given.size() == 1, config.origin.at("/data"), ": needs exactly one of path, paths and text: got ",
                join(given, " and "), " (take one out: --set data.", from_file == given.end() ? given.back() : *from_file,
                "=null)");
}

/// What kinds of examples need.
void check_examples(const Config& config) {
  const DataConfig& data = config.data;
  ONESTEP_CHECK(ConfigError, config.model.kind == ModelKind::gpt, config.origin.at("/model/kind"),
                ": must be gpt where data.kind is ", name_of(data.kind), ": got ", name_of(config.model.kind));
  ONESTEP_CHECK(ConfigError, data.path.empty() != data.paths.empty(), config.origin.at("/data"),
                ": needs exactly one of path and paths: got ", data.path.empty() ? "none (--set data.path=FILE)" : "both");
  ONESTEP_CHECK(ConfigError, data.val_path.empty() || data.val_fraction == 0, config.origin.at("/data/val_fraction"),
                ": must be 0 where val_path is given: got ", to_json(data.val_fraction), " (leave it out)");
  const std::set<std::string> labels(data.labels.begin(), data.labels.end());
  ONESTEP_CHECK(ConfigError, data.labels.empty() || (labels.size() == data.labels.size() && labels.size() > 1),
                config.origin.at("/data/labels"), ": must be at least 2 different ones");
  ONESTEP_CHECK(ConfigError, data.text_column != data.label_column, config.origin.at("/data/label_column"),
                ": must be another column than text_column: got ", quote(data.label_column));
}

void check_task(const Config& config) {
  const DataConfig& data = config.data;
  const int64_t window = data.task == Task::modular_addition ? 3 : 2 * data.length - 1;
  ONESTEP_CHECK(ConfigError, config.model.context_length >= window, config.origin.at("/model/context_length"),
                ": must be at least ", window, ", the window of task ", name_of(data.task), ": got ",
                config.model.context_length);
  ONESTEP_CHECK(ConfigError, data.val_fraction >= 0.001 && data.val_fraction <= 0.9, config.origin.at("/data/val_fraction"),
                ": must be from 0.001 to 0.9 for a task, which is evaluated on held-out sequences: got ",
                to_json(data.val_fraction));
  ONESTEP_CHECK(ConfigError, data.task == Task::modular_addition || data.vocab_size > 1, config.origin.at("/data/vocab_size"),
                ": must be at least 2 for a task: got ", data.vocab_size);
}

void check_train(const Config& config) {
  ONESTEP_CHECK(ConfigError, config.train.early_stop_patience == 0 || config.train.eval_every > 0,
                config.origin.at("/train/early_stop_patience"), ": needs eval_every above 0: got ",
                config.train.early_stop_patience);
  ONESTEP_CHECK(ConfigError, !config.train.recompute || config.model.kind == ModelKind::gpt,
                config.origin.at("/train/recompute"), ": needs model.kind gpt, whose blocks it is about: got ",
                name_of(config.model.kind));
}

void check_precision(const Config& config) {
  ONESTEP_CHECK(ConfigError, config.train.precision == Precision::float32 || config.train.dtype == DType::float32,
                config.origin.at("/train/precision"), ": ", name_of(config.train.precision),
                " needs train.dtype float32, which is what is rounded: got ", config.train.dtype);
}

void check_optimizer(const Config& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  ONESTEP_CHECK(
      ConfigError,
      !(optimizer.kind == OptimizerKind::sgd && optimizer.nesterov) || (optimizer.momentum > 0 && optimizer.dampening == 0),
      config.origin.at("/optimizer/nesterov"), ": needs momentum above 0 and dampening 0: got momentum ",
      to_json(optimizer.momentum), ", dampening ", to_json(optimizer.dampening));
  const optim::ScheduleConfig& schedule = config.schedule;
  if (!holds(find_field("schedule.decay_steps")->when, config)) return;
  ONESTEP_CHECK(ConfigError, schedule.warmup_steps <= schedule.decay_steps, config.origin.at("/schedule/warmup_steps"),
                ": must be at most decay_steps = ", schedule.decay_steps, ": got ", schedule.warmup_steps);
  ONESTEP_CHECK(ConfigError,
                schedule.kind != optim::ScheduleKind::wsd ||
                    (schedule.warmup_steps <= schedule.decay_start && schedule.decay_start <= schedule.decay_steps),
                config.origin.at("/schedule/decay_start"), ": must be from warmup_steps = ", schedule.warmup_steps,
                " to decay_steps = ", schedule.decay_steps, ": got ", schedule.decay_start);
  ONESTEP_CHECK(ConfigError, schedule.min_lr <= optimizer.lr, config.origin.at("/schedule/min_lr"),
                ": must be at most optimizer.lr = ", to_json(optimizer.lr), ": got ", to_json(schedule.min_lr));
}

}  // namespace

void check_between_fields(const Config& config) {
  check_model(config);
  if (config.data.kind == DataKind::none) check_no_data(config);
  if (config.data.kind == DataKind::tokens) check_tokens(config);
  if (config.data.kind == DataKind::text) check_text(config);
  if (config.data.kind == DataKind::task) check_task(config);
  if (has_examples(config.data.kind)) check_examples(config);
  check_optimizer(config);
  check_train(config);
  check_precision(config);
}

int64_t training_tokens(int64_t count, double val_fraction) {
  return static_cast<int64_t>(std::floor((1 - val_fraction) * static_cast<double>(count)));
}

}  // namespace onestep::train

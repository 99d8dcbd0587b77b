#pragma once
// A run is one JSON file. Plain structs hold it and its defaults; config_fields.cpp has the one table of keys from which
// reading, checking, --help, configs/schema.json and docs/config.md are made.
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attention/attention_kind.h"
#include "autograd/dtype.h"
#include "autograd/random/generator.h"
#include "autograd/rotary_scaling.h"
#include "base/enum_names.h"
#include "optim/schedule.h"
#include "train/text/tokenizer_kind.h"

namespace onestep::train {

using attention::AttentionKind;

enum class ModelKind : uint8_t { attention, gpt };
constexpr auto names(ModelKind /*all*/) { return std::to_array<std::string_view>({"attention", "gpt"}); }

enum class Activation : uint8_t { gelu_tanh, gelu, relu, silu, swiglu };
constexpr auto names(Activation /*all*/) {
  return std::to_array<std::string_view>({"gelu_tanh", "gelu", "relu", "silu", "swiglu"});
}

enum class NormKind : uint8_t { layer_norm, rms_norm };
constexpr auto names(NormKind /*all*/) { return std::to_array<std::string_view>({"layer_norm", "rms_norm"}); }

/// Which linear layers have a bias.
enum class Biases : uint8_t { automatic, none, qkv, all };
constexpr auto names(Biases /*all*/) { return std::to_array<std::string_view>({"auto", "none", "qkv", "all"}); }

enum class DataKind : uint8_t { tokens, text, task, instructions, classification, none };
constexpr auto names(DataKind /*all*/) {
  return std::to_array<std::string_view>({"tokens", "text", "task", "instructions", "classification", "none"});
}
/// Whether it consists of examples, each evaluated once.
constexpr bool has_examples(DataKind kind) { return kind == DataKind::instructions || kind == DataKind::classification; }
/// Whether people write it: a run of that kind has a tokenizer.
constexpr bool reads_text(DataKind kind) { return kind == DataKind::text || has_examples(kind); }

enum class Task : uint8_t { copy, reverse, sort, modular_addition };
constexpr auto names(Task /*all*/) { return std::to_array<std::string_view>({"copy", "reverse", "sort", "modular_addition"}); }

enum class OptimizerKind : uint8_t { sgd, adam, adamw, rmsprop, adagrad };
constexpr auto names(OptimizerKind /*all*/) {
  return std::to_array<std::string_view>({"sgd", "adam", "adamw", "rmsprop", "adagrad"});
}

/// Which parameters weight decay applies to.
enum class Decay : uint8_t { automatic, all, matrices };
constexpr auto names(Decay /*all*/) { return std::to_array<std::string_view>({"auto", "all", "matrices"}); }

enum class Reduce : uint8_t { exact, allreduce };
constexpr auto names(Reduce /*all*/) { return std::to_array<std::string_view>({"exact", "allreduce"}); }

/// In what products are computed (docs/config.md).
enum class Precision : uint8_t { float32, bf16, bf16_amx };
constexpr auto names(Precision /*all*/) { return std::to_array<std::string_view>({"float32", "bf16", "bf16_amx"}); }

/// Stands for a number that resolve() derives from others.
inline constexpr double kDerived = -std::numeric_limits<double>::infinity();

/// Low-rank adapters (Hu et al. 2022); rank 0: none.
struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;  ///< 0: rank
  double dropout = 0;
  std::vector<std::string> targets = {};  ///< empty: those of the model's kind
  bool operator==(const LoraConfig&) const = default;
};

/// The network: one attention layer between embeddings and a head, or a GPT.
struct ModelConfig {
  ModelKind kind = ModelKind::attention;
  AttentionKind attention = AttentionKind::multi_head;
  int64_t d_model = 64;
  int64_t num_heads = 4;  ///< 1 where the type of attention has no heads
  int64_t context_length = 32;
  double dropout = 0.0;
  bool qkv_bias = false;
  int64_t num_layers = 4;  ///< gpt, as all that follow
  int64_t d_ff = 0;        ///< 0: 4 d_model, with swiglu 8/3 d_model
  Activation activation = Activation::gelu_tanh;
  NormKind norm = NormKind::layer_norm;
  double norm_eps = 1e-5;
  bool bias = true;
  bool tie_weights = true;
  int64_t vocab_size = 0;    ///< both kinds; 0: as many as the data has
  int64_t num_kv_heads = 0;  ///< gpt and fused_qkv, as all that follow; 0: num_heads
  int64_t window = 0;
  bool rope = false;
  double rope_theta = 10000.0;
  int64_t head_dim = 0;  ///< gpt, as all that follow; 0: d_model / num_heads
  bool qk_norm = false;
  Biases attention_bias = Biases::automatic;  ///< automatic: as `bias` says
  Biases mlp_bias = Biases::automatic;
  RotaryScaling::Kind rope_scaling = RotaryScaling::Kind::none;
  double rope_factor = 1.0;                                        ///< linear and llama3
  double rope_low_freq_factor = 1.0, rope_high_freq_factor = 4.0;  ///< llama3, as the next one
  int64_t rope_original_context = 8192;
  RngDialect rng_dialect = RngDialect::torch;  ///< whose dropout masks
  std::vector<int64_t> eos_token_ids = {};     ///< both kinds: at which a generated text ends
  LoraConfig lora = {};
  bool operator==(const ModelConfig&) const = default;
};

/// What is learned: token ids in the file, a text, or sequences generated for a task.
struct DataConfig {
  DataKind kind = DataKind::none;
  Task task = Task::copy;
  std::vector<int64_t> tokens;         ///< kind tokens: the ids themselves
  int64_t vocab_size = 16;             ///< tokens, and the tasks on sequences: ids are 0 .. vocab_size - 1
  std::vector<int64_t> window_starts;  ///< tokens: one fixed batch; empty: random windows
  int64_t ignore_index = -100;         ///< tokens: the id of targets that do not count; -100: none
  std::string path;                    ///< text and the kinds after task: one file,
  std::vector<std::string> paths;      ///< or several, globs allowed,
  std::string text;                    ///< or, of text alone, the text itself
  std::string val_path;                ///< the kinds after task: what is evaluated; empty: val_fraction of the rest
  std::string chat_template;           ///< instructions; empty: that of the tokenizer
  std::string text_column = "text", label_column = "label";  ///< classification, as the next one
  std::vector<std::string> labels;                           ///< empty: those of the data, sorted
  TokenizerKind tokenizer = TokenizerKind::characters;
  std::string tokenizer_path;      ///< bpe: the folder of its vocabulary
  int64_t length = 8;              ///< copy, reverse, sort: symbols before they are repeated
  int64_t modulus = 97;            ///< modular_addition
  double val_fraction = kDerived;  ///< share kept from training: 0.1, for kind tokens 0
  bool operator==(const DataConfig&) const = default;
};

/// Names and defaults of torch.optim.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = kDerived;  ///< as eps and weight_decay: the default of the kind in torch.optim
  std::array<double, 2> betas{0.9, 0.999};
  double alpha = 0.99;
  double eps = kDerived;
  double weight_decay = kDerived;
  Decay decay = Decay::automatic;  ///< matrices for a gpt, else all
  bool amsgrad = false;
  double momentum = 0.0;
  double dampening = 0.0;
  bool nesterov = false;
  bool operator==(const OptimizerConfig&) const = default;
};

/// How long and how to train, and how often to look.
struct TrainConfig {
  int64_t steps = 1000;
  int64_t batch_size = 0;  ///< 0: 12, or the number of window_starts
  int64_t grad_accumulation = 1;
  double grad_clip = 0.0;        ///< largest norm of all gradients together; 0: no clipping
  DType dtype = DType::float32;  ///< or float64
  Precision precision = Precision::float32;
  std::string init_from;                 ///< a run; empty: random parameters
  int64_t early_stop_patience = 0;       ///< evaluations; 0: never
  bool recompute = false;                ///< blocks in the backward pass
  bool anomaly = true;                   ///< after divergence: find the op
  std::vector<std::string> freeze = {};  ///< patterns of names of parameters that are not trained
  int64_t eval_every = 0;                ///< steps; 0: at the end only
  int64_t eval_batches = 20;
  int64_t sample_every = 0;     ///< steps; 0: never
  int64_t histogram_every = 0;  ///< steps; 0: never
  int64_t log_every = 1;
  int64_t checkpoint_every = 0;  ///< steps; 0: at the end only
  int64_t keep_checkpoints = 2;
  bool tensorboard = false;
  bool operator==(const TrainConfig&) const = default;
};

/// How the ranks of a run work together (docs/distributed.md).
struct DistributedConfig {
  Reduce reduce = Reduce::exact;
  int64_t bucket_mb = 25;
  double timeout = 600;  ///< seconds
  bool operator==(const DistributedConfig&) const = default;
};

/// Where each value came from, for messages. No part of the run.
struct ConfigOrigin {
  std::string file = "config";              ///< or what stands for it
  std::map<std::string, std::string> sets;  ///< JSON pointer -> `--set a.b=value`
  std::set<std::string> given;              ///< `a.b` of the keys that are no defaults
  std::string run = {};                     ///< the folder of the run whose config this is; empty: none

  /// `configs/x.json: /model/d_model`, or `--set model.d_model=3: /model/d_model` where the command line gave it.
  std::string at(const std::string& pointer) const;
};

struct Config {
  int64_t seed = 123;
  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  optim::ScheduleConfig schedule;
  TrainConfig train;
  DistributedConfig distributed;
  ConfigOrigin origin;
};

/// Labels that the head of the model has; 0 for a head over tokens.
inline int64_t num_classes(const Config& config) {
  return config.data.kind == DataKind::classification ? static_cast<int64_t>(config.data.labels.size()) : 0;
}

/// The same run, wherever it was read from.
bool operator==(const Config& a, const Config& b);

/// Reads a config file of at most 1 MiB; `sets` are the arguments of --set (`a.b=value`), which win over the file. A value is
/// taken as JSON, or as a string where it is none; an object is merged key by key; null removes the key. Throws IoError for a
/// file that cannot be read, else ConfigError, both with one sentence that names file (or --set), JSON pointer, value and
/// remedy.
Config load_config(const std::string& path, const std::vector<std::string>& sets = {});

/// load_config on text; `source` stands for the file name in messages.
Config parse_config(const std::string& text, const std::string& source, const std::vector<std::string>& sets = {});

/// A config put together in C++ as load_config would have read it: what derives from other values is filled in, and every check
/// made. Throws ConfigError. Resolving a resolved config changes nothing.
Config resolve(Config config);

/// The config as JSON text with every default that applies written out, floats with the fewest digits that read back to the
/// same bits: parse_config(resolved_json(c)) == c.
std::string resolved_json(const Config& config);

/// Throws ConfigError naming the first key whose value differs between the config a run was started with and the one it is to
/// continue with, unless it is one that cannot change what was trained so far (steps, logging, evaluation, checkpoints).
void check_resumable(const Config& started, const Config& now);

/// The keys on which what a run has learned depends (all but those that may change when it continues) and their values as JSON,
/// long ones as their hash: what a checkpoint remembers of its config.
std::map<std::string, std::string> fixed_values(const Config& config);

/// Throws ConfigError naming the first key of the section (all sections for "") whose value is not that of fixed_values() when
/// the checkpoint was made: config.json was changed by hand.
void check_trained_with(const std::map<std::string, std::string>& values, const Config& config, const std::string& section);

/// floor((1 - val_fraction) count): how many of `count` tokens are for training; they come first.
int64_t training_tokens(int64_t count, double val_fraction);

/// JSON Schema (draft 2020-12) of the config file: configs/schema.json.
std::string schema_json();

/// The keys, a paragraph each, for `onestep help config`: all, or those of a section, or one of them. Throws ConfigError where
/// there is none of that name.
std::string config_help(const std::string& part = {});

/// The names of the keys, a paragraph a section in lines of up to 80 columns, for `onestep train --help`.
std::string config_keys();

/// The keys as Markdown tables: docs/config.md.
std::string config_markdown();

}  // namespace onestep::train

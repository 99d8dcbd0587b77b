// Configs that must be refused, and where each is wrong; bad_values_test.cpp has what every key says of every wrong value.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/train/config/config_refusal.h"

using namespace onestep::testing;

namespace {

const std::string kModelKeys =
    "(known here: kind, attention, d_model, num_heads, context_length, dropout, qkv_bias, vocab_size, num_layers, d_ff, "
    "activation, norm, "
    "norm_eps, bias, tie_weights, num_kv_heads, window, rope, rope_theta, head_dim, qk_norm, attention_bias, mlp_bias, "
    "rope_scaling, rope_factor, rope_low_freq_factor, rope_high_freq_factor, rope_original_context, eos_token_ids, "
    "rng_dialect, lora)";
// `text` of each is one section, beside a valid data section.
void expect_section_refused(const std::string& section, const std::vector<BadConfig>& configs) {
  const std::string beside = section == "data" ? "" : kCopyTask + ", ";
  for (const BadConfig& bad : configs) {
    CAPTURE(bad.text);
    expect_refusal(config_refusal("{" + beside + "\"" + section + "\": " + bad.text + "}"), "run.json" + bad.message);
  }
}

}  // namespace

TEST_CASE("bad configs: the unmodified config is accepted") {
  CHECK(config_refusal("{" + kCopyTask + "}") == "");
  CHECK(config_refusal("{" + kCopyTask + R"(, "model": {}, "optimizer": {}, "schedule": {}, "train": {}})") == "");
}

TEST_CASE("bad configs: objects and keys") {
  expect_refused({
      {"[]", ": "},
      {"3", ": "},
      {"null", ": "},
      {R"("configs/x.json")", ": "},
      {"{}", ": /data/kind: missing: must be tokens, text, task, instructions, classification or none"},
      {R"({"data": {"kind": "task", "task": "copy"}, "model": []})", ": /model: must be an object: got []"},
      {R"({"data": {"kind": "task", "task": "copy"}, "train": 5})", ": /train: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "optimizer": "adam"})", ": /optimizer: "},
      {R"({"data": null})", ": /data: "},
      {R"({"seed": 1, "seed": 2})", ": /seed: duplicate key"},
      {R"({"data": {"kind": "task", "task": "copy"}, "model": {"d_model": 8, "d_model": 8}})", ": /model/d_model: "},
      {R"({"model": {}, "model": {}})", ": /model: "},
      {R"({"//": "a", "//": "b"})", ": /~1~1: "},
      {R"({"data": {"kind": "classification", "path": "a.csv", "text_column": "1", "label_column": "1"}, "model": {"kind": "gpt"}})",
       R"(: /data/label_column: must be another column than text_column: got "1")"},
      {R"({"data": {"kind": "tokens", "tokens": [{"a": 1, "a": 2}]}})", ": /data/tokens/0/a: "},
  });
}

TEST_CASE("bad configs: model") {
  expect_section_refused(
      "model",
      {
          {R"({"num_head": 4})", ": /model/num_head: unknown key (did you mean num_heads?)"},
          {R"({"n_heads": 4})", ": /model/n_heads: "},
          {R"({"dmodel": 4})", ": /model/dmodel: "},
          {R"({"bias": true})", ": /model/bias: "},
          {R"({"": 1})", ": /model/: unknown key " + kModelKeys},
          {R"({"context length": 1})", ": /model/context length: "},
          {R"({"a/b~c": 1})", ": /model/a~1b~0c: "},
          {R"({"line\nbreak": 1})", ": /model/line\\nbreak: "},
          {"{\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": 1}",
           ": /model/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...: "},
          {R"({"d_model": "48"})", R"(: /model/d_model: must be a whole number from 1 to 65536: got "48")"},
          {R"({"d_model": 0})", ": /model/d_model: "},
          {R"({"d_model": -4})", ": /model/d_model: "},
          {R"({"d_model": 2.5})", ": /model/d_model: "},
          {R"({"d_model": 65537})", ": /model/d_model: "},
          {R"({"d_model": true})", ": /model/d_model: "},
          {R"({"d_model": [8]})", ": /model/d_model: "},
          {R"({"d_model": 18446744073709551615})", ": /model/d_model: "},
          {R"({"num_heads": 0})", ": /model/num_heads: "},
          {R"({"context_length": -1})", ": /model/context_length: "},
          {R"({"context_length": 1e30})", ": /model/context_length: "},
          {R"({"dropout": 1.5})", ": /model/dropout: "},
          {R"({"dropout": -0.1})", ": /model/dropout: "},
          {R"({"dropout": "0.1"})", ": /model/dropout: "},
          {R"({"qkv_bias": 1})", ": /model/qkv_bias: must be true or false: got 1"},
          {R"({"qkv_bias": "true"})", ": /model/qkv_bias: "},
          {R"({"kind": "gtp"})", R"(: /model/kind: must be attention or gpt: got "gtp" (did you mean gpt?))"},
          {R"({"kind": 3})", ": /model/kind: "},
          {R"({"attention": "multi_heads"})", ": /model/attention: "},
          {R"({"attention": "flash"})", ": /model/attention: "},
          {R"({"attention": "Causal"})", ": /model/attention: "},
          {R"({"rng_dialect": "torch_mkl"})", ": /model/rng_dialect: "},
          {R"({"attention": "self_v1", "num_heads": 4})", ": /model/num_heads: "},
          {R"({"attention": "simplified", "qkv_bias": true})", ": /model/qkv_bias: "},
          {R"({"attention": "self_v1", "qkv_bias": true})", ": /model/qkv_bias: "},
          {R"({"attention": "self_v2", "dropout": 0.1})", ": /model/dropout: "},
          {R"({"attention": "causal", "num_heads": 2})", ": /model/num_heads: "},
          {R"({"kind": "gpt", "attention": "causal"})", ": /model/attention: "},
          {R"({"kind": "gpt", "qkv_bias": true})", ": /model/qkv_bias: "},
          {R"({"kind": "gpt", "num_layers": 0})", ": /model/num_layers: "},
          {R"({"kind": "gpt", "activation": "gelu_tan"})", ": /model/activation: "},
          {R"({"kind": "gpt", "d_model": 48, "num_heads": 5})", ": /model/num_heads: must divide d_model = 48: got 5"},
          {R"({"d_model": 48, "num_heads": 5})", ": /model/num_heads: "},
          {R"({"attention": "multi_head_wrapper", "d_model": 3, "num_heads": 2})", ": /model/num_heads: "},
          {R"({"d_model": 2})", ": /model/num_heads: "},
          {R"({"kind": "gpt", "num_kv_heads": 3})", ": /model/num_kv_heads: must divide num_heads = 4: got 3"},
          {R"({"attention": "fused_qkv", "d_model": 12, "rope": true})",
           ": /model/rope: needs heads of even width: got d_model / num_heads = 3"},
          {R"({"window": 3})", ": /model/window: "},
          {R"({"kind": "gpt", "rope_theta": 0.5})", ": /model/rope_theta: "},
          {R"({"kind": "gpt", "head_dim": 3, "rope": true})", ": /model/rope: "},
          {R"({"kind": "gpt", "head_dim": -2})", ": /model/head_dim: "},
          {R"({"head_dim": 8})", ": /model/head_dim: "},
          {R"({"kind": "gpt", "mlp_bias": "qkv"})", ": /model/mlp_bias: "},
          {R"({"kind": "gpt", "attention_bias": true})", ": /model/attention_bias: "},
          {R"({"kind": "gpt", "rope_factor": 2})", ": /model/rope_factor: "},
          {R"({"kind": "gpt", "rope_scaling": "linear", "rope_factor": 0.5})", ": /model/rope_factor: "},
          {R"({"kind": "gpt", "rope_scaling": "linear", "rope_low_freq_factor": 1})", ": /model/rope_low_freq_factor: "},
          {R"({"kind": "gpt", "rope_scaling": "llama3", "rope_low_freq_factor": 4})",
           ": /model/rope_high_freq_factor: must be above rope_low_freq_factor = 4.0: got 4.0"},
          {R"({"context_length": 14})", ": /model/context_length: must be at least 15, the window of task copy: got 14"},
      });
}

TEST_CASE("bad configs: optimizer") {
  expect_section_refused(
      "optimizer",
      {
          {R"({"learning_rate": 0.1})", ": /optimizer/learning_rate: "},
          {R"({"beta": [0.9, 0.99]})", ": /optimizer/beta: "},
          {R"({"warmup_steps": 5})", ": /optimizer/warmup_steps: "},
          {R"({"kind": "adm"})", ": /optimizer/kind: "},
          {R"({"lr": -1e-3})", ": /optimizer/lr: must be a number of at least 0: got -0.001"},
          {R"({"lr": "1e-3"})", ": /optimizer/lr: "},
          {R"({"lr": null})", ": /optimizer/lr: "},
          {R"({"eps": -1})", ": /optimizer/eps: "},
          {R"({"weight_decay": -0.01})", ": /optimizer/weight_decay: "},
          {R"({"decay": "none"})", ": /optimizer/decay: "},
          {R"({"betas": [0.9]})", ": /optimizer/betas: must be a list of two numbers from 0 to below 1: got [0.9]"},
          {R"({"betas": 0.9})", ": /optimizer/betas: "},
          {R"({"betas": [0.9, 1.0]})", ": /optimizer/betas/1: "},
          {R"({"betas": [-0.1, 0.9]})", ": /optimizer/betas/0: "},
          {R"({"betas": [0.9, "x"]})", ": /optimizer/betas/1: "},
          {R"({"betas": {"0": 0.9}})", ": /optimizer/betas: "},
          {R"({"kind": "sgd", "betas": [0.9, 0.99]})", ": /optimizer/betas: "},
          {R"({"kind": "sgd", "eps": 1e-8})", ": /optimizer/eps: "},
          {R"({"momentum": 0.9})", ": /optimizer/momentum: "},
          {R"({"kind": "adagrad", "amsgrad": true})", ": /optimizer/amsgrad: "},
          {R"({"kind": "adam", "alpha": 0.9})", ": /optimizer/alpha: "},
          {R"({"kind": "sgd", "nesterov": true})",
           ": /optimizer/nesterov: needs momentum above 0 and dampening 0: got momentum 0.0, dampening 0.0"},
          {R"({"kind": "sgd", "nesterov": true, "momentum": 0.9, "dampening": 0.5})", ": /optimizer/nesterov: "},
      });
}

TEST_CASE("bad configs: schedule") {
  expect_section_refused("schedule", {
                                         {R"({"min_lrr": 0.1})", ": /schedule/min_lrr: "},
                                         {R"({"kind": "cosin"})", ": /schedule/kind: "},
                                         {R"({"kind": "cosine", "decay_steps": 0})", ": /schedule/decay_steps: "},
                                         {R"({"warmup_steps": -1})", ": /schedule/warmup_steps: "},
                                         {R"({"kind": "cosine", "warmup_steps": 1.5})", ": /schedule/warmup_steps: "},
                                         {R"({"kind": "constant", "min_lr": 1e-4})", ": /schedule/min_lr: "},
                                         {R"({"decay_steps": 10})", ": /schedule/decay_steps: "},
                                         {R"({"kind": "linear", "warmup_steps": 20, "decay_steps": 10})",
                                          ": /schedule/warmup_steps: must be at most decay_steps = 10: got 20"},
                                         {R"({"kind": "wsd", "warmup_steps": 5, "decay_steps": 10, "decay_start": 11})",
                                          ": /schedule/decay_start: must be from warmup_steps = 5 to decay_steps = 10: got 11"},
                                         {R"({"kind": "step", "min_lr": 0})", ": /schedule/min_lr: "},
                                         {R"({"kind": "step", "step_size": 0})", ": /schedule/step_size: "},
                                         {R"({"kind": "cosine", "min_lr": 0.1})",
                                          ": /schedule/min_lr: must be at most optimizer.lr = 0.001: got 0.1"},
                                     });
}

TEST_CASE("bad configs: train") {
  expect_section_refused("train", {
                                      {R"({"lr": 0.1})", ": /train/lr: "},
                                      {R"({"batch": 8})", ": /train/batch: "},
                                      {R"({"step": 8})", ": /train/step: "},
                                      {R"({"steps": -1})", ": /train/steps: "},
                                      {R"({"steps": 0})", ": /train/steps: "},
                                      {R"({"steps": 1e13})", ": /train/steps: "},
                                      {R"({"steps": "many"})", ": /train/steps: "},
                                      {R"({"batch_size": 0})", ": /train/batch_size: "},
                                      {R"({"grad_accumulation": 0})", ": /train/grad_accumulation: "},
                                      {R"({"grad_clip": -1})", ": /train/grad_clip: "},
                                      {R"({"dtype": "float16"})", ": /train/dtype: "},
                                      {R"({"precision": "float16"})", ": /train/precision: "},
                                      {R"({"precision": "bf16", "dtype": "float64"})", ": /train/precision: "},
                                      {R"({"precision": "bf16_amx", "dtype": "float64"})", ": /train/precision: "},
                                      {R"({"log_every": 0})", ": /train/log_every: "},
                                      {R"({"sample_every": -1})", ": /train/sample_every: "},
                                      {R"({"histogram_every": -1})", ": /train/histogram_every: "},
                                      {R"({"eval_every": -1})", ": /train/eval_every: "},
                                      {R"({"eval_batches": 0})", ": /train/eval_batches: "},
                                      {R"({"checkpoint_every": 0.5})", ": /train/checkpoint_every: "},
                                      {R"({"keep_checkpoints": 0})", ": /train/keep_checkpoints: "},
                                  });
}

TEST_CASE("bad configs: data") {
  expect_section_refused(
      "data",
      {
          {R"({"kind": "task", "task": "copy", "file": "x"})", ": /data/file: "},
          {R"({"kind": "txt"})", ": /data/kind: "},
          {R"({"kind": ""})", ": /data/kind: "},
          {R"({"kind": "tokens", "tokens": []})", ": /data/tokens: must be a list of whole numbers, not empty: got []"},
          {R"({"kind": "tokens", "tokens": "0 1 2"})", ": /data/tokens: "},
          {R"({"kind": "tokens", "tokens": [0, 1.5]})", ": /data/tokens/1: "},
          {R"({"kind": "tokens", "tokens": [0, -1]})", ": /data/tokens/1: "},
          {R"({"kind": "tokens", "tokens": [0, "a"]})", ": /data/tokens/1: "},
          {R"({"kind": "tokens", "tokens": [0, 16777216]})", ": /data/tokens/1: "},
          {R"({"kind": "text", "path": ""})", R"(: /data/path: must be a string that is not empty: got "")"},
          {R"({"kind": "text", "path": ["a", "b"]})", ": /data/path: "},
          {R"({"kind": "text", "paths": "docs/*.md"})",
           R"(: /data/paths: must be a list of strings, not empty: got "docs/*.md")"},
          {R"({"kind": "text", "paths": []})", ": /data/paths: "},
          {R"({"kind": "text", "paths": ["a", ""]})", ": /data/paths/1: "},
          {R"({"kind": "text", "path": "a", "tokenizer": "chars"})", ": /data/tokenizer: "},
          {R"({"kind": "text", "path": "a", "val_fraction": 1})", ": /data/val_fraction: "},
          {R"({"kind": "text", "path": "a", "val_fraction": -0.1})", ": /data/val_fraction: "},
          {R"({"kind": "task", "task": "copi"})", ": /data/task: "},
          {R"({"kind": "task", "task": "copy", "length": 0})", ": /data/length: "},
          {R"({"kind": "task", "task": "modular_addition", "modulus": 1})", ": /data/modulus: "},
          {R"({"kind": "task", "task": "copy", "vocab_size": 0})", ": /data/vocab_size: "},
          {"{}", ": /data/kind: "},
          {R"({"task": "copy"})", ": /data/kind: "},
          {R"({"kind": "task"})", ": /data/task: "},
          {R"({"kind": "tokens"})", ": /data/tokens: "},
          {R"({"kind": "tokens", "tokens": [0, 1]})", ": /data/vocab_size: "},
          {R"({"kind": "text"})", ": /data: needs exactly one of path, paths and text: got none (--set data.path=FILE)"},
          {R"({"kind": "tokens", "path": "a"})", ": /data/tokens: "},
          {R"({"kind": "text", "tokens": [1]})", ": /data/tokens: "},
          {R"({"kind": "text", "path": "a", "vocab_size": 5})", ": /data/vocab_size: "},
          {R"({"kind": "text", "path": "a", "window_starts": [0]})", ": /data/window_starts: "},
          {R"({"kind": "task", "task": "copy", "modulus": 7})", ": /data/modulus: "},
          {R"({"kind": "task", "task": "modular_addition", "length": 7})", ": /data/length: "},
          {R"({"kind": "task", "task": "modular_addition", "vocab_size": 7})", ": /data/vocab_size: "},
          {R"({"kind": "text", "path": "a", "text": "b"})", ": /data: "},
          {R"({"kind": "text", "path": "a", "paths": ["c"], "text": "b"})", ": /data: "},
          {R"({"kind": "task", "task": "copy", "tokenizer": "char"})", ": /data/tokenizer: "},
          {R"({"kind": "task", "task": "copy", "length": 100})", ": /model/context_length: "},
          {R"({"kind": "task", "task": "copy", "val_fraction": 0})",
           ": /data/val_fraction: must be from 0.001 to 0.9 for a task, which is evaluated on held-out sequences: got 0.0"},
          {R"({"kind": "task", "task": "sort", "vocab_size": 1})", ": /data/vocab_size: must be at least 2 for a task: got 1"},
      });
}

TEST_CASE("bad configs: top level and keys that must fit together") {
  expect_refused({
      {R"({"data": {"kind": "task", "task": "copy"}, "modle": {}})", ": /modle: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "lr": 0.1})", ": /lr: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "epochs": 3})", ": /epochs: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "Seed": 3})", ": /Seed: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": "7"})", ": /seed: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 1.5})", ": /seed: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": null})", ": /seed: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 9223372036854775808})", ": /seed: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 9007199254740993.0})", ": /seed: "},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 1e300})", ": /seed: "},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": []}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/window_starts: "},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [-1]}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/window_starts/0: "},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": 0}, \"model\": "
       "{\"context_length\": 4}}",
       ": /data/window_starts: "},
      {"{}", ": /data/kind: "},
      {R"({"data": {"kind": "task", "task": "modular_addition"}, "model": {"context_length": 2}})",
       ": /model/context_length: "},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 7, 2, 0, 4], \"vocab_size\": 5}, \"model\": {\"context_length\": "
       "4}}",
       ": /data/tokens/2: must be below vocab_size = 5: got 7"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5}, \"model\": {\"context_length\": "
       "6}}",
       ": /data/tokens: too few for one window of context_length + 1 = 7 tokens: got 6"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"val_fraction\": 0.5}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/tokens: "},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [0, 2]}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/window_starts/1: "},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [0, 2], "
       "\"val_fraction\": 0.3}, \"model\": {\"context_length\": 2}}",
       ": /data/window_starts/1: must be from 0 to 1, so that context_length + 1 = 3 of the 4 tokens to train on follow: got "
       "2"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [0, 1]}, "
       "\"model\": {\"context_length\": 4}, \"train\": {\"batch_size\": 3}}",
       ": /train/batch_size: must be the number of data.window_starts = 2: got 3 (leave it out)"},
  });
}

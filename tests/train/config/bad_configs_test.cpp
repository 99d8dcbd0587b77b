// Configs that must be refused, each with its whole message.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/train/config/config_refusal.h"

using namespace onestep::testing;

namespace {

const std::string kModelKeys =
    "(known here: kind, attention, d_model, num_heads, context_length, dropout, qkv_bias, vocab_size, num_layers, d_ff, "
    "activation, norm, "
    "norm_eps, bias, tie_weights, num_kv_heads, window, rope, rope_theta, rng_dialect)";
// `text` of each is one section, beside data that is in order.
void expect_section_refused(const std::string& section, const std::vector<BadConfig>& configs) {
  for (const BadConfig& bad : configs) {
    CAPTURE(bad.text);
    const std::string beside = section == "data" ? "" : kCopyTask + ", ";
    CHECK(config_refusal("{" + beside + "\"" + section + "\": " + bad.text + "}") == "run.json" + bad.message);
  }
}

}  // namespace

TEST_CASE("bad configs: the frame of these tests is a good config") {
  CHECK(config_refusal("{" + kCopyTask + "}") == "");
  CHECK(config_refusal("{" + kCopyTask + R"(, "model": {}, "optimizer": {}, "schedule": {}, "train": {}})") == "");
}

TEST_CASE("bad configs: objects and keys") {
  expect_refused({
      {"[]", ": must be an object: got []"},
      {"3", ": must be an object: got 3"},
      {"null", ": must be an object: got null"},
      {R"("configs/x.json")", R"(: must be an object: got "configs/x.json")"},
      {"{}", ": /data/kind: missing: must be tokens, text, task or none"},
      {R"({"data": {"kind": "task", "task": "copy"}, "model": []})", ": /model: must be an object: got []"},
      {R"({"data": {"kind": "task", "task": "copy"}, "train": 5})", ": /train: must be an object: got 5"},
      {R"({"data": {"kind": "task", "task": "copy"}, "optimizer": "adam"})", R"(: /optimizer: must be an object: got "adam")"},
      {R"({"data": null})", ": /data: must be an object: got null"},
      {R"({"seed": 1, "seed": 2})", ": /seed: duplicate key"},
      {R"({"data": {"kind": "task", "task": "copy"}, "model": {"d_model": 8, "d_model": 8}})",
       ": /model/d_model: duplicate key"},
      {R"({"model": {}, "model": {}})", ": /model: duplicate key"},
      {R"({"//": "a", "//": "b"})", ": /~1~1: duplicate key"},
      {R"({"data": {"kind": "tokens", "tokens": [{"a": 1, "a": 2}]}})", ": /data/tokens/0/a: duplicate key"},
  });
}

TEST_CASE("bad configs: model") {
  expect_section_refused(
      "model",
      {
          {R"({"num_head": 4})", ": /model/num_head: unknown key (did you mean num_heads?)"},
          {R"({"n_heads": 4})", ": /model/n_heads: unknown key (did you mean num_heads?)"},
          {R"({"dmodel": 4})", ": /model/dmodel: unknown key (did you mean d_model?)"},
          {R"({"bias": true})", ": /model/bias: does not apply to model.kind = attention (only to model.kind = gpt)"},
          {R"({"": 1})", ": /model/: unknown key " + kModelKeys},
          {R"({"context length": 1})", ": /model/context length: unknown key (did you mean context_length?)"},
          {R"({"a/b~c": 1})", ": /model/a~1b~0c: unknown key " + kModelKeys},
          {R"({"line\nbreak": 1})", ": /model/line\\nbreak: unknown key " + kModelKeys},
          {"{\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": 1}",
           ": /model/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...: unknown key " + kModelKeys},
          {R"({"d_model": "48"})", R"(: /model/d_model: must be a whole number from 1 to 65536: got "48")"},
          {R"({"d_model": 0})", ": /model/d_model: must be a whole number from 1 to 65536: got 0"},
          {R"({"d_model": -4})", ": /model/d_model: must be a whole number from 1 to 65536: got -4"},
          {R"({"d_model": 2.5})", ": /model/d_model: must be a whole number from 1 to 65536: got 2.5"},
          {R"({"d_model": 65537})", ": /model/d_model: must be a whole number from 1 to 65536: got 65537"},
          {R"({"d_model": true})", ": /model/d_model: must be a whole number from 1 to 65536: got true"},
          {R"({"d_model": [8]})", ": /model/d_model: must be a whole number from 1 to 65536: got [8]"},
          {R"({"d_model": 18446744073709551615})",
           ": /model/d_model: must be a whole number from 1 to 65536: got 18446744073709551615"},
          {R"({"num_heads": 0})", ": /model/num_heads: must be a whole number from 1 to 65536: got 0"},
          {R"({"context_length": -1})", ": /model/context_length: must be a whole number from 1 to 1048576: got -1"},
          {R"({"context_length": 1e30})", ": /model/context_length: must be a whole number from 1 to 1048576: got 1e+30"},
          {R"({"dropout": 1.5})", ": /model/dropout: must be a number from 0 to 1: got 1.5"},
          {R"({"dropout": -0.1})", ": /model/dropout: must be a number from 0 to 1: got -0.1"},
          {R"({"dropout": "0.1"})", R"(: /model/dropout: must be a number from 0 to 1: got "0.1")"},
          {R"({"qkv_bias": 1})", ": /model/qkv_bias: must be true or false: got 1"},
          {R"({"qkv_bias": "true"})", R"(: /model/qkv_bias: must be true or false: got "true")"},
          {R"({"kind": "gtp"})", R"(: /model/kind: must be attention or gpt: got "gtp" (did you mean gpt?))"},
          {R"({"kind": 3})", ": /model/kind: must be attention or gpt: got 3"},
          {R"({"attention": "multi_heads"})",
           ": /model/attention: must be simplified, self_v1, self_v2, causal, multi_head_wrapper, multi_head, "
           "einsum or fused_qkv: got "
           "\"multi_heads\" (did you mean multi_head?)"},
          {R"({"attention": "flash"})",
           ": /model/attention: must be simplified, self_v1, self_v2, causal, multi_head_wrapper, multi_head, "
           "einsum or fused_qkv: got \"flash\""},
          {R"({"attention": "Causal"})",
           ": /model/attention: must be simplified, self_v1, self_v2, causal, multi_head_wrapper, multi_head, "
           "einsum or fused_qkv: got \"Causal\" "
           "(did you mean causal?)"},
          {R"({"rng_dialect": "torch_mkl"})",
           R"(: /model/rng_dialect: must be torch or torch-mkl: got "torch_mkl" (did you mean torch-mkl?))"},
          {R"({"attention": "self_v1", "num_heads": 4})",
           ": /model/num_heads: does not apply to model.attention = self_v1 and model.kind = attention (only to "
           "model.attention = "
           "multi_head_wrapper, multi_head, einsum or fused_qkv; or model.kind = gpt)"},
          {R"({"attention": "simplified", "qkv_bias": true})",
           ": /model/qkv_bias: does not apply to model.attention = simplified (only to model.attention = self_v2, causal, "
           "multi_head_wrapper, multi_head, "
           "einsum or fused_qkv)"},
          {R"({"attention": "self_v1", "qkv_bias": true})",
           ": /model/qkv_bias: does not apply to model.attention = self_v1 (only to model.attention = self_v2, causal, "
           "multi_head_wrapper, multi_head, "
           "einsum or fused_qkv)"},
          {R"({"attention": "self_v2", "dropout": 0.1})",
           ": /model/dropout: does not apply to model.attention = self_v2 and model.kind = attention (only to model.attention "
           "= causal, "
           "multi_head_wrapper, multi_head, einsum or fused_qkv; or model.kind = gpt)"},
          {R"({"attention": "causal", "num_heads": 2})",
           ": /model/num_heads: does not apply to model.attention = causal and model.kind = attention (only to model.attention "
           "= "
           "multi_head_wrapper, multi_head, einsum or fused_qkv; or model.kind = gpt)"},
          {R"({"kind": "gpt", "attention": "causal"})",
           ": /model/attention: does not apply to model.kind = gpt (only to model.kind = attention)"},
          {R"({"kind": "gpt", "qkv_bias": true})",
           ": /model/qkv_bias: does not apply to model.kind = gpt (only to model.attention = self_v2, causal, "
           "multi_head_wrapper, multi_head, einsum or fused_qkv)"},
          {R"({"kind": "gpt", "num_layers": 0})", ": /model/num_layers: must be a whole number from 1 to 1000: got 0"},
          {R"({"kind": "gpt", "activation": "gelu_tan"})",
           ": /model/activation: must be gelu_tanh, gelu, relu, silu or swiglu: got \"gelu_tan\" (did you mean gelu_tanh?)"},
          {R"({"kind": "gpt", "d_model": 48, "num_heads": 5})", ": /model/num_heads: must divide d_model = 48: got 5"},
          {R"({"d_model": 48, "num_heads": 5})", ": /model/num_heads: must divide d_model = 48: got 5"},
          {R"({"attention": "multi_head_wrapper", "d_model": 3, "num_heads": 2})",
           ": /model/num_heads: must divide d_model = 3: got 2"},
          {R"({"d_model": 2})", ": /model/num_heads: must divide d_model = 2: got 4"},
          {R"({"kind": "gpt", "num_kv_heads": 3})", ": /model/num_kv_heads: must divide num_heads = 4: got 3"},
          {R"({"attention": "fused_qkv", "d_model": 12, "rope": true})",
           ": /model/rope: needs heads of even width: got d_model / num_heads = 3"},
          {R"({"window": 3})",
           ": /model/window: does not apply to model.attention = multi_head and model.kind = attention (only to "
           "model.attention = "
           "fused_qkv; or model.kind = gpt)"},
          {R"({"kind": "gpt", "rope_theta": 0.5})", ": /model/rope_theta: must be a number from 1 to 1000000000000: got 0.5"},
          {R"({"context_length": 14})", ": /model/context_length: must be at least 15, the window of task copy: got 14"},
      });
}

TEST_CASE("bad configs: optimizer") {
  expect_section_refused(
      "optimizer",
      {
          {R"({"learning_rate": 0.1})",
           ": /optimizer/learning_rate: unknown key (known here: kind, lr, betas, alpha, eps, weight_decay, decay, amsgrad, "
           "momentum, dampening, nesterov)"},
          {R"({"beta": [0.9, 0.99]})", ": /optimizer/beta: unknown key (did you mean betas?)"},
          {R"({"warmup_steps": 5})", ": /optimizer/warmup_steps: unknown key (did you mean /schedule/warmup_steps?)"},
          {R"({"kind": "adm"})",
           R"(: /optimizer/kind: must be sgd, adam, adamw, rmsprop or adagrad: got "adm" (did you mean adam?))"},
          {R"({"lr": -1e-3})", ": /optimizer/lr: must be a number of at least 0: got -0.001"},
          {R"({"lr": "1e-3"})", R"(: /optimizer/lr: must be a number of at least 0: got "1e-3")"},
          {R"({"lr": null})", ": /optimizer/lr: must be a number of at least 0: got null"},
          {R"({"eps": -1})", ": /optimizer/eps: must be a number of at least 0: got -1"},
          {R"({"weight_decay": -0.01})", ": /optimizer/weight_decay: must be a number of at least 0: got -0.01"},
          {R"({"decay": "none"})", R"(: /optimizer/decay: must be auto, all or matrices: got "none")"},
          {R"({"betas": [0.9]})", ": /optimizer/betas: must be a list of two numbers from 0 to below 1: got [0.9]"},
          {R"({"betas": 0.9})", ": /optimizer/betas: must be a list of two numbers from 0 to below 1: got 0.9"},
          {R"({"betas": [0.9, 1.0]})", ": /optimizer/betas/1: must be a number from 0 to below 1: got 1.0"},
          {R"({"betas": [-0.1, 0.9]})", ": /optimizer/betas/0: must be a number from 0 to below 1: got -0.1"},
          {R"({"betas": [0.9, "x"]})", R"(: /optimizer/betas/1: must be a number from 0 to below 1: got "x")"},
          {R"({"betas": {"0": 0.9}})", R"(: /optimizer/betas: must be a list of two numbers from 0 to below 1: got {"0":0.9})"},
          {R"({"kind": "sgd", "betas": [0.9, 0.99]})",
           ": /optimizer/betas: does not apply to optimizer.kind = sgd (only to optimizer.kind = adam or adamw)"},
          {R"({"kind": "sgd", "eps": 1e-8})",
           ": /optimizer/eps: does not apply to optimizer.kind = sgd (only to optimizer.kind = adam, adamw, rmsprop or "
           "adagrad)"},
          {R"({"momentum": 0.9})",
           ": /optimizer/momentum: does not apply to optimizer.kind = adamw (only to optimizer.kind = sgd)"},
          {R"({"kind": "adagrad", "amsgrad": true})",
           ": /optimizer/amsgrad: does not apply to optimizer.kind = adagrad (only to optimizer.kind = adam or adamw)"},
          {R"({"kind": "adam", "alpha": 0.9})",
           ": /optimizer/alpha: does not apply to optimizer.kind = adam (only to optimizer.kind = rmsprop)"},
          {R"({"kind": "sgd", "nesterov": true})",
           ": /optimizer/nesterov: needs momentum above 0 and dampening 0: got momentum 0.0, dampening 0.0"},
          {R"({"kind": "sgd", "nesterov": true, "momentum": 0.9, "dampening": 0.5})",
           ": /optimizer/nesterov: needs momentum above 0 and dampening 0: got momentum 0.9, dampening 0.5"},
      });
}

TEST_CASE("bad configs: schedule") {
  expect_section_refused(
      "schedule",
      {
          {R"({"min_lrr": 0.1})", ": /schedule/min_lrr: unknown key (did you mean min_lr?)"},
          {R"({"kind": "cosin"})",
           R"(: /schedule/kind: must be constant, linear, cosine, wsd or step: got "cosin" (did you mean cosine?))"},
          {R"({"kind": "cosine", "decay_steps": 0})",
           ": /schedule/decay_steps: must be a whole number from 1 to 1000000000000: got 0"},
          {R"({"warmup_steps": -1})", ": /schedule/warmup_steps: must be a whole number from 0 to 1000000000000: got -1"},
          {R"({"kind": "cosine", "warmup_steps": 1.5})",
           ": /schedule/warmup_steps: must be a whole number from 0 to 1000000000000: got 1.5"},
          {R"({"kind": "constant", "min_lr": 1e-4})",
           ": /schedule/min_lr: does not apply to schedule.kind = constant (only to schedule.kind = linear, cosine or wsd)"},
          {R"({"decay_steps": 10})",
           ": /schedule/decay_steps: does not apply to schedule.kind = constant (only to schedule.kind = linear, cosine or "
           "wsd)"},
          {R"({"kind": "linear", "warmup_steps": 20, "decay_steps": 10})",
           ": /schedule/warmup_steps: must be at most decay_steps = 10: got 20"},
          {R"({"kind": "wsd", "warmup_steps": 5, "decay_steps": 10, "decay_start": 11})",
           ": /schedule/decay_start: must be from warmup_steps = 5 to decay_steps = 10: got 11"},
          {R"({"kind": "step", "min_lr": 0})",
           ": /schedule/min_lr: does not apply to schedule.kind = step (only to schedule.kind = linear, cosine or wsd)"},
          {R"({"kind": "step", "step_size": 0})",
           ": /schedule/step_size: must be a whole number from 1 to 1000000000000: got 0"},
          {R"({"kind": "cosine", "min_lr": 0.1})", ": /schedule/min_lr: must be at most optimizer.lr = 0.001: got 0.1"},
      });
}

TEST_CASE("bad configs: train") {
  expect_section_refused(
      "train",
      {
          {R"({"lr": 0.1})", ": /train/lr: unknown key (did you mean /optimizer/lr?)"},
          {R"({"batch": 8})", ": /train/batch: unknown key (did you mean batch_size?)"},
          {R"({"step": 8})", ": /train/step: unknown key (did you mean steps?)"},
          {R"({"steps": -1})", ": /train/steps: must be a whole number from 1 to 1000000000000: got -1"},
          {R"({"steps": 0})", ": /train/steps: must be a whole number from 1 to 1000000000000: got 0"},
          {R"({"steps": 1e13})", ": /train/steps: must be a whole number from 1 to 1000000000000: got 10000000000000.0"},
          {R"({"steps": "many"})", R"(: /train/steps: must be a whole number from 1 to 1000000000000: got "many")"},
          {R"({"batch_size": 0})", ": /train/batch_size: must be a whole number from 1 to 1048576: got 0"},
          {R"({"grad_accumulation": 0})", ": /train/grad_accumulation: must be a whole number from 1 to 1048576: got 0"},
          {R"({"grad_clip": -1})", ": /train/grad_clip: must be a number of at least 0: got -1"},
          {R"({"dtype": "float16"})", R"(: /train/dtype: must be float32 or float64: got "float16" (did you mean float32?))"},
          {R"({"log_every": 0})", ": /train/log_every: must be a whole number from 1 to 1000000000000: got 0"},
          {R"({"eval_every": -1})", ": /train/eval_every: must be a whole number from 0 to 1000000000000: got -1"},
          {R"({"eval_batches": 0})", ": /train/eval_batches: must be a whole number from 1 to 1048576: got 0"},
          {R"({"checkpoint_every": 0.5})",
           ": /train/checkpoint_every: must be a whole number from 0 to 1000000000000: got 0.5"},
          {R"({"keep_checkpoints": 0})", ": /train/keep_checkpoints: must be a whole number from 1 to 1048576: got 0"},
      });
}

TEST_CASE("bad configs: data") {
  expect_section_refused(
      "data",
      {
          {R"({"kind": "task", "task": "copy", "file": "x"})",
           ": /data/file: unknown key (known here: kind, task, tokens, vocab_size, window_starts, ignore_index, path, paths, "
           "text, "
           "tokenizer, tokenizer_path, length, modulus, val_fraction)"},
          {R"({"kind": "txt"})", R"(: /data/kind: must be tokens, text, task or none: got "txt" (did you mean text?))"},
          {R"({"kind": ""})", R"(: /data/kind: must be tokens, text, task or none: got "")"},
          {R"({"kind": "tokens", "tokens": []})", ": /data/tokens: must be a list of whole numbers, not empty: got []"},
          {R"({"kind": "tokens", "tokens": "0 1 2"})",
           R"(: /data/tokens: must be a list of whole numbers, not empty: got "0 1 2")"},
          {R"({"kind": "tokens", "tokens": [0, 1.5]})", ": /data/tokens/1: must be a whole number from 0 to 16777215: got 1.5"},
          {R"({"kind": "tokens", "tokens": [0, -1]})", ": /data/tokens/1: must be a whole number from 0 to 16777215: got -1"},
          {R"({"kind": "tokens", "tokens": [0, "a"]})",
           R"(: /data/tokens/1: must be a whole number from 0 to 16777215: got "a")"},
          {R"({"kind": "tokens", "tokens": [0, 16777216]})",
           ": /data/tokens/1: must be a whole number from 0 to 16777215: got 16777216"},
          {R"({"kind": "text", "path": ""})", R"(: /data/path: must be a string that is not empty: got "")"},
          {R"({"kind": "text", "path": ["a", "b"]})", R"(: /data/path: must be a string that is not empty: got ["a","b"])"},
          {R"({"kind": "text", "paths": "docs/*.md"})",
           R"(: /data/paths: must be a list of strings, not empty: got "docs/*.md")"},
          {R"({"kind": "text", "paths": []})", ": /data/paths: must be a list of strings, not empty: got []"},
          {R"({"kind": "text", "paths": ["a", ""]})", R"(: /data/paths/1: must be a string that is not empty: got "")"},
          {R"({"kind": "text", "path": "a", "tokenizer": "chars"})",
           R"(: /data/tokenizer: must be char, byte, word or bpe: got "chars" (did you mean char?))"},
          {R"({"kind": "text", "path": "a", "val_fraction": 1})",
           ": /data/val_fraction: must be a number from 0 to below 1: got 1"},
          {R"({"kind": "text", "path": "a", "val_fraction": -0.1})",
           ": /data/val_fraction: must be a number from 0 to below 1: got -0.1"},
          {R"({"kind": "task", "task": "copi"})",
           R"(: /data/task: must be copy, reverse, sort or modular_addition: got "copi" (did you mean copy?))"},
          {R"({"kind": "task", "task": "copy", "length": 0})",
           ": /data/length: must be a whole number from 1 to 524288: got 0"},
          {R"({"kind": "task", "task": "modular_addition", "modulus": 1})",
           ": /data/modulus: must be a whole number from 2 to 65536: got 1"},
          {R"({"kind": "task", "task": "copy", "vocab_size": 0})",
           ": /data/vocab_size: must be a whole number from 1 to 16777216: got 0"},
          {"{}", ": /data/kind: missing: must be tokens, text, task or none"},
          {R"({"task": "copy"})", ": /data/kind: missing: must be tokens, text, task or none"},
          {R"({"kind": "task"})",
           ": /data/task: missing: must be copy, reverse, sort or modular_addition (needed for data.kind = task)"},
          {R"({"kind": "tokens"})",
           ": /data/tokens: missing: must be a list of whole numbers, not empty (needed for data.kind = tokens)"},
          {R"({"kind": "tokens", "tokens": [0, 1]})",
           ": /data/vocab_size: missing: must be a whole number from 1 to 16777216 (needed for data.kind = tokens)"},
          {R"({"kind": "text"})", ": /data: needs exactly one of path, paths and text: got none (--set data.path=FILE)"},
          {R"({"kind": "tokens", "path": "a"})",
           ": /data/tokens: missing: must be a list of whole numbers, not empty (needed for data.kind = tokens)"},
          {R"({"kind": "text", "tokens": [1]})",
           ": /data/tokens: does not apply to data.kind = text (only to data.kind = tokens)"},
          {R"({"kind": "text", "path": "a", "vocab_size": 5})",
           ": /data/vocab_size: does not apply to data.kind = text (only to data.kind = tokens; or data.task = copy, reverse "
           "or sort)"},
          {R"({"kind": "text", "path": "a", "window_starts": [0]})",
           ": /data/window_starts: does not apply to data.kind = text (only to data.kind = tokens)"},
          {R"({"kind": "task", "task": "copy", "modulus": 7})",
           ": /data/modulus: does not apply to data.task = copy (only to data.task = modular_addition)"},
          {R"({"kind": "task", "task": "modular_addition", "length": 7})",
           ": /data/length: does not apply to data.task = modular_addition (only to data.task = copy, reverse or sort)"},
          {R"({"kind": "task", "task": "modular_addition", "vocab_size": 7})",
           ": /data/vocab_size: does not apply to data.kind = task and data.task = modular_addition (only to data.kind = "
           "tokens; or data.task = copy, reverse or sort)"},
          {R"({"kind": "text", "path": "a", "text": "b"})",
           ": /data: needs exactly one of path, paths and text: got path and text (take one out: --set data.path=null)"},
          {R"({"kind": "text", "path": "a", "paths": ["c"], "text": "b"})",
           ": /data: needs exactly one of path, paths and text: got path and paths and text (take one out: --set "
           "data.path=null)"},
          {R"({"kind": "task", "task": "copy", "tokenizer": "char"})",
           ": /data/tokenizer: does not apply to data.kind = task (only to data.kind = text)"},
          {R"({"kind": "task", "task": "copy", "length": 100})",
           ": /model/context_length: must be at least 199, the window of task copy: got 32"},
          {R"({"kind": "task", "task": "copy", "val_fraction": 0})",
           ": /data/val_fraction: must be from 0.001 to 0.9 for a task, which is evaluated on held-out sequences: got 0.0"},
          {R"({"kind": "task", "task": "sort", "vocab_size": 1})", ": /data/vocab_size: must be at least 2 for a task: got 1"},
      });
}

TEST_CASE("bad configs: top level and keys that must fit together") {
  expect_refused({
      {R"({"data": {"kind": "task", "task": "copy"}, "modle": {}})", ": /modle: unknown key (did you mean model?)"},
      {R"({"data": {"kind": "task", "task": "copy"}, "lr": 0.1})", ": /lr: unknown key (did you mean /optimizer/lr?)"},
      {R"({"data": {"kind": "task", "task": "copy"}, "epochs": 3})",
       ": /epochs: unknown key (known here: seed, model, data, optimizer, schedule, train, distributed)"},
      {R"({"data": {"kind": "task", "task": "copy"}, "Seed": 3})", ": /Seed: unknown key (did you mean seed?)"},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": "7"})",
       R"(: /seed: must be a whole number from -2^63 to 2^63 - 1: got "7")"},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 1.5})",
       ": /seed: must be a whole number from -2^63 to 2^63 - 1: got 1.5"},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": null})",
       ": /seed: must be a whole number from -2^63 to 2^63 - 1: got null"},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 9223372036854775808})",
       ": /seed: must be a whole number from -2^63 to 2^63 - 1: got 9223372036854775808"},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 9007199254740993.0})",
       ": /seed: must be a whole number from -2^63 to 2^63 - 1: got 9.007199254740992e+15"},
      {R"({"data": {"kind": "task", "task": "copy"}, "seed": 1e300})",
       ": /seed: must be a whole number from -2^63 to 2^63 - 1: got 1e+300"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": []}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/window_starts: must be a list of whole numbers, not empty: got []"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [-1]}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/window_starts/0: must be a whole number of at least 0: got -1"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": 0}, \"model\": "
       "{\"context_length\": 4}}",
       ": /data/window_starts: must be a list of whole numbers, not empty: got 0"},
      {"{}", ": /data/kind: missing: must be tokens, text, task or none"},
      {R"({"data": {"kind": "task", "task": "modular_addition"}, "model": {"context_length": 2}})",
       ": /model/context_length: must be at least 3, the window of task modular_addition: got 2"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 7, 2, 0, 4], \"vocab_size\": 5}, \"model\": {\"context_length\": "
       "4}}",
       ": /data/tokens/2: must be below vocab_size = 5: got 7"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5}, \"model\": {\"context_length\": "
       "6}}",
       ": /data/tokens: too few for one window of context_length + 1 = 7 tokens: got 6"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"val_fraction\": 0.5}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/tokens: too few for one window of context_length + 1 = 5 tokens: got 3 for training, the others are for "
       "validation"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [0, 2]}, "
       "\"model\": {\"context_length\": 4}}",
       ": /data/window_starts/1: must be from 0 to 1, so that context_length + 1 = 5 of the 6 tokens follow: got 2"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [0, 2], "
       "\"val_fraction\": 0.3}, \"model\": {\"context_length\": 2}}",
       ": /data/window_starts/1: must be from 0 to 1, so that context_length + 1 = 3 of the 4 tokens to train on follow: got "
       "2"},
      {"{\"data\": {\"kind\": \"tokens\", \"tokens\": [0, 3, 1, 2, 0, 4], \"vocab_size\": 5, \"window_starts\": [0, 1]}, "
       "\"model\": {\"context_length\": 4}, \"train\": {\"batch_size\": 3}}",
       ": /train/batch_size: must be the number of data.window_starts = 2: got 3 (leave it out)"},
  });
}

#pragma once
// What `onestep bench` times: workloads that other frameworks run, too. Each returns one JSON object with the keys that the
// scripts for those frameworks print.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace onestep::bench {

/// A GPT of nanoGPT's shape.
struct GptShape {
  int64_t layers = 4, heads = 4, embd = 128, ctx = 64, vocab = 65;
  bool bias = false;
};

/// One training step of the trainer (batch, forward, backward, gradient norm, AdamW) on random tokens; with `lora` of adapters
/// of that rank on queries, keys and values.
struct StepWork {
  GptShape model;
  int64_t batch = 12, steps = 50;
  std::string gelu = "erf";           ///< erf, tanh
  std::string precision = "float32";  ///< float32, bf16
  int64_t lora = 0;
  bool profile = false;  ///< Whether the result has the time of each op of a step.
};
nlohmann::ordered_json bench_step(const StepWork& work, double seconds);

/// Causal multi-head self-attention with fused QKV and biases: forward, or forward and backward to input and parameters.
struct AttentionWork {
  int64_t B = 12, T = 64, C = 128, H = 4;
  bool backward = true;
  std::string precision = "float32";  ///< float32, or bf16: under autocast.
};
nlohmann::ordered_json bench_attention(const AttentionWork& work, double seconds);

/// c = op(a) op(b), `batch` times: NN, NT (b stored [n, k]) or TN (a stored [k, m]).
struct MatmulWork {
  int64_t m = 512, n = 512, k = 512, batch = 1;
  std::string op = "NN";
  std::string precision = "float32";  ///< float32, or bf16: all three matrices are bfloat16.
};
nlohmann::ordered_json bench_matmul(const MatmulWork& work, double seconds);

/// conv2d with bias of `batch` square images: forward, or forward and backward to weight, bias and, unless it is the first
/// layer of a network, the images.
struct ConvWork {
  int64_t batch = 32, in = 16, out = 16, size = 32, kernel = 3, stride = 1, padding = 1;
  bool first = false, backward = true;
};
nlohmann::ordered_json bench_conv(const ConvWork& work, double seconds);

/// Small graphs, where a framework's overhead counts: mlp (a step of a 2-16-16-1 tanh MLP on 32 points), mha (forward and
/// backward of attention as the book has it), scalarops (100 recorded scalar ops and their gradients), addchain (100 additions
/// of 4 elements), backward (a chain of a million ops).
nlohmann::ordered_json bench_small(const std::string& which, double seconds);

/// One op on [2048, 1024], its backward pass included or not.
struct OpWork {
  std::string op = "add";  ///< One of op_names().
  bool backward = true;
};
std::vector<std::string> op_names();
nlohmann::ordered_json bench_op(const OpWork& work, double seconds);

/// Greedy generation with a cache, of `batch` sequences at once.
struct GenerateWork {
  GptShape model{.layers = 6, .heads = 6, .embd = 384, .ctx = 256, .vocab = 65, .bias = true};
  int64_t prompt = 1, tokens = 128, batch = 1;
  std::string weights = "float32";  ///< float32, bf16, int8
};
nlohmann::ordered_json bench_generate(const GenerateWork& work, double seconds);

/// The limits of this machine: `gflops` of fused multiply-adds on registers with the instruction set in use, and `gb_per_s`
/// read from memory, by all threads.
nlohmann::ordered_json bench_limits(double seconds);

}  // namespace onestep::bench

#pragma once
// What the exercises write: one file each in this folder, with a gap to fill in. ./onestep exercise lists them.
//
// B = texts, T = tokens, H = heads, d = features.
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/ops.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace exercises {

using namespace onestep;

/// 1: the context of the token `query`: softmax(inputs q) inputs, [T, d] -> [d].
Tensor context_of(const Tensor& inputs, int64_t query);

/// 2: exp(x_i) / sum_j exp(x_j) along the last dim of [..., T], also for large scores.
Tensor stable_softmax(const Tensor& scores);

/// 3: softmax(Q K^T / sqrt(d_k)) V with Q = x W_query and so on: [T, d_in], [d_in, d_k] each -> [T, d_k].
Tensor self_attention(const Tensor& x, const Tensor& W_query, const Tensor& W_key, const Tensor& W_value);

/// 4: the attention weights of scores [..., T, T] where token i attends only to the tokens 0 .. i.
Tensor causal_weights(const Tensor& scores, int64_t d_k);

/// 5: in training, 0 with probability p, else x / (1 - p); x itself in evaluation.
Tensor drop(const Tensor& x, double p, bool training, Generator& generator);

/// 6: [B, T, d] -> [B, H, T, d / H], and back.
Tensor split_heads(const Tensor& x, int64_t num_heads);
Tensor merge_heads(const Tensor& x);

/// 7: softmax along the last dim with a backward rule of its own.
Tensor recorded_softmax(const Tensor& x);

/// 8: (x - mean) / sqrt(var + eps) * weight + bias over the last dim: x [N, d], weight and bias [d] -> [N, d].
Tensor recorded_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);

/// 9: some rows of inputs [n, d_in] and their targets [n, d_out].
struct MicroBatch {
  Tensor x, target;
};
/// One optimizer step on all micro-batches together, though only one at a time is computed. Returns the mean squared error
/// over all their rows.
double accumulated_step(const nn::Layer& model, const std::vector<MicroBatch>& micro_batches, optim::Optimizer& optimizer);

/// 10: the parameters of multi-head attention: five tensors as nn::Linear stores them.
struct MultiHeadWeights {
  Tensor query, key, value;  ///< [d_out, d_in], no bias
  Tensor out, out_bias;      ///< [d_out, d_out], [d_out]
};
/// Causal attention in `num_heads` heads: [B, T, d_in] -> [B, T, d_out].
Tensor multi_head_attention(const Tensor& x, const MultiHeadWeights& weights, int64_t num_heads);

}  // namespace exercises

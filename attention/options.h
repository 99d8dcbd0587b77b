#pragma once
#include <cstdint>

#include "autograd/rotary_scaling.h"

namespace onestep::attention {

/// What the attention types are built from. A type without heads, dropout or query/key/value bias takes only 1, 0 and false;
/// the options after them belong to fused_qkv (CausalSelfAttention) alone.
struct Options {
  int64_t d_in = 0;
  int64_t d_out = 0;           ///< Width of the result, also of multi_head_wrapper, whose heads get d_out / num_heads each.
  int64_t context_length = 0;  ///< Of the causal types; the others take any number of tokens.
  int64_t num_heads = 1;       ///< Of the multi-head types; the others have one head.
  double dropout = 0.0;        ///< On the attention weights.
  bool qkv_bias = false;       ///< Whether the query, key and value projections have a bias.
  bool out_bias = true;        ///< Whether the output projection has a bias.
  int64_t num_kv_heads = 0;    ///< Heads of keys and values, each shared by num_heads / num_kv_heads heads; 0 = num_heads.
  int64_t window = 0;          ///< A token attends to itself and the window - 1 tokens before it; 0 = all before it.
  bool rope = false;           ///< Whether queries and keys are rotated by their position (onestep::rotary_embedding).
  double rope_theta = 10000.0;
  RotaryScaling rope_scaling = {};
  int64_t head_dim = 0;    ///< Features of a head; 0 = d_out / num_heads.
  bool qk_norm = false;    ///< Whether queries and keys are normalised by an RMSNorm over each head, before they are rotated.
  double norm_eps = 1e-6;  ///< Of these norms.
};

}  // namespace onestep::attention

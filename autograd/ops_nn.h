#pragma once
// The functions that neural networks are made of: softmax, normalisation, attention (torch.nn.functional). Losses: ops_loss.h.
#include <optional>

#include "autograd/random/generator.h"
#include "autograd/rotary_scaling.h"
#include "autograd/tensor.h"

namespace onestep {

// ---- softmax family (ops/softmax.cpp) ------------------------------------------------------------------------------------

/// exp(x_i - max) / sum_j exp(x_j - max) along `dim`; a slice that is all -inf is NaN, as in PyTorch.
Tensor softmax(const Tensor& x, int64_t dim);
Tensor softmax(const Tensor& x, int64_t dim, DType dtype);  ///< Of x as `dtype`.
/// x_i - logsumexp(x) along `dim`.
Tensor log_softmax(const Tensor& x, int64_t dim);
Tensor log_softmax(const Tensor& x, int64_t dim, DType dtype);  ///< Of x as `dtype`.
/// softmax(-x) along `dim`.
Tensor softmin(const Tensor& x, int64_t dim);
/// log(sum(exp(x))) over `dims`, without overflow; -inf over nothing or where all is -inf; of integers default_dtype().
Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim = false);

// ---- layers as functions -------------------------------------------------------------------------------------------------

/// Zeroes each element with probability p and scales the others by 1 / (1 - p); identity when not training or p = 0
/// (Srivastava et al. 2014; torch.nn.functional.dropout). Draws from `generator`, in its dialect, in memory order.
/// ops/dropout.cpp
Tensor dropout(const Tensor& x, double p, bool training = true, Generator& generator = default_generator());
/// Rows of weight [V, d] by int64 index [...] -> [..., d]; row `padding_idx` (negative from the end) gets no gradient.
/// ops/embedding.cpp (torch.nn.functional.embedding). Throws ShapeError on an index outside the vocabulary.
Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx = {});

enum class BagMode { sum, mean, max };
struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  Tensor offsets = {};             ///< Where the bags of an index [N] start, ascending from 0: int64 [B].
  Tensor per_sample_weights = {};  ///< Of the index's shape and the weight's dtype, with BagMode::sum: factors of the rows.
  std::optional<int64_t> padding_idx = {};  ///< An index that does not count: a row's, or -1.
};
/// The sum, mean or largest values of rows of weight [V, d] for each bag of an index, a row of [B, N] or a part of [N] -> [B,
/// d]; 0 for an empty bag. The rows are never all in memory; of max NaN is the largest, and the first of equals gets the
/// gradient. ops/embedding_bag.cpp (torch.nn.functional.embedding_bag). Throws IndexError on an index outside the vocabulary.
Tensor embedding_bag(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& options = {});

/// The indices in images [N, *sizes] of whole places that lie near those to sample: for each dim as many places [N, P] of one
/// floating dtype, K combinations of which the last dim's change fastest: int64 [N, P, K]; -1 outside, and of NaN that of 0.
/// ops/sampling.cpp (part of torch.nn.functional.grid_sample). Throws ShapeError.
Tensor pixel_indices(TensorList near, const Shape& sizes);

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dims `normalized_shape`, biased variance; weight and bias may be
/// undefined (Ba et al. 2016; torch.nn.functional.layer_norm). ops/layer_norm.cpp
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

/// All steps of an LSTM from the input's part of its gates i, f, g, o [T, B, 4 H], the states before [B, H], weight [4 H, H]
/// and bias [4 H] or undefined; `reverse` reads from the last token. [T + 1, B, H]: h of every token, then the last c. With the
/// sums s of a token and W h + bias: c' = sigmoid(s_f) c + sigmoid(s_i) tanh(s_g), h' = sigmoid(s_o) tanh(c') (Hochreiter and
/// Schmidhuber 1997; a layer of torch.nn.LSTM). Throws ShapeError unless T > 0. ops/lstm.cpp
Tensor lstm(const Tensor& input_gates, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias = {},
            bool reverse = false);

// ---- attention (ops/attention.cpp) ---------------------------------------------------------------------------------------

struct AttentionOptions {
  Tensor mask = {};                  ///< Broadcast to [..., T, S], not together with is_causal: bool, true = may attend; or of
                                     ///< the query's dtype, added to the scores (-inf = may not attend).
  bool is_causal = false;            ///< Query i attends to keys 0..i (aligned top left, as in PyTorch).
  int64_t query_offset = 0;          ///< With is_causal: query i is at position query_offset + i, after remembered keys.
  int64_t window = 0;                ///< With is_causal: only the last `window` keys up to its own position; 0 = all of them.
  bool enable_gqa = false;           ///< Groups of H / H_kv neighbouring heads of q [..., H, T, d] share a head of k and v
                                     ///< [..., H_kv, S, d] (Ainslie et al. 2023).
  std::optional<double> scale = {};  ///< Default 1 / sqrt(d).
  double dropout_p = 0.0;            ///< On the attention weights; draws from `generator`.
  Generator* generator = nullptr;    ///< Default: default_generator().
};
/// softmax(q k^T * scale + mask) v: q [..., T, d], k [..., S, d], v [..., S, e] -> [..., T, e]. A fully masked row gives 0 and
/// gradient 0. The weights [T, S] are never all in memory (Vaswani et al. 2017; Dao et al. 2022;
/// torch.nn.functional.scaled_dot_product_attention).
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});
/// scaled_dot_product_attention of heads that lie side by side, as one projection makes them, and its result likewise:
/// [..., T, (H + 2 H_kv) d] -> [..., T, H d]; groups of H / H_kv heads of the query share one of key and value. The bits are
/// those of splitting, attending and merging; the gradient is written as one tensor.
Tensor packed_attention(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, const AttentionOptions& options = {});
/// scaled_dot_product_attention of the last T tokens of B texts of different lengths: q [B, H, T, d], with the keys [1, H_kv,
/// S_b, d] and values [1, H_kv, S_b, e] of all S_b >= T tokens of text b -> [B, H, T, e]. Causal, with the `window` of
/// AttentionOptions; not recorded. The bits are those of each text alone. Throws ShapeError unless all fit
/// (flash_attn_with_kvcache of the flash-attn package).
Tensor cached_attention(const Tensor& q, TensorList keys, TensorList values, int64_t window = 0);

/// Rotary position embedding of x [..., T, d], d even: the pair (x_i, x_{i + d/2}) of token t is turned by the angle
/// (first_position + t) theta^(-2i/d), its frequency theta^(-2i/d) changed as `scaling` says. Pairs are half a row apart as in
/// GPT-NeoX and LLaMA, not neighbours as in the paper (Su et al. 2021). ops/rotary.cpp
Tensor rotary_embedding(const Tensor& x, int64_t first_position = 0, double theta = 10000.0, const RotaryScaling& scaling = {});

}  // namespace onestep

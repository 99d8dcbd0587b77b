#include "nn/multihead_attention.h"

#include <cmath>
#include <utility>

#include "autograd/operators.h"
#include "autograd/ops_shape.h"
#include "nn/init.h"

namespace onestep::nn {
namespace {

constexpr const char* kName = "MultiheadAttention";

/// [B, T, H d] -> [B, H, T, d]
Tensor split_heads(const Tensor& x, int64_t heads) {
  return transpose(view(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}

/// A mask that is added to scores: -inf where a bool one is true.
Tensor added(const Tensor& mask, DType dtype) {
  return mask.is_floating() ? mask : masked_fill(zeros(mask.shape(), dtype), mask, -INFINITY);
}

/// softmax(scores + mask), and 0 in the rows of which all is masked.
Tensor masked_softmax(const Tensor& scores, const Tensor& mask) {
  if (!mask.defined()) return softmax(scores, -1);
  const Tensor bias = added(mask.is_floating() ? mask : logical_not(mask), scores.dtype()), sum = scores + bias;
  const Tensor hidden = eq(amax(bias.detach(), -1, true), -INFINITY);
  if (!any(hidden).item<bool>()) return softmax(sum, -1);
  return masked_fill(softmax(masked_fill(sum, hidden, 0), -1), hidden, 0);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& o,
                                       Generator& generator)
    : out_proj(embed_dim, embed_dim, o.bias, generator),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      options_(o),
      generator_(&generator) {
  ONESTEP_CHECK(ShapeError, embed_dim > 0 && num_heads > 0 && embed_dim % num_heads == 0, kName,
                ": embed_dim must be a positive multiple of num_heads: got ", embed_dim, " and ", num_heads);
  ONESTEP_CHECK(ConfigError, 0 <= o.dropout && o.dropout <= 1, kName, ": dropout must be between 0 and 1: got ", o.dropout);
  const auto drawn = [&](int64_t rows, int64_t columns) {
    Tensor weight = empty({rows, columns}).requires_grad_();
    init::xavier_uniform_(weight, 1.0, generator);
    return weight;
  };
  const int64_t kdim = o.kdim.value_or(embed_dim), vdim = o.vdim.value_or(embed_dim);
  if (kdim == embed_dim && vdim == embed_dim) {
    in_proj_weight = drawn(3 * embed_dim, embed_dim);
  } else {
    q_proj_weight = drawn(embed_dim, embed_dim);
    k_proj_weight = drawn(embed_dim, kdim);
    v_proj_weight = drawn(embed_dim, vdim);
  }
  if (o.bias) {
    in_proj_bias = zeros({3 * embed_dim}).requires_grad_();
    init::zeros_(out_proj.bias);
  }
  if (!o.add_bias_kv) return;
  for (Tensor* bias : {&bias_k, &bias_v}) {
    *bias = empty({1, 1, embed_dim}).requires_grad_();
    init::xavier_normal_(*bias, 1.0, generator);
  }
}

void MultiheadAttention::visit(Visitor& visitor) {
  visitor.parameter("in_proj_weight", in_proj_weight);
  visitor.parameter("q_proj_weight", q_proj_weight);
  visitor.parameter("k_proj_weight", k_proj_weight);
  visitor.parameter("v_proj_weight", v_proj_weight);
  visitor.parameter("in_proj_bias", in_proj_bias);
  visitor.parameter("bias_k", bias_k);
  visitor.parameter("bias_v", bias_v);
  visitor.child("out_proj", out_proj);
}

Tensor MultiheadAttention::projected(int64_t i, const Tensor& x) const {
  const Tensor bias = in_proj_bias.defined() ? narrow(in_proj_bias, 0, i * embed_dim_, embed_dim_) : Tensor();
  if (in_proj_weight.defined()) return linear(x, narrow(in_proj_weight, 0, i * embed_dim_, embed_dim_), bias);
  return linear(x, i == 0 ? q_proj_weight : i == 1 ? k_proj_weight : v_proj_weight, bias);
}

Tensor MultiheadAttention::with_added(const Tensor& x, const Tensor& bias) const {
  std::vector<Tensor> parts = {x};
  const Shape one = {x.size(0), 1, embed_dim_};
  if (bias.defined()) parts.push_back(expand(bias, one));
  if (options_.add_zero_attn) parts.push_back(zeros(one, x.dtype()));
  return parts.size() == 1 ? x : cat(parts, 1);
}

Tensor MultiheadAttention::merged_mask(const MultiheadAttentionCall& call, const Shape& weights, int64_t extra,
                                       DType dtype) const {
  const int64_t batch = weights[0], queries = weights[2], keys = weights[3];
  const auto fits = [&](const char* what, const Tensor& mask, const Shape& a, const Shape& b, const Shape& seen) {
    ONESTEP_CHECK(ShapeError, mask.shape() == a || mask.shape() == b, kName, ": ", what, " must be ", a, " or ", b, ": got ",
                  mask.shape());
    ONESTEP_CHECK(DTypeError, mask.dtype() == DType::boolean || mask.dtype() == dtype, kName, ": ", what, " must be bool or ",
                  dtype, ": got ", mask.dtype());
    const Tensor seen_mask = mask.shape() == a ? view(contiguous(mask), seen) : view(contiguous(mask), weights);
    if (extra == 0) return seen_mask;
    Shape more = seen_mask.shape();
    more[3] = extra;
    return cat({seen_mask, zeros(more, mask.dtype())}, -1);
  };
  Tensor attention = call.is_causal ? triu(ones({queries, keys}, DType::boolean), 1) : call.attn_mask;
  if (attention.defined())
    attention = fits("attn_mask", attention, {queries, keys}, {batch * num_heads_, queries, keys}, {1, 1, queries, keys});
  if (!call.key_padding_mask.defined())
    return attention.defined() && !attention.is_floating() ? logical_not(attention) : attention;
  const Tensor padding = fits("key_padding_mask", call.key_padding_mask, {batch, keys}, {batch, keys}, {batch, 1, 1, keys});
  if (!attention.defined()) return padding.is_floating() ? padding : logical_not(padding);
  if (!attention.is_floating() && !padding.is_floating()) return logical_not(logical_or(attention, padding));
  return added(attention, dtype) + added(padding, dtype);
}

void MultiheadAttention::check_inputs(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const int rank = query.dim(), batch = options_.batch_first ? 0 : 1, tokens = rank == 2 ? 0 : 1 - batch;
  const int64_t kdim = options_.kdim.value_or(embed_dim_), vdim = options_.vdim.value_or(embed_dim_);
  const bool ranks = (rank == 2 || rank == 3) && key.dim() == rank && value.dim() == rank;
  const bool sizes = ranks && query.size(-1) == embed_dim_ && key.size(-1) == kdim && value.size(-1) == vdim &&
                     key.size(tokens) == value.size(tokens);
  const bool batches = sizes && (rank == 2 || (query.size(batch) == key.size(batch) && key.size(batch) == value.size(batch)));
  ONESTEP_CHECK(ShapeError, batches, kName, ": needs a query ", options_.batch_first ? "[B, T, " : "[T, B, ", embed_dim_,
                "], a key and a value with ", kdim, " and ", vdim, " features, or all without B: got ", query.shape(), ", ",
                key.shape(), " and ", value.shape());
}

MultiheadAttentionOutput MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                     const MultiheadAttentionCall& given) const {
  check_inputs(query, key, value);
  const bool batched = query.dim() == 3;
  MultiheadAttentionCall call = given;
  if (!batched && call.key_padding_mask.defined()) call.key_padding_mask = unsqueeze(call.key_padding_mask, 0);
  const auto batch_first = [&](const Tensor& x) {
    return !batched ? unsqueeze(x, 0) : options_.batch_first ? x : transpose(x, 0, 1);
  };
  const bool self = &query.impl() == &key.impl() && &key.impl() == &value.impl() && in_proj_weight.defined();
  const Tensor packed = self ? batch_first(linear(query, in_proj_weight, in_proj_bias)) : Tensor();
  const int64_t extra = (bias_k.defined() ? 1 : 0) + (options_.add_zero_attn ? 1 : 0);
  const int batch_dim = options_.batch_first ? 0 : 1, query_dim = batched ? 1 - batch_dim : 0;
  const Shape weights_shape = {batched ? query.size(batch_dim) : 1, num_heads_, query.size(query_dim), key.size(query_dim)};
  const bool fused_causal = call.is_causal && !call.key_padding_mask.defined() && extra == 0 && !call.need_weights;
  const Tensor mask = fused_causal ? Tensor() : merged_mask(call, weights_shape, extra, query.dtype());
  const double dropout_p = is_training() ? options_.dropout : 0.0;
  const AttentionOptions options{.mask = mask, .is_causal = fused_causal, .dropout_p = dropout_p, .generator = generator_};

  Tensor heads, weights;  // [B, T, embed_dim], [B, num_heads, T, S]
  if (self && extra == 0 && !call.need_weights) {
    heads = packed_attention(packed, num_heads_, num_heads_, options);
  } else {
    const auto part = [&](int64_t i, const Tensor& input) {
      return self ? narrow(packed, -1, i * embed_dim_, embed_dim_) : batch_first(projected(i, input));
    };
    const Tensor q = split_heads(part(0, query), num_heads_);
    const Tensor k = split_heads(with_added(part(1, key), bias_k), num_heads_);
    const Tensor v = split_heads(with_added(part(2, value), bias_v), num_heads_);
    Tensor result;
    if (call.need_weights) {
      const Tensor scores = matmul(q * std::sqrt(1.0 / static_cast<double>(q.size(-1))), transpose(k, -2, -1));
      weights = dropout(masked_softmax(scores, mask), dropout_p, true, *generator_);
      result = matmul(weights, v);
    } else {
      result = scaled_dot_product_attention(q, k, v, options);
    }
    heads = flatten(transpose(result, 1, 2), 2);
  }
  const Tensor output = out_proj(transpose(heads, 0, 1));  // [T, B, embed_dim] in memory, the order of a later dropout's draws
  if (weights.defined() && call.average_attn_weights) weights = mean(weights, 1);
  if (!batched) return {squeeze(output, 1), weights.defined() ? squeeze(weights, 0) : weights};
  return {options_.batch_first ? transpose(output, 0, 1) : output, weights};
}

}  // namespace onestep::nn

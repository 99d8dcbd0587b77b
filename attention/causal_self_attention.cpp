#include "attention/causal_self_attention.h"

#include <algorithm>
#include <cmath>

#include "attention/heads.h"
#include "attention/mask.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep::attention {
namespace {

constexpr const char* kName = "CausalSelfAttention";

/// Completes and checks the options, before any layer draws its initial values.
Options checked(Options o) {
  if (o.head_dim == 0) o.head_dim = shared_width(kName, o.d_out, o.num_heads) / o.num_heads;
  ONESTEP_CHECK(ShapeError, o.num_heads > 0 && o.head_dim > 0, kName, ": num_heads and head_dim must be positive: got ",
                o.num_heads, " and ", o.head_dim);
  if (o.num_kv_heads == 0) o.num_kv_heads = o.num_heads;
  ONESTEP_CHECK(ShapeError, o.num_kv_heads > 0 && o.num_heads % o.num_kv_heads == 0, kName,
                ": num_heads must be divisible by num_kv_heads: num_heads=", o.num_heads, ", num_kv_heads=", o.num_kv_heads);
  ONESTEP_CHECK(ConfigError, o.window >= 0, kName, ": window cannot be negative: got ", o.window);
  ONESTEP_CHECK(ShapeError, !o.rope || o.head_dim % 2 == 0, kName, ": rope needs heads of even width: got ", o.head_dim,
                " features a head");
  ONESTEP_CHECK(ConfigError, o.rope_theta >= 1 && std::isfinite(o.rope_theta), kName, ": rope_theta must be at least 1: got ",
                o.rope_theta);
  return o;
}

/// Width of the concatenated queries, keys and values.
int64_t qkv_width(const Options& o) { return o.head_dim * (o.num_heads + 2 * o.num_kv_heads); }

std::optional<nn::RMSNorm> make_head_norm(const Options& o) {
  return o.qk_norm ? std::optional<nn::RMSNorm>(std::in_place, Shape{o.head_dim}, o.norm_eps) : std::nullopt;
}

}  // namespace

CausalSelfAttention::CausalSelfAttention(const Options& o, Generator& generator)
    : Attention(o.d_in, checked(o).d_out, o.context_length),
      c_attn(o.d_in, qkv_width(checked(o)), o.qkv_bias, generator),
      c_proj(o.num_heads * checked(o).head_dim, o.d_out, o.out_bias, generator),
      q_norm(make_head_norm(checked(o))),
      k_norm(make_head_norm(checked(o))),
      dropout(o.dropout, generator),
      options_(checked(o)) {}

void CausalSelfAttention::visit(nn::Visitor& visitor) {
  visitor.child("c_attn", c_attn);
  visitor.child("c_proj", c_proj);
  if (q_norm) visitor.child("q_norm", *q_norm);
  if (k_norm) visitor.child("k_norm", *k_norm);
  visitor.child("dropout", dropout);
}

Tensor CausalSelfAttention::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  return c_proj(context(c_attn(x), weights, cache));  // [..., T, d_out]
}

Tensor CausalSelfAttention::attend_each(const Tensor& x, std::span<KvCache* const> caches) const {
  if (dropout.is_training() && dropout.p() > 0) return Attention::attend_each(x, caches);  // masks are drawn text by text
  Heads all = split_packed(c_attn(x));  // [B, H, T, head_dim], 2 x [B, H_kv, T, head_dim]
  std::vector<Tensor> queries, keys, values;
  for (int64_t b = 0; b < x.size(0); ++b) {
    KvCache& cache = *caches[static_cast<size_t>(b)];
    const Heads text = turned(all.text(b), cache.length());
    const auto [text_keys, text_values] = cache.append(text.keys, text.values);
    queries.push_back(text.queries);
    keys.push_back(text_keys);
    values.push_back(text_values);
  }
  if (options_.rope) all.queries = cat(queries);
  return c_proj(merge_heads(cached_attention(all.queries, keys, values, options_.window)));  // [B, T, d_out]
}

Tensor CausalSelfAttention::attend_apart(const Tensor& x, const std::vector<int64_t>& lengths) const {
  std::vector<Tensor> contexts;  // of each sequence [T, H * head_dim]
  for (const Tensor& packed : split(c_attn(x), lengths)) contexts.push_back(context(packed, nullptr, nullptr));
  return c_proj(cat(contexts));  // [N, d_out]
}

Tensor CausalSelfAttention::context(const Tensor& packed, Tensor* weights, KvCache* cache) const {
  const Options& o = options_;
  if (!o.rope && !o.qk_norm && !weights && !cache)
    return packed_causal_attention(packed, o.num_heads, o.num_kv_heads, o.window, dropout);  // [..., T, H * head_dim]
  return context(split_packed(packed), weights, cache);
}

Tensor CausalSelfAttention::context(Heads heads, Tensor* weights, KvCache* cache) const {
  heads = turned(std::move(heads), cache ? cache->length() : 0);
  const auto [keys, values] = with_cached(cache, heads.keys, heads.values);  // [..., H_kv, S, head_dim]
  return merge_heads(
      causal_attention(heads.queries, keys, values, options_.window, dropout, weights));  // [..., T, H * head_dim]
}

CausalSelfAttention::Heads CausalSelfAttention::turned(Heads heads, int64_t position) const {
  const Options& o = options_;
  if (!o.rope) return heads;
  heads.queries = rotary_embedding(heads.queries, position, o.rope_theta, o.rope_scaling);
  heads.keys = rotary_embedding(heads.keys, position, o.rope_theta, o.rope_scaling);
  return heads;
}

CausalSelfAttention::Heads CausalSelfAttention::Heads::text(int64_t b) const {
  return {narrow(queries, 0, b, 1), narrow(keys, 0, b, 1), narrow(values, 0, b, 1)};
}

CausalSelfAttention::Heads CausalSelfAttention::split_packed(const Tensor& packed) const {
  const Options& o = options_;
  const int64_t q_width = o.head_dim * o.num_heads, kv_width = o.head_dim * o.num_kv_heads;
  const std::vector<Tensor> qkv =
      split(packed, std::vector{q_width, kv_width, kv_width}, -1);  // [..., T, H * head_dim], 2 x [..., T, H_kv * head_dim]
  Heads heads = {split_heads(qkv[0], o.num_heads),                  // [..., H, T, head_dim]
                 split_heads(qkv[1], o.num_kv_heads),               // [..., H_kv, T, head_dim]
                 split_heads(qkv[2], o.num_kv_heads)};              // [..., H_kv, T, head_dim]
  if (o.qk_norm) {
    heads.queries = (*q_norm)(heads.queries);
    heads.keys = (*k_norm)(heads.keys);
  }
  return heads;
}

}  // namespace onestep::attention

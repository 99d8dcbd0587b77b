#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

Results cross_entropy_of(const Args& a) {
  return cross_entropy(a.x(), a.tensor(1, "target"),
                       {.reduction = reduction_of(a),
                        .ignore_index = a.integer(4, "ignore_index", -100),
                        .label_smoothing = a.real(7, "label_smoothing", 0),
                        .weight = a.tensor(2, "weight")});
}

Results attention_of(const Args& a) {
  AttentionOptions options{.mask = a.tensor(3, "attn_mask"),
                           .is_causal = a.flag(5, "is_causal"),
                           .enable_gqa = a.flag(7, "enable_gqa"),
                           .dropout_p = a.real(4, "dropout_p", 0)};
  if (a.has(6, "scale")) options.scale = a.real(6, "scale", 0);
  return scaled_dot_product_attention(a.tensor(0, "query"), a.tensor(1, "key"), a.tensor(2, "value"), options);
}

Results embedding_of(const Args& a) {
  std::optional<int64_t> padding_idx;
  if (a.has(2, "padding_idx")) padding_idx = a.integer(2, "padding_idx");
  return embedding(a.x(), a.tensor(1, "weight"), padding_idx);
}

Results layer_norm_of(const Args& a) {
  return layer_norm(a.x(), a.shape(1, "normalized_shape"), a.tensor(2, "weight"), a.tensor(3, "bias"), a.real(4, "eps", 1e-5));
}

}  // namespace

void add_nn_calls(CallTable& table) {
  const CallTable rows = {
      {"softmax", along_dim_in<softmax, softmax>},
      {"log_softmax", along_dim_in<log_softmax, log_softmax>},
      {"logsumexp", [](const Args& a) -> Results { return logsumexp(a.x(), a.shape(1, "dim"), a.flag(2, "keepdim")); }},
      {"linear", [](const Args& a) -> Results { return linear(a.x(), a.tensor(1, "weight"), a.tensor(2, "bias")); }},
      {"dropout", [](const Args& a) -> Results { return dropout(a.x(), a.real(1, "p", 0.5), a.flag(2, "training", true)); }},
      {"embedding", embedding_of},
      {"layer_norm", layer_norm_of},
      {"cross_entropy", cross_entropy_of},
      {"nll_loss",
       [](const Args& a) -> Results {
         return nll_loss(a.x(), a.tensor(1, "target"), reduction_of(a), a.integer(4, "ignore_index", -100),
                         a.tensor(2, "weight"));
       }},
      {"scaled_dot_product_attention", attention_of},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace onestep::programs

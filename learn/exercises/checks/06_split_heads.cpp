#include "attention/heads.h"
#include "attention/mask.h"
#include "attention/multi_head_attention.h"
#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

void check_split() {
  const Tensor x = arange(24).view({2, 3, 4}).to(DType::float32);  // feature f of token t of text b is 12 b + 4 t + f
  require_close(split_heads(x, 2), attention::split_heads(x, 2),
                {{x.view({2, 2, 3, 2}),
                  "heads have features of the wrong tokens: head 0 should begin with the first features of "
                  "token 0 and continue with those of token 1, but it continues with the other head's of token 0"},
                 {x.view({2, 3, 2, 2}),
                  "the features are split into heads, but the heads come after the tokens: [B, T, H, "
                  "head_dim] is still to be transposed"}});
}

void check_merge() {
  const Tensor x = arange(24).view({2, 2, 3, 2}).to(DType::float32);
  require_close(merge_heads(x), attention::merge_heads(x),
                {{x.reshape({2, 3, 4}),
                  "the features of a token are not next to each other: before the reshape the tokens have to come "
                  "before the heads again"},
                 {x.transpose(2, 3).reshape({2, 3, 4}), "tokens and features were swapped: it is heads and tokens"}});
}

void check_book() {
  Generator generator(123);
  const attention::MultiHeadAttention mha(3, 2, 6, 0.0, 2, false, generator);
  const Tensor batch = stack({journey(), journey()});
  const Tensor queries = split_heads(mha.W_query(batch), 2), keys = split_heads(mha.W_key(batch), 2);
  const Tensor weights = attention::masked_attention_weights(matmul(queries, keys.transpose(2, 3)), mha.mask, 1);
  require_printed(mha.out_proj(merge_heads(matmul(weights, split_heads(mha.W_value(batch), 2)))), "mha");
}

const Register registered{
    {"06_split_heads",
     "split the heads",
     "view changes the shape, transpose(dim0, dim1) the order: view to [B, T, H, head_dim] first, then swap dims 1 and 2",
     {{"the features of each token are split into heads", check_split},
      {"merge_heads concatenates the heads of each token", check_merge},
      {"the multi-head attention of the book, with your heads", check_book},
      {"gradients", [] {
         require_gradients(
             [](const std::vector<Tensor>& in) { return merge_heads(split_heads(in[0], 3) * split_heads(in[0], 3)); },
             {random_leaf({2, 2, 6}, 1)}, {"x"});
       }}}}};

}  // namespace
}  // namespace exercises

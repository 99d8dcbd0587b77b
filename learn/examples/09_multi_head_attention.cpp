// 3.6.2: MultiHeadAttention: all heads in one product, by splitting the weights.
//
// The wrapper multiplies with a small matrix for each head. One large matrix holds them all: a single product, whose result is
// then split into heads. At the end out_proj makes each feature of the result a weighted sum over all heads.
#include <onestep/onestep.h>

#include <cmath>
#include <iostream>
#include <limits>
using namespace onestep;

int main() {
  const Tensor inputs = tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
  const Tensor batch = stack({inputs, inputs});
  const int64_t B = batch.size(0), T = batch.size(1), d_in = batch.size(2);  // 2, 6, 3
  const int64_t d_out = 2, H = 2, head_dim = d_out / H;

  Generator generator(123);
  const attention::MultiHeadAttention mha(d_in, d_out, /*context_length=*/T, /*dropout=*/0.0, /*num_heads=*/H,
                                          /*qkv_bias=*/false, generator);
  std::cout << mha << "\n\n";
  const Tensor context = mha(batch);
  std::cout << "context: " << context.shape() << '\n' << context << "\n\n";

  // Step by step. The view splits the features of each word into heads, [B, T, H, head_dim]; the transpose moves heads before
  // words, so that the last two dims are one head's words and features. A view alone would mix words and heads.
  const auto split = [&](const Tensor& x) { return x.view({B, T, H, head_dim}).transpose(1, 2); };
  const Tensor queries = split(mha.W_query(batch));  // [B, T, d_out] -> [B, H, T, head_dim]
  const Tensor keys = split(mha.W_key(batch));
  const Tensor values = split(mha.W_value(batch));
  std::cout << "queries: " << mha.W_query(batch).shape() << " -> " << queries.shape() << '\n';

  // Products of 4-D tensors are products of their last two dims: all heads of all texts at once.
  const Tensor scores = matmul(queries, keys.transpose(2, 3));  // [B, H, T, T]
  const Tensor masked = scores.masked_fill(mha.mask, -std::numeric_limits<double>::infinity());
  const Tensor weights = softmax(masked / std::sqrt(static_cast<double>(head_dim)), -1);
  std::cout << "weights: " << weights.shape() << '\n';
  for (int64_t head = 0; head < H; ++head) std::cout << "head " << head << ":\n" << weights[0][head] << '\n';

  // Back again: words before heads, heads concatenated. A transposed tensor is not contiguous, so view fails; reshape copies.
  const Tensor per_head = matmul(weights, values);                        // [B, H, T, head_dim]
  const Tensor merged = per_head.transpose(1, 2).reshape({B, T, d_out});  // [B, T, d_out]
  const Tensor projected = matmul(merged, mha.out_proj.weight.t()) + mha.out_proj.bias;
  std::cout << "merged: " << per_head.shape() << " -> " << merged.shape() << "\n\n";
  std::cout << std::boolalpha << "the module gives the same: " << allclose(projected, context, 1e-5, 1e-6) << '\n';
}

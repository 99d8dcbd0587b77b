#include "attention/self_attention.h"

#include "tests/attention/book.h"

namespace onestep::attention {
namespace {

using testing::book_inputs;
using testing::book_result;
using testing::check_against_pytorch;
using testing::check_close;
using testing::check_same;
using testing::refusal;

TEST_CASE("simplified self-attention: the loops give the book's numbers for token 2") {
  const Tensor x = book_inputs();
  const Tensor scores = naive_scores(x[1], x);
  check_close(scores, book_result("simple_scores_q2"));
  check_close(sum_normalized(scores), book_result("simple_w_lin"));
  check_close(naive_softmax(scores), book_result("simple_w_naive"));
  check_close(softmax(scores, 0), book_result("simple_w_soft"));
  check_close(naive_context(softmax(scores, 0), x), book_result("simple_ctx_q2"));
}

TEST_CASE("simplified self-attention: the type gives the book's numbers for all tokens") {
  const Tensor x = book_inputs();
  check_close(naive_scores(x), book_result("simple_scores_loops"));
  const AttentionResult result = SimplifiedSelfAttention(3).forward_with_weights(x);
  check_close(result.weights, book_result("simple_weights_all"));
  check_close(result.context, book_result("simple_ctx_all"));
}

TEST_CASE("simplified self-attention: the loops agree with the matrix product") {
  Generator generator(3);
  const Tensor x = randn({5, 4}, generator, DType::float64);
  CHECK(allclose(naive_scores(x), matmul(x, x.t()), 1e-13, 1e-14));
  const AttentionResult result = SimplifiedSelfAttention(4).forward_with_weights(x);
  for (int64_t i = 0; i < 5; ++i) {
    const Tensor weights = naive_softmax(naive_scores(x[i], x));
    CHECK(allclose(result.weights[i], weights, 1e-13, 1e-14));
    CHECK(allclose(result.context[i], naive_context(weights, x), 1e-13, 1e-14));
  }
}

TEST_CASE("simplified self-attention: naive softmax overflows where softmax does not") {
  const Tensor scores = tensor({1000.0, 0.0});
  CHECK(any(isnan(naive_softmax(scores))).item<bool>());
  CHECK(softmax(scores, 0).to_vector<float>() == std::vector<float>{1, 0});
}

TEST_CASE("SelfAttention_v1: the book's numbers from seed 123") {
  Generator generator(123);
  const SelfAttention_v1 attention(3, 2, generator);
  check_same(stack({attention.W_query, attention.W_key, attention.W_value}), book_result("rand_3x2_three_times_seed123"));
  const Tensor x = book_inputs();
  check_close(matmul(x, attention.W_key), book_result("qkv_keys"));
  check_close(matmul(x, attention.W_value), book_result("qkv_values"));
  const AttentionResult result = attention.forward_with_weights(x);
  check_close(result.weights[1], book_result("qkv_weights_2"));
  check_close(result.context, book_result("self_attention_v1"));
}

TEST_CASE("SelfAttention_v2: the book's numbers from seed 789") {
  Generator generator(789);
  const SelfAttention_v2 attention(3, 2, false, generator);
  const AttentionResult result = attention.forward_with_weights(book_inputs());
  check_close(result.weights, book_result("sa2_weights"));
  check_close(result.context, book_result("self_attention_v2"));
}

TEST_CASE("self-attention: both types follow PyTorch in names and values and gradients") {
  check_against_pytorch("SelfAttention_v1", [](Generator& g) { return std::make_unique<SelfAttention_v1>(5, 4, g); });
  check_against_pytorch("SelfAttention_v2", [](Generator& g) { return std::make_unique<SelfAttention_v2>(5, 4, true, g); });
}

TEST_CASE("self-attention: v1 with the transposed weights of v2 is v2") {
  Generator generator(5);
  const SelfAttention_v2 v2(4, 3, false, generator);
  SelfAttention_v1 v1(4, 3, generator);
  v1.load_state_dict({{"W_query", v2.W_query.weight.t()}, {"W_key", v2.W_key.weight.t()}, {"W_value", v2.W_value.weight.t()}});
  const Tensor x = randn({2, 5, 4}, generator);
  CHECK(allclose(v1(x), v2(x), 1e-6, 1e-6));
}

TEST_CASE("self-attention: a batch is its texts one by one") {
  Generator generator(5);
  const SimplifiedSelfAttention simplified(3);
  const SelfAttention_v1 v1(3, 2, generator);
  const SelfAttention_v2 v2(3, 2, true, generator);
  const Tensor batch = stack({book_inputs(), book_inputs() * 2});
  for (const Attention* attention : std::initializer_list<const Attention*>{&simplified, &v1, &v2}) {
    CAPTURE(attention->name());
    const AttentionResult whole = attention->forward_with_weights(batch);
    CHECK(whole.context.shape() == Shape{2, 6, attention->d_out()});
    CHECK(whole.weights.shape() == Shape{2, 6, 6});
    for (int64_t b = 0; b < 2; ++b) {
      const AttentionResult single = attention->forward_with_weights(batch[b]);
      CHECK(allclose(whole.context[b], single.context, 1e-6, 1e-6));
      CHECK(allclose(whole.weights[b], single.weights, 1e-6, 1e-6));
    }
  }
}

TEST_CASE("self-attention: errors say what x must be") {
  const SelfAttention_v2 attention(3, 2);
  CHECK(refusal<ShapeError>([&] { attention(ones({3})); }) == "SelfAttention_v2: x must be [T, 3] or [B, T, 3]: got [3]");
  CHECK(refusal<ShapeError>([&] { attention(ones({2, 6, 4})); }).starts_with("SelfAttention_v2: x "));
  CHECK(refusal<ShapeError>([&] { attention(ones({1, 2, 6, 3})); }).starts_with("SelfAttention_v2: x "));
  CHECK(refusal<ShapeError>([] { SelfAttention_v1(3, 0); }) == "attention: sizes must be positive: d_in=3, d_out=0");
  CHECK_THROWS_AS(attention(ones({6, 3}, DType::float64)), DTypeError);
}

TEST_CASE("self-attention: no tokens give no context") {
  CHECK(SimplifiedSelfAttention(3)(ones({0, 3})).shape() == Shape{0, 3});
  CHECK(SelfAttention_v2(3, 2)(ones({2, 0, 3})).shape() == Shape{2, 0, 2});
}

}  // namespace
}  // namespace onestep::attention

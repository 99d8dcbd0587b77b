#include "attention/mask.h"

#include <cmath>
#include <limits>

#include "attention/self_attention.h"
#include "tests/attention/book.h"

namespace onestep::attention {
namespace {

using testing::book_inputs;
using testing::book_result;
using testing::check_close;

/// Scores of the book's SelfAttention_v2 on its sentence: [6, 6].
Tensor book_scores(int64_t seed) {
  Generator generator(seed);
  const SelfAttention_v2 attention(3, 2, false, generator);
  const Tensor x = book_inputs();
  return matmul(attention.W_query(x), attention.W_key(x).t()).detach();
}

TEST_CASE("mask: true where the key comes after the query") {
  const Tensor mask = causal_mask(3);
  CHECK(mask.dtype() == DType::boolean);
  CHECK(mask.to_vector<bool>() == std::vector<bool>{false, true, true, false, false, true, false, false, false});
  CHECK_THROWS_WITH_AS(causal_mask(-1), "causal_mask: context_length cannot be negative: got -1", ShapeError);
  CHECK_THROWS_WITH_AS(sliding_window_mask(-1, 2), doctest::Contains("sliding_window_mask: context_length "), ShapeError);
}

TEST_CASE("mask: both ways to the book's causal weights") {
  const Tensor weights = softmax(book_scores(789) / std::sqrt(2.0), -1);
  const Tensor masked = tril(ones({6, 6})) * weights;
  check_close(masked, book_result("sa2_weights_masked"));
  check_close(masked / sum(masked, {-1}, true), book_result("sa2_weights_masked_norm"));
  check_close(masked_attention_weights(book_scores(789), causal_mask(6), 2), book_result("sa2_causal_weights"));
  check_close(masked_attention_weights(book_scores(123), causal_mask(6), 2), book_result("sa2_causal_weights_unseeded"));
}

TEST_CASE("mask: the scores are filled with -inf") {
  const Tensor scores = book_scores(789);
  masked_attention_weights(scores, causal_mask(6), 2);
  check_close(scores, book_result("sa2_scores_neg_inf"));
}

TEST_CASE("mask: dropout on the causal weights in both dialects") {
  const Tensor weights = masked_attention_weights(book_scores(789), causal_mask(6), 2);
  const Tensor unseeded = masked_attention_weights(book_scores(123), causal_mask(6), 2);
  const auto dropped = [](const Tensor& w, RngDialect dialect) {
    Generator generator(123, dialect);
    return dropout(w, 0.5, true, generator);
  };
  check_close(dropped(weights, RngDialect::torch), book_result("dropout_causal"));
  check_close(dropped(weights, RngDialect::torch_mkl), book_result("dropout_causal__old_mkl_mask"));
  check_close(dropped(unseeded, RngDialect::torch), book_result("dropout_causal_unseeded"));
  check_close(dropped(unseeded, RngDialect::torch_mkl), book_result("dropout_causal_unseeded__old_mkl_mask"));
}

TEST_CASE("mask: a fully masked row gets weight 0 and gradient 0") {
  Generator generator(3);
  Tensor x = randn({2, 3, 4}, generator).requires_grad_();
  const Tensor mask = tensor({{false, true, false, false}, {true, true, true, true}, {false, false, false, true}});
  const Tensor weights = masked_attention_weights(x * 1.0, mask, 4);
  CHECK(weights.select(1, 1).to_vector<float>() == std::vector<float>(8, 0.0f));
  CHECK(sum(weights[0][0]).item() == doctest::Approx(1));
  sum(weights * weights).backward();
  const Tensor grad = x.grad();
  CHECK(all(isfinite(grad)).item<bool>());
  CHECK(equal(grad * to(mask, DType::float32), zeros({2, 3, 4})));
  CHECK(grad.at({0, 0, 0}) != 0);
}

TEST_CASE("mask: a window cannot be negative") {
  CHECK_THROWS_WITH_AS(sliding_window_mask(3, -1), "sliding_window_mask: window cannot be negative: got -1", ConfigError);
}

TEST_CASE("mask: masked scores are not read whatever they hold") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor clean = tensor({{0.5, 0.0, 0.0}, {0.25, 1.0, 0.0}, {1.0, 2.0, 3.0}});
  const Tensor dirty = tensor({{0.5, nan, inf}, {0.25, 1.0, -inf}, {1.0, 2.0, 3.0}});
  CHECK(equal(masked_attention_weights(dirty, causal_mask(3), 1), masked_attention_weights(clean, causal_mask(3), 1)));
}

}  // namespace
}  // namespace onestep::attention

#include "attention/causal_attention.h"

#include "attention/mask.h"
#include "tests/attention/book.h"

namespace onestep::attention {
namespace {

using testing::book_batch;
using testing::book_inputs;
using testing::refusal;

TEST_CASE("CausalAttention: the book's numbers from seed 123") {
  Generator generator(123);
  const CausalAttention attention(3, 2, 6, 0.0, false, generator);
  const Tensor context = attention(book_batch());
  CHECK(context.shape() == Shape{2, 6, 2});
  testing::check_close(context, testing::book_result("causal_attention"));
  testing::check_close(attention.forward_with_weights(book_batch()).context, testing::book_result("causal_attention"));
}

TEST_CASE("CausalAttention: follows PyTorch with dropout") {
  testing::check_against_pytorch("CausalAttention",
                                 [](Generator& g) { return std::make_unique<CausalAttention>(5, 4, 7, 0.3, true, g); });
}

TEST_CASE("CausalAttention: a token does not see later tokens") {
  Generator generator(5);
  const CausalAttention attention(3, 2, 6, 0.0, true, generator);
  const Tensor x = randn({1, 6, 3}, generator), changed = x.clone();
  Tensor last = changed.select(1, 5);
  fill_(last, 9.0);
  const Tensor before = attention(x), after = attention(changed);
  CHECK(equal(before.slice(1, 0, 5), after.slice(1, 0, 5)));
  CHECK_FALSE(equal(before.select(1, 5), after.select(1, 5)));
}

TEST_CASE("CausalAttention: the mask is cut to the number of tokens") {
  Generator generator(5);
  const CausalAttention attention(3, 2, 6, 0.0, false, generator);
  const AttentionResult all = attention.forward_with_weights(book_inputs());
  const AttentionResult four = attention.forward_with_weights(book_inputs().slice(0, 0, 4));
  CHECK(four.weights.shape() == Shape{4, 4});
  CHECK(allclose(four.context, all.context.slice(0, 0, 4), 1e-6, 1e-7));
}

TEST_CASE("CausalAttention: the mask is a buffer that takes PyTorch's float mask") {
  Generator generator(5);
  CausalAttention attention(3, 2, 4, 0.0, false, generator);
  CHECK(attention.named_buffers()[0].first == "mask");
  nn::NamedTensors state = attention.state_dict();
  REQUIRE(state[0].first == "mask");
  CHECK(equal(state[0].second, causal_mask(4)));
  state[0].second = triu(ones({4, 4}), 1);
  fill_(attention.mask, false);
  attention.load_state_dict(state);
  CHECK(equal(attention.mask, causal_mask(4)));
}

TEST_CASE("CausalAttention: no tokens give no context") {
  Generator generator(5);
  const CausalAttention attention(3, 2, 4, 0.5, false, generator);
  CHECK(attention(ones({2, 0, 3})).shape() == Shape{2, 0, 2});
  CHECK(attention.forward_with_weights(ones({0, 3})).weights.shape() == Shape{0, 0});
}

TEST_CASE("CausalAttention: errors say what to do") {
  Generator generator(5);
  CHECK(refusal<ShapeError>([&] { CausalAttention(3, 2, 0, 0.0, false, generator); }) ==
        "attention: context_length must be positive: got 0");
  CHECK(refusal<ConfigError>([&] { CausalAttention(3, 2, 6, -0.1, false, generator); }).starts_with("Dropout: p "));
  const CausalAttention attention(3, 2, 4, 0.0, false, generator);
  CHECK(refusal<ShapeError>([&] {
          attention(ones({5, 3}));
        }) == "CausalAttention: too many tokens: 5 in x [5, 3] for context_length 4 (cut x, or build it with a larger one)");
}

}  // namespace
}  // namespace onestep::attention

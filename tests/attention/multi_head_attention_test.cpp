#include "attention/multi_head_attention.h"

#include <limits>

#include "attention/mask.h"
#include "tests/attention/book.h"

namespace onestep::attention {
namespace {

using testing::book_batch;
using testing::book_result;
using testing::check_against_pytorch;
using testing::check_close;
using testing::check_same;
using testing::refusal;

/// All parameters in the order in which they are drawn.
Tensor drawn(Attention& attention) {
  std::vector<Tensor> values;
  for (const Tensor& parameter : attention.parameters()) values.push_back(parameter.detach().flatten());
  return cat(values);
}

/// Makes the output projection of `attention` the identity.
void drop_projection(MultiHeadAttention& attention) {
  NoGradGuard no_grad;
  copy_(attention.out_proj.weight, eye(attention.d_out()));
  fill_(attention.out_proj.bias, 0.0);
}

TEST_CASE("MultiHeadAttentionWrapper: the book's numbers from seed 123") {
  Generator generator(123);
  MultiHeadAttentionWrapper attention(3, 2, 6, 0.0, 2, false, generator);
  check_same(drawn(attention), book_result("linear_weights_seed123_six_3to2"));
  const Tensor context = attention(book_batch());
  CHECK(context.shape() == Shape{2, 6, 4});
  check_close(context, book_result("mha_wrapper"));
  check_close(attention.forward_with_weights(book_batch()).context, book_result("mha_wrapper"));
}

TEST_CASE("MultiHeadAttention: the book's numbers and gradients from seed 123") {
  Generator generator(123);
  MultiHeadAttention attention(3, 2, 6, 0.0, 2, false, generator);
  check_same(drawn(attention), book_result("linear_params_seed123_mha_3to2_outproj"));
  const Tensor context = attention(book_batch());
  CHECK(context.shape() == Shape{2, 6, 2});
  check_close(context, book_result("mha"));
  check_close(attention.forward_with_weights(book_batch()).context, book_result("mha"));
  sum(context * context).backward();
  const auto& grads = testing::golden("reference.json").at("seed_mha_gradients").at("grads");
  for (const auto& [name, parameter] : attention.named_parameters()) {
    const std::string& label = name;  // clang 14 captures no binding
    CAPTURE(label);
    check_close(parameter.grad(), grads.at(name).at("values"));
  }
}

TEST_CASE("MultiHeadAttention: the book's head-wise product") {
  const Tensor a =
      tensor({{{{0.2745, 0.6584, 0.2775, 0.8573}, {0.8993, 0.0390, 0.9268, 0.7388}, {0.7179, 0.7058, 0.9156, 0.4340}},
               {{0.0772, 0.3565, 0.1479, 0.5331}, {0.4066, 0.2318, 0.4545, 0.9737}, {0.4606, 0.5159, 0.4220, 0.5786}}}});
  check_close(matmul(a, a.transpose(2, 3)), book_result("headwise_product"));
  check_close(matmul(a[0][0], a[0][0].t()), book_result("headwise_first"));
  check_close(matmul(a[0][1], a[0][1].t()), book_result("headwise_second"));
}

TEST_CASE("multi-head attention: both types follow PyTorch with dropout") {
  check_against_pytorch("MultiHeadAttentionWrapper",
                        [](Generator& g) { return std::make_unique<MultiHeadAttentionWrapper>(5, 2, 7, 0.3, 3, false, g); });
  check_against_pytorch("MultiHeadAttention",
                        [](Generator& g) { return std::make_unique<MultiHeadAttention>(5, 8, 7, 0.25, 4, true, g); });
}

TEST_CASE("MultiHeadAttention: without its projection it is the wrapper with its weights split") {
  Generator generator(5);
  const int64_t H = 3, head_dim = 2;
  MultiHeadAttention whole(4, H * head_dim, 6, 0.0, H, true, generator);
  MultiHeadAttentionWrapper wrapper(4, head_dim, 6, 0.0, H, true, generator);
  drop_projection(whole);
  nn::NamedTensors state;
  for (int64_t h = 0; h < H; ++h) {
    const std::string head = "heads." + std::to_string(h) + ".";
    state.emplace_back(head + "mask", whole.mask);
    for (const auto& [name, values] : whole.state_dict())
      if (name[0] == 'W') state.emplace_back(head + name, narrow(values, 0, h * head_dim, head_dim));
  }
  wrapper.load_state_dict(state);
  const Tensor x = randn({2, 5, 4}, generator);
  const AttentionResult a = whole.forward_with_weights(x), b = wrapper.forward_with_weights(x);
  CHECK(a.weights.shape() == Shape{2, H, 5, 5});
  CHECK(b.weights.shape() == Shape{2, H, 5, 5});
  CHECK(allclose(a.weights, b.weights, 1e-5, 1e-6));
  CHECK(allclose(a.context, b.context, 1e-5, 1e-6));
}

TEST_CASE("MultiHeadAttention: one head without its projection is CausalAttention") {
  Generator generator(5);
  MultiHeadAttention whole(4, 3, 6, 0.0, 1, false, generator);
  CausalAttention causal(4, 3, 6, 0.0, false, generator);
  causal.load_state_dict(whole.state_dict(), /*strict=*/false);
  drop_projection(whole);
  const Tensor x = randn({2, 5, 4}, generator);
  CHECK(allclose(whole(x), causal(x), 1e-5, 1e-6));
}

TEST_CASE("MultiHeadAttention: heads are split by a view and a transpose and merged back") {
  const Tensor x = reshape(arange(2 * 3 * 4), {2, 3, 4});
  const Tensor heads = split_heads(x, 2);
  CHECK(heads.shape() == Shape{2, 2, 3, 2});
  CHECK(heads.shares_storage(x));
  CHECK(heads[0][1].to_vector<int64_t>() == std::vector<int64_t>{2, 3, 6, 7, 10, 11});
  CHECK(equal(merge_heads(heads), x));
  CHECK(equal(merge_heads(split_heads(x[0], 4)), x[0]));
}

TEST_CASE("MultiHeadAttention: attention weights are causal and sum to 1 in evaluation") {
  Generator generator(5);
  MultiHeadAttention attention(3, 4, 8, 0.5, 2, false, generator);
  attention.eval();
  const AttentionResult result = attention.forward_with_weights(book_batch());
  CHECK(result.weights.shape() == Shape{2, 2, 6, 6});
  CHECK(allclose(sum(result.weights, {-1}), ones({2, 2, 6}), 1e-6, 1e-6));
  CHECK(equal(triu(result.weights, 1), zeros({2, 2, 6, 6})));
}

TEST_CASE("MultiHeadAttention: with and without weights the context and the draws are the same") {
  Generator a(5), b(5);
  MultiHeadAttention steps(3, 4, 8, 0.5, 2, true, a), fused(3, 4, 8, 0.5, 2, true, b);
  for (const bool training : {true, false}) {
    steps.train(training);
    fused.train(training);
    const AttentionResult result = steps.forward_with_weights(book_batch());
    const Tensor context = fused(book_batch());
    CHECK(allclose(context, result.context, 1e-6, 1e-7));
    CHECK(a.state() == b.state());
    sum(result.context * result.context).backward();
    sum(context * context).backward();
  }
  for (size_t i = 0; i < steps.parameters().size(); ++i)
    CHECK(allclose(steps.parameters()[i].grad(), fused.parameters()[i].grad(), 1e-5, 1e-6));
}

TEST_CASE("MultiHeadAttention: dropout draws in training only") {
  Generator generator(5);
  MultiHeadAttention attention(3, 4, 6, 0.5, 2, false, generator);
  const Tensor x = book_batch();
  const Tensor first = attention(x), second = attention(x);
  CHECK_FALSE(equal(first, second));
  attention.eval();
  const std::string state = generator.state();
  CHECK(equal(attention(x), attention(x)));
  CHECK(generator.state() == state);
}

TEST_CASE("MultiHeadAttention: fully masked rows give 0 context and finite gradients") {
  Generator generator(5);
  MultiHeadAttention attention(3, 4, 6, 0.0, 2, false, generator);
  drop_projection(attention);
  Tensor row = attention.mask[2];
  fill_(row, true);
  Tensor x = randn({1, 6, 3}, generator).requires_grad_();
  const AttentionResult result = attention.forward_with_weights(x);
  CHECK(equal(result.weights.select(2, 2), zeros({1, 2, 6})));
  for (const Tensor& context : {result.context, attention(x)}) {
    CHECK(equal(context.select(1, 2), zeros({1, 4})));
    CHECK_FALSE(equal(context.select(1, 3), zeros({1, 4})));
    attention.zero_grad();
    sum(context * context).backward();
    CHECK(all(isfinite(x.grad())).item<bool>());
    for (const Tensor& parameter : attention.parameters()) CHECK(all(isfinite(parameter.grad())).item<bool>());
  }
}

TEST_CASE("MultiHeadAttention: a masked token is not read whatever it holds") {
  Generator generator(5);
  MultiHeadAttention attention(3, 4, 6, 0.0, 2, true, generator);
  const Tensor x = randn({2, 6, 3}, generator), broken = x.clone();
  Tensor last = broken.select(1, 5);
  fill_(last, std::numeric_limits<double>::quiet_NaN());
  CHECK(equal(attention(broken).slice(1, 0, 5), attention(x).slice(1, 0, 5)));
}

TEST_CASE("MultiHeadAttention: float64 starts from the float32 parameters") {
  Generator a(123), b(123);
  MultiHeadAttention narrow(3, 4, 6, 0.0, 2, false, a), wide(3, 4, 6, 0.0, 2, false, b);
  wide.to(DType::float64);
  CHECK(equal(narrow.W_key.weight.detach().to(DType::float64), wide.W_key.weight.detach()));
  CHECK(wide.mask.dtype() == DType::boolean);
  const Tensor x = book_batch();
  CHECK(allclose(narrow(x).to(DType::float64), wide(x.to(DType::float64)), 1e-5, 1e-6));
}

TEST_CASE("multi-head attention: errors say what to do and come before any draw") {
  Generator generator(5);
  const std::string state = generator.state();
  CHECK(refusal<ShapeError>([&] { MultiHeadAttention(3, 10, 6, 0.0, 4, false, generator); }) ==
        "MultiHeadAttention: d_out must be divisible by num_heads: d_out=10, num_heads=4");
  CHECK(refusal<ShapeError>([&] { MultiHeadAttention(3, 10, 6, 0.0, 0, false, generator); }) ==
        "MultiHeadAttention: num_heads must be positive: got 0");
  CHECK(refusal<ShapeError>([&] {
          MultiHeadAttentionWrapper(3, 2, 6, 0.0, -1, false, generator);
        }).starts_with("MultiHeadAttentionWrapper: num_heads "));
  CHECK(generator.state() == state);
  MultiHeadAttention attention(3, 4, 6, 0.0, 2, false, generator);
  CHECK(refusal<ShapeError>([&] { attention(ones({2, 7, 3})); }).starts_with("MultiHeadAttention: too many tokens: 7 in x "));
  CHECK(refusal<ShapeError>([&] { attention(ones({2, 6, 5})); }).starts_with("MultiHeadAttention: x "));
}

}  // namespace
}  // namespace onestep::attention

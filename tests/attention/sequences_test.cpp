// Several sequences in the rows of one tensor: each as if it were alone.
#include <doctest/doctest.h>

#include "attention/factory.h"
#include "autograd/ops.h"
#include "tests/support.h"

namespace onestep::attention {
namespace {

std::unique_ptr<Attention> make(AttentionKind kind, const Options& more = {}) {
  Options options = more;
  options.d_in = options.d_out = 8;
  options.context_length = 9;
  if (kind > AttentionKind::causal)  // all after it have heads
    options.num_heads = 2;
  Generator generator(4);
  return make_attention(kind, options, generator);
}

void check_apart(const Attention& attention) {
  Generator generator(6);
  const Tensor x = randn({2, 9, 8}, generator), rows = x.reshape({18, 8});
  const std::vector<int64_t> lengths{4, 1, 4, 9};
  const Tensor together = attention.forward_apart(x, lengths);
  CHECK(together.shape() == Shape{2, 9, 8});
  const std::vector<float> all = together.to_vector<float>();
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const std::vector<float> alone = attention(rows.slice(0, begin, begin + length)).to_vector<float>();
    CHECK(alone == std::vector<float>(all.begin() + begin * 8, all.begin() + (begin + length) * 8));
    begin += length;
  }
}

TEST_CASE("attention: sequences in a row get the bits that each gets alone, in every type") {
  for (const AttentionKind kind : values_of<AttentionKind>()) {
    CAPTURE(name_of(kind));
    check_apart(*make(kind));
  }
  check_apart(*make(AttentionKind::fused_qkv, {.num_kv_heads = 1, .window = 2, .rope = true, .qk_norm = true}));
}

TEST_CASE("attention: sequences that do not make up the rows are refused") {
  const auto attention = make(AttentionKind::fused_qkv);
  const Tensor x = zeros({2, 9, 8});
  const auto refused = [&](const std::vector<int64_t>& lengths) {
    return onestep::testing::refusal<ShapeError>([&] { attention->forward_apart(x, lengths); });
  };
  CHECK(refused({4, 6, 8}) == "CausalSelfAttention: a sequence of 6 tokens after 4 others crosses the rows of x [2, 9, 8]");
  CHECK(refused({9}) == "CausalSelfAttention: the sequences have 9 tokens, x [2, 9, 8] has 18");
  CHECK_FALSE(refused({9, 9, 1}).empty());
  CHECK_FALSE(refused({0, 9, 9}).empty());
}

}  // namespace
}  // namespace onestep::attention

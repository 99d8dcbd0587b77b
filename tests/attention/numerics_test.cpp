// No NaN comes from a mask, in any attention type, and none from a masked token where the fused op computes.
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "attention/factory.h"
#include "tests/nn/check.h"

namespace onestep::attention {
namespace {

struct Path {
  const char* kind;
  AttentionOptions options;
};

/// Every type that masks, and every option that changes what is masked.
std::vector<Path> masking_paths() {
  const AttentionOptions one{.d_in = 8, .d_out = 8, .context_length = 40},
      many{.d_in = 8, .d_out = 8, .context_length = 40, .num_heads = 4};
  AttentionOptions grouped = many, windowed = many;
  grouped.num_kv_heads = 2;
  grouped.rope = true;
  windowed.window = 3;
  return {{"causal", one},     {"multi_head_wrapper", many}, {"multi_head", many},   {"einsum", many},
          {"fused_qkv", many}, {"fused_qkv", grouped},       {"fused_qkv", windowed}};
}

void fill(Tensor window, double value) {
  const NoGradGuard no_grad;
  fill_(window, value);
}

/// The mask buffers of a module: [T, T], true where a query must not look.
std::vector<Tensor> masks(const Attention& module) {
  std::vector<Tensor> found;
  for (const auto& [name, tensor] : module.state_dict())
    if (tensor.dtype() == DType::boolean) found.push_back(tensor);
  return found;
}

}  // namespace

TEST_CASE("numerics: a NaN in a later token reaches no earlier one") {
  for (const Path& path : masking_paths()) {
    if (std::string_view(path.kind) == "einsum") continue;  // shows every step: there a masked value meets a weight of 0
    CAPTURE(std::string(path.kind));
    CAPTURE(path.options.window);
    CAPTURE(path.options.num_kv_heads);
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Generator generator(5);
      const auto module = make_attention(path.kind, path.options, generator);
      const Tensor x = randn({2, 40, 8}, generator), broken = x.clone();
      fill(broken.slice(1, 30, 40), bad);
      const Tensor clean = (*module)(x), got = (*module)(broken);
      CHECK(equal(got.slice(1, 0, 30), clean.slice(1, 0, 30)));
      CHECK_FALSE(any(isfinite(got.slice(1, 30, 40))).item<bool>());
    }
  }
}

TEST_CASE("numerics: a NaN that left the window is not read") {
  Generator generator(5);
  const auto module =
      make_attention("fused_qkv", {.d_in = 8, .d_out = 8, .context_length = 40, .num_heads = 2, .window = 3}, generator);
  const Tensor x = randn({2, 40, 8}, generator), broken = x.clone();
  fill(broken.slice(1, 10, 12), std::numeric_limits<double>::quiet_NaN());
  const Tensor clean = (*module)(x), got = (*module)(broken);
  CHECK(equal(got.slice(1, 0, 10), clean.slice(1, 0, 10)));
  CHECK_FALSE(any(isfinite(got.slice(1, 10, 14))).item<bool>());
  CHECK(equal(got.slice(1, 14, 40), clean.slice(1, 14, 40)));
}

TEST_CASE("numerics: rows without a key give 0 and gradient 0 in every type with a mask") {
  std::set<std::string> tried;
  for (const Path& path : masking_paths()) {
    CAPTURE(std::string(path.kind));
    Generator generator(5);
    const auto module = make_attention(path.kind, path.options, generator);
    if (masks(*module).empty()) continue;  // always sees itself
    tried.insert(path.kind);
    for (const Tensor& mask : masks(*module)) fill(mask[7], 1);
    const Tensor x = randn({2, 40, 8}, generator);
    for (const bool with_weights : {false, true}) {
      CAPTURE(with_weights);
      Tensor leaf = x.clone().requires_grad_();
      const Tensor y = with_weights ? module->forward_with_weights(leaf).context : (*module)(leaf);
      const Tensor row = y.select(1, 7);
      CHECK(equal(row[0], row[1]));  // no token gets in: 0, or the projection's bias
      if (std::string_view(path.kind) == "causal" || std::string_view(path.kind) == "multi_head_wrapper")
        CHECK(equal(row, zeros({2, 8})));
      sum(row * row).backward({}, /*retain_graph=*/true);
      CHECK(equal(leaf.grad(), zeros({2, 40, 8})));
      module->zero_grad();
      sum(y * y).backward();
      CHECK(all(isfinite(leaf.grad())).item<bool>());
      for (const Tensor& parameter : module->parameters()) CHECK(all(isfinite(parameter.grad())).item<bool>());
    }
  }
  CHECK(tried == std::set<std::string>{"causal", "einsum", "multi_head", "multi_head_wrapper"});
}

}  // namespace onestep::attention

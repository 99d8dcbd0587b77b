// No NaN comes from a mask, in any attention type, and none from what is masked.
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "attention/factory.h"
#include "attention/mask.h"
#include "tests/nn/check.h"

namespace onestep::attention {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

struct Path {
  AttentionKind kind;
  Options options;
};

/// Every type that masks, and every option that changes what is masked.
std::vector<Path> masking_paths() {
  const Options one{.d_in = 8, .d_out = 8, .context_length = 40},
      many{.d_in = 8, .d_out = 8, .context_length = 40, .num_heads = 4};
  Options grouped = many, windowed = many;
  grouped.num_kv_heads = 2;
  grouped.rope = true;
  windowed.window = 3;
  return {{AttentionKind::causal, one},        {AttentionKind::multi_head_wrapper, many}, {AttentionKind::multi_head, many},
          {AttentionKind::einsum, many},       {AttentionKind::fused_qkv, many},          {AttentionKind::fused_qkv, grouped},
          {AttentionKind::fused_qkv, windowed}};
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
    CAPTURE(name_of(path.kind));
    CAPTURE(path.options.window);
    CAPTURE(path.options.num_kv_heads);
    for (const double bad : {kNan, kInfinity}) {
      Generator generator(5);
      const auto module = make_attention(path.kind, path.options, generator);
      const Tensor x = randn({2, 40, 8}, generator), broken = x.clone();
      fill(broken.slice(1, 30, 40), bad);
      const Tensor clean = (*module)(x), got = (*module)(broken);
      CHECK(equal(got.slice(1, 0, 30), clean.slice(1, 0, 30)));
      CHECK_FALSE(any(isfinite(got.slice(1, 30, 40))).item<bool>());
      const AttentionResult clean_steps = module->forward_with_weights(x), steps = module->forward_with_weights(broken);
      CHECK(equal(steps.context.slice(1, 0, 30), clean_steps.context.slice(1, 0, 30)));
      CHECK(equal(narrow(steps.weights, -2, 0, 30), narrow(clean_steps.weights, -2, 0, 30)));
    }
  }
}

TEST_CASE("numerics: masked tokens that are NaN reach neither the others nor any gradient") {
  // Nobody sees the last ten tokens, and they see nobody: padding.
  std::set<AttentionKind> tried;
  for (const Path& path : masking_paths()) {
    CAPTURE(name_of(path.kind));
    for (const bool with_weights : {false, true}) {
      CAPTURE(with_weights);
      Generator generator(5);
      const auto module = make_attention(path.kind, path.options, generator);
      if (masks(*module).empty()) continue;
      tried.insert(path.kind);
      for (const Tensor& mask : masks(*module)) fill(mask.slice(0, 30, 40), 1);
      const Tensor x = randn({2, 40, 8}, generator);
      std::vector<Tensor> contexts, grads;
      for (const double padding : {0.0, kNan}) {
        Tensor leaf = x.clone();
        fill(leaf.slice(1, 30, 40), padding);
        leaf.requires_grad_();
        const Tensor y = with_weights ? module->forward_with_weights(leaf).context : (*module)(leaf);
        sum(y * y).backward();
        contexts.push_back(y);
        grads.push_back(leaf.grad());
      }
      CHECK(equal(contexts[0], contexts[1]));
      CHECK(allclose(grads[1], grads[0], 1e-4, 1e-5));  // row by row they are summed in another order
      CHECK(any(ne(grads[0].slice(1, 0, 30), 0.0)).item<bool>());
    }
  }
  CHECK(tried ==
        std::set{AttentionKind::causal, AttentionKind::einsum, AttentionKind::multi_head, AttentionKind::multi_head_wrapper});
}

TEST_CASE("numerics: what a mask hides is not read by any path nor by its gradients") {
  Generator generator(7);
  const Tensor q = randn({2, 2, 70, 8}, generator), k = randn({2, 2, 90, 8}, generator), v = randn({2, 2, 90, 8}, generator);
  Tensor random_mask = lt(rand({70, 90}, generator), 0.5);  // true = hidden
  fill(random_mask.slice(1, 20, 30), 1);                    // from all, and the last ones, too
  fill(random_mask.slice(1, 80, 90), 1);
  fill(random_mask[11], 1);  // sees nothing
  const nn::Dropout none(0.0, generator), half(0.5, generator);
  for (const nn::Dropout* dropout : {&none, &half})
    for (const bool with_weights : {false, true}) {
      CAPTURE(with_weights);
      std::vector<std::vector<Tensor>> results;
      for (const double hidden : {1.0, kNan, kInfinity}) {
        Tensor query = q.clone(), key = k.clone(), value = v.clone(), weights;
        fill(query.slice(2, 11, 12), hidden);
        for (const int64_t from : {20, 80})
          fill(key.slice(2, from, from + 10), hidden), fill(value.slice(2, from, from + 10), hidden);
        for (Tensor* x : {&query, &key, &value}) x->requires_grad_();
        generator.manual_seed(3);
        const Tensor y = masked_attention(query, key, value, random_mask, *dropout, with_weights ? &weights : nullptr);
        sum(y * y).backward();
        results.push_back({y, query.grad(), key.grad(), value.grad()});
      }
      for (const size_t other : {1u, 2u}) {
        CHECK(equal(results[other][0], results[0][0]));
        for (size_t i = 1; i < results[0].size(); ++i)
          CHECK((with_weights ? allclose(results[other][i], results[0][i], 1e-4, 1e-5)
                              : equal(results[other][i], results[0][i])));
      }
    }
}

TEST_CASE("numerics: a causal mask has the bits of the mask that hides and shows the same keys") {
  Generator generator(9);
  const nn::Dropout none(0.0, generator);
  for (const int64_t T : {1, 6, 70}) {
    const Tensor q = randn({2, T, 8}, generator), k = randn({2, 70, 8}, generator), v = randn({2, 70, 8}, generator);
    Tensor one_more = last_rows(causal_mask(70), T, 70).clone(), one_less = one_more.clone();
    fill(one_more[0].slice(0, 3, 4), 1);
    fill(one_less[0].slice(0, 69, 70), 0);
    const Tensor none_for_all = zeros({1, 1}, DType::boolean), by_batch = stack({one_more, one_less}, 0);
    for (const Tensor& mask : {last_rows(causal_mask(70), T, 70), one_more, one_less, none_for_all, by_batch}) {
      CAPTURE(T);
      std::vector<std::vector<Tensor>> results;
      for (const bool by_module : {false, true}) {
        Tensor query = q.clone().requires_grad_(), key = k.clone().requires_grad_(), value = v.clone().requires_grad_();
        const Tensor y = by_module ? masked_attention(query, key, value, mask, none)
                                   : scaled_dot_product_attention(query, key, value, {.mask = logical_not(mask)});
        sum(y * y).backward();
        results.push_back({y.detach(), query.grad(), key.grad(), value.grad()});
      }
      for (size_t i = 0; i < results[0].size(); ++i) CHECK(equal(results[1][i], results[0][i]));
    }
  }
}

TEST_CASE("numerics: a NaN that left the window is not read") {
  Generator generator(5);
  const auto module = make_attention(AttentionKind::fused_qkv,
                                     {.d_in = 8, .d_out = 8, .context_length = 40, .num_heads = 2, .window = 3}, generator);
  const Tensor x = randn({2, 40, 8}, generator), broken = x.clone();
  fill(broken.slice(1, 10, 12), std::numeric_limits<double>::quiet_NaN());
  const Tensor clean = (*module)(x), got = (*module)(broken);
  CHECK(equal(got.slice(1, 0, 10), clean.slice(1, 0, 10)));
  CHECK_FALSE(any(isfinite(got.slice(1, 10, 14))).item<bool>());
  CHECK(equal(got.slice(1, 14, 40), clean.slice(1, 14, 40)));
}

TEST_CASE("numerics: rows without a key give 0 and gradient 0 in every type with a mask") {
  std::set<AttentionKind> tried;
  for (const Path& path : masking_paths()) {
    CAPTURE(name_of(path.kind));
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
      if (path.kind == AttentionKind::causal || path.kind == AttentionKind::multi_head_wrapper)
        CHECK(equal(row, zeros({2, 8})));
      sum(row * row).backward({}, /*retain_graph=*/true);
      CHECK(equal(leaf.grad(), zeros({2, 40, 8})));
      module->zero_grad();
      sum(y * y).backward();
      CHECK(all(isfinite(leaf.grad())).item<bool>());
      for (const Tensor& parameter : module->parameters()) CHECK(all(isfinite(parameter.grad())).item<bool>());
    }
  }
  CHECK(tried ==
        std::set{AttentionKind::causal, AttentionKind::einsum, AttentionKind::multi_head, AttentionKind::multi_head_wrapper});
}

}  // namespace onestep::attention

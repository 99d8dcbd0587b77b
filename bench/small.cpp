// Small graphs: the overhead of a framework per op.
#include <functional>
#include <map>

#include "attention/multi_head_attention.h"
#include "autograd/operators.h"
#include "autograd/ops_loss.h"
#include "autograd/ops_shape.h"
#include "bench/header.h"
#include "bench/workloads.h"
#include "nn/activation.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"

namespace onestep::bench {
namespace {

constexpr int64_t kChain = 100, kLongChain = 1'000'000;

struct Case {
  std::function<void()> call;
  int64_t ops = 1;  ///< In one call, for the time per op.
};

/// One SGD step of a 2-16-16-1 tanh MLP with mean squared error on 32 points.
Case mlp() {
  Generator g(0);
  const auto model = std::make_shared<nn::Sequential>();
  model->emplace_back<nn::Linear>(2, 16, true, g);
  model->emplace_back<nn::Tanh>();
  model->emplace_back<nn::Linear>(16, 16, true, g);
  model->emplace_back<nn::Tanh>();
  model->emplace_back<nn::Linear>(16, 1, true, g);
  const auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions{.lr = 0.05});
  const Tensor x = randn({32, 2}, g), y = tanh(mul(x.select(1, 0), x.select(1, 1))).view({32, 1});
  return {[model, optimizer, x, y] {
    optimizer->zero_grad();
    mse_loss(model->forward(x), y).backward();
    optimizer->step();
  }};
}

/// Causal attention of the book's size, forward and backward of the sum.
Case mha() {
  Generator g(0);
  auto module = std::make_shared<attention::MultiHeadAttention>(3, 2, 6, 0.0, 2, false, g);
  const Tensor x = randn({2, 6, 3}, g);
  return {[module, parameters = module->parameters(), x]() mutable {
    for (Tensor& parameter : parameters) parameter.zero_grad();
    sum(module->forward(x)).backward();
  }};
}

/// A chain of y = y b + a, `ops` ops in all.
Case scalar_ops(int64_t ops) {
  Tensor a = full({}, 1.001).requires_grad_(), b = full({}, 0.999).requires_grad_();
  return {[a, b, ops]() mutable {
            a.zero_grad();
            b.zero_grad();
            Tensor y = a;
            for (int64_t i = 0; i < ops / 2; ++i) y = y * b + a;
            y.backward();
          },
          ops};
}

/// y = y + x on 4 elements; recorded if x requires a gradient.
Case additions(bool recorded) {
  const Tensor x = ones({4}).requires_grad_(recorded);
  return {[x] {
            Tensor y = x;
            for (int64_t i = 0; i < kChain; ++i) y = y + x;
          },
          kChain};
}

}  // namespace

nlohmann::ordered_json bench_small(const std::string& which, double seconds) {
  const std::map<std::string, std::function<Case()>> cases = {{"mlp", mlp},
                                                              {"mha", mha},
                                                              {"scalarops", [] { return scalar_ops(kChain); }},
                                                              {"addchain", [] { return additions(false); }},
                                                              {"recorded", [] { return additions(true); }},
                                                              {"backward", [] { return scalar_ops(kLongChain); }}};
  const auto found = cases.find(which);
  ONESTEP_CHECK(ConfigError, found != cases.end(),
                "bench small: --case must be mlp, mha, scalarops, addchain, recorded or backward: got ", which);
  const Case c = found->second();
  c.call();
  const double first = process_age();
  const Timing t = time_calls(c.call, {.warmup = c.ops < kLongChain ? 20 : 1, .seconds = seconds});
  auto result = header("small");
  result["case"] = which;
  result["median_us"] = 1e3 * t.median_ms;
  if (c.ops > 1) result["per_op_ns"] = 1e6 * t.median_ms / static_cast<double>(c.ops);
  return report(std::move(result), t, first);
}

}  // namespace onestep::bench

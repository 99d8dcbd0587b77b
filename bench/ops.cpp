// Single ops on tensors larger than the caches of a core.
#include "autograd/ops.h"

#include <functional>
#include <map>

#include "autograd/random/generator.h"
#include "bench/header.h"
#include "bench/workloads.h"

namespace onestep::bench {
namespace {

constexpr int64_t kRows = 2048, kCols = 1024, kTokens = 512;

/// What the ops are applied to; all of [kRows, kCols] unless they say otherwise.
struct Inputs {
  Generator g{0};
  Tensor x = randn({kRows, kCols}, g).requires_grad_(), y = randn({kRows, kCols}, g).requires_grad_();
  Tensor positive = add(abs(randn({kRows, kCols}, g)), 0.1).requires_grad_();
  Tensor row = randn({kCols}, g).requires_grad_();  ///< [kCols]
  Tensor mask = gt(randn({kRows, kCols}, g), 0.0);  ///< Half of them true.
  Tensor rows = randint(0, kRows, {kRows}, g), cols = randint(0, kCols, {kRows}, g);
  Tensor heads = randn({8, kTokens, 64}, g).requires_grad_();  ///< [heads, tokens, features]
  Tensor attended = gt(randn({kTokens, kTokens}, g), 0.0);     ///< [tokens, tokens]
};

using Op = std::function<Tensor(const Inputs&)>;

const std::map<std::string, Op>& cases() {
  static const std::map<std::string, Op> all = {
      {"abs", [](const Inputs& in) { return abs(in.x); }},
      {"add", [](const Inputs& in) { return add(in.x, in.y); }},
      {"add_row", [](const Inputs& in) { return add(in.x, in.row); }},
      {"add_transposed", [](const Inputs& in) { return add(t(in.x), t(in.y)); }},
      {"attention_mask",
       [](const Inputs& in) { return scaled_dot_product_attention(in.heads, in.heads, in.heads, {.mask = in.attended}); }},
      {"bmm", [](const Inputs& in) { return matmul(in.heads, transpose(in.heads, 1, 2)); }},
      {"cat",
       [](const Inputs& in) {
         return cat({in.x, in.y}, 1);
       }},
      {"cross_entropy", [](const Inputs& in) { return cross_entropy(in.x, in.cols); }},
      {"cumsum", [](const Inputs& in) { return cumsum(in.x, 1); }},
      {"div", [](const Inputs& in) { return div(in.x, in.positive); }},
      {"dropout", [](const Inputs& in) { return dropout(in.x, 0.1); }},
      {"embedding", [](const Inputs& in) { return embedding(in.rows, in.x); }},
      {"exp", [](const Inputs& in) { return exp(in.x); }},
      {"gelu", [](const Inputs& in) { return gelu(in.x); }},
      {"index_select", [](const Inputs& in) { return index_select(in.x, 1, in.cols); }},
      {"layer_norm", [](const Inputs& in) { return layer_norm(in.x, {kCols}, in.row, in.row); }},
      {"log", [](const Inputs& in) { return log(in.positive); }},
      {"logsumexp", [](const Inputs& in) { return logsumexp(in.x, {1}); }},
      {"masked_fill", [](const Inputs& in) { return masked_fill(in.x, in.mask, 0.0); }},
      {"max", [](const Inputs& in) { return max(in.x, 1).values; }},
      {"maximum", [](const Inputs& in) { return maximum(in.x, in.y); }},
      {"mean", [](const Inputs& in) { return mean(in.x, {1}); }},
      {"mse_loss", [](const Inputs& in) { return mse_loss(in.x, in.y); }},
      {"mul", [](const Inputs& in) { return mul(in.x, in.y); }},
      {"mv", [](const Inputs& in) { return matmul(in.x, in.row); }},
      {"norm", [](const Inputs& in) { return norm(in.x); }},
      {"pow", [](const Inputs& in) { return pow(in.positive, 1.5); }},
      {"pow_tensor", [](const Inputs& in) { return pow(in.positive, in.y); }},
      {"relu", [](const Inputs& in) { return relu(in.x); }},
      {"sigmoid", [](const Inputs& in) { return sigmoid(in.x); }},
      {"silu", [](const Inputs& in) { return silu(in.x); }},
      {"softmax", [](const Inputs& in) { return softmax(in.x, 1); }},
      {"softmax_columns", [](const Inputs& in) { return softmax(in.x, 0); }},
      {"sqrt", [](const Inputs& in) { return sqrt(in.positive); }},
      {"sum", [](const Inputs& in) { return sum(in.x); }},
      {"sum_columns", [](const Inputs& in) { return sum(in.x, {0}); }},
      {"tanh", [](const Inputs& in) { return tanh(in.x); }},
      {"transpose", [](const Inputs& in) { return contiguous(t(in.x)); }},
      {"tril", [](const Inputs& in) { return tril(in.x); }},
      {"var", [](const Inputs& in) { return var(in.x, {1}); }},
      {"where", [](const Inputs& in) { return where(in.mask, in.x, in.y); }},
  };
  return all;
}

}  // namespace

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto& [name, _] : cases()) names.push_back(name);
  return names;
}

nlohmann::ordered_json bench_op(const OpWork& work, double seconds) {
  const Op& op = cases().at(work.op);
  Inputs in;
  const Tensor dy = ones(op(in).shape());
  std::vector<Tensor> leaves = {in.x, in.y, in.positive, in.row, in.heads};
  const auto call = [&] {
    if (!work.backward) {
      const NoGradGuard no_grad;
      op(in);
      return;
    }
    for (Tensor& leaf : leaves) leaf.zero_grad();
    op(in).backward(dy);
  };
  call();
  const double first = process_age();
  auto result = header("op");
  result.update({{"mode", work.backward ? "fwdbwd" : "fwd"}, {"op", work.op}});
  return report(std::move(result), time_calls(call, {.seconds = seconds}), first);
}

}  // namespace onestep::bench

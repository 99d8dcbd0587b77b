// Rules save what they need and no more: what PyTorch lets a program do between an op and its backward pass
// (tests/goldens/saved.json), the engine does, too, and the gradients are those of a program that does nothing in between.
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/grad.h"
#include "autograd/ops.h"
#include "tests/goldens.h"

namespace onestep {
namespace {

struct Inputs {
  Tensor a, b, row;
};
using Call = std::function<Tensor(const Inputs&)>;

Call unary(Tensor (*op)(const Tensor&)) {
  return [op](const Inputs& in) { return op(in.a); };
}
Call binary(Tensor (*op)(const Tensor&, const Tensor&)) {
  return [op](const Inputs& in) { return op(in.a, in.b); };
}

Tensor index() { return tensor({2, 0, 2}); }

Call cross_entropy_with(const CrossEntropyOptions& options) {
  return [options](const Inputs& in) { return cross_entropy(in.a, index(), options); };
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
      {"add", binary(add)},
      {"sub", binary(sub)},
      {"mul", binary(mul)},
      {"div", binary(div)},
      {"pow", binary(pow)},
      {"maximum", binary(maximum)},
      {"minimum", binary(minimum)},
      {"add_number", [](const Inputs& in) { return in.a + 2.0; }},
      {"number_minus", [](const Inputs& in) { return 2.0 - in.a; }},
      {"mul_number", [](const Inputs& in) { return in.a * 2.0; }},
      {"div_number", [](const Inputs& in) { return in.a / 2.0; }},
      {"number_over", [](const Inputs& in) { return 2.0 / in.a; }},
      {"pow_0", [](const Inputs& in) { return pow(in.a, 0); }},
      {"pow_2", [](const Inputs& in) { return pow(in.a, 2); }},
      {"pow_3", [](const Inputs& in) { return pow(in.a, 3); }},
      {"neg", unary(neg)},
      {"exp", unary(exp)},
      {"log", unary(log)},
      {"sqrt", unary(sqrt)},
      {"rsqrt", unary(rsqrt)},
      {"sin", unary(sin)},
      {"cos", unary(cos)},
      {"tanh", unary(tanh)},
      {"sigmoid", unary(sigmoid)},
      {"abs", unary(abs)},
      {"relu", unary(relu)},
      {"gelu", [](const Inputs& in) { return gelu(in.a); }},
      {"gelu_tanh", [](const Inputs& in) { return gelu(in.a, GeluApproximation::tanh); }},
      {"silu", unary(silu)},
      {"where", [](const Inputs& in) { return where(tensor({true}), in.a, in.b); }},
      {"masked_fill",
       [](const Inputs& in) {
         return masked_fill(in.a, tensor({true, false, true, false}), 0.5);
       }},
      {"tril", [](const Inputs& in) { return tril(in.a); }},
      {"triu", [](const Inputs& in) { return triu(in.a); }},
      {"clone", unary(clone)},
      {"to", [](const Inputs& in) { return to(in.a, DType::float32); }},
      {"sum", [](const Inputs& in) { return sum(in.a); }},
      {"sum_dim", [](const Inputs& in) { return sum(in.a, 1); }},
      {"mean", [](const Inputs& in) { return mean(in.a); }},
      {"mean_dim", [](const Inputs& in) { return mean(in.a, 0); }},
      {"var", [](const Inputs& in) { return var(in.a, {}); }},
      {"var_dim", [](const Inputs& in) { return var(in.a, 1); }},
      {"amax", [](const Inputs& in) { return amax(in.a, 1); }},
      {"max", [](const Inputs& in) { return max(in.a); }},
      {"max_dim", [](const Inputs& in) { return max(in.a, 1, false).values; }},
      {"cumsum", [](const Inputs& in) { return cumsum(in.a, 1); }},
      {"softmax", [](const Inputs& in) { return softmax(in.a, 1); }},
      {"softmax_0", [](const Inputs& in) { return softmax(in.a, 0); }},
      {"log_softmax", [](const Inputs& in) { return log_softmax(in.a, 1); }},
      {"log_softmax_0", [](const Inputs& in) { return log_softmax(in.a, 0); }},
      {"logsumexp", [](const Inputs& in) { return logsumexp(in.a, 1); }},
      {"matmul", [](const Inputs& in) { return matmul(in.a, t(in.b)); }},
      {"linear", [](const Inputs& in) { return linear(in.a, in.b); }},
      {"linear_bias",
       [](const Inputs& in) {
         return linear(in.a, ones({4, 4}, in.a.dtype()), in.row);
       }},
      {"dot", [](const Inputs& in) { return dot(in.a[0], in.b[0]); }},
      {"einsum",
       [](const Inputs& in) {
         return einsum("ij,kj->ik", {in.a, in.b});
       }},
      {"cat",
       [](const Inputs& in) {
         return cat({in.a, in.b}, 0);
       }},
      {"cat_many",
       [](const Inputs& in) {
         std::vector<Tensor> parts;
         for (int i = 0; i < 9; ++i) parts.insert(parts.end(), {in.a, in.b});
         return cat(parts, 0);
       }},
      {"stack",
       [](const Inputs& in) {
         return stack({in.a, in.b}, 0);
       }},
      {"index_select", [](const Inputs& in) { return index_select(in.a, 0, index()); }},
      {"gather",
       [](const Inputs& in) {
         return gather(in.a, 1, index().view({3, 1}));
       }},
      {"embedding", [](const Inputs& in) { return embedding(index(), in.a); }},
      {"layer_norm", [](const Inputs& in) { return layer_norm(in.a, 4, in.row); }},
      {"layer_norm_plain", [](const Inputs& in) { return layer_norm(in.a, 4); }},
      {"layer_norm_bias", [](const Inputs& in) { return layer_norm(in.a, 4, ones(4, in.a.dtype()), in.row); }},
      {"cross_entropy", cross_entropy_with({})},
      {"cross_entropy_sum", cross_entropy_with({.reduction = Reduction::sum, .label_smoothing = 0.1})},
      {"cross_entropy_none", cross_entropy_with({.reduction = Reduction::none})},
      {"nll_loss", [](const Inputs& in) { return nll_loss(in.a, index()); }},
      {"mse_loss", [](const Inputs& in) { return mse_loss(in.a, in.b); }},
      {"mse_loss_none", [](const Inputs& in) { return mse_loss(in.a, in.b, Reduction::none); }},
      {"attention",
       [](const Inputs& in) {
         const Tensor keys = in.b.view({1, 3, 4});
         return scaled_dot_product_attention(in.a.view({1, 3, 4}), keys, keys);
       }},
  };
  return table;
}

/// The gradients of the inputs in `needs` when `between` ("a", "out", ..., "again" or nothing) happens before a pass, which is
/// recorded with `create_graph`.
std::vector<Tensor> gradients(const Call& call, const std::vector<std::string>& needs, const std::string& between,
                              bool create_graph) {
  std::map<std::string, Tensor> inputs = {
      {"a", arange(1.0, 13).view({3, 4}) / 8}, {"b", arange(13.0, 1, -1).view({3, 4}) / 8}, {"row", arange(1.0, 5)}};
  std::vector<Tensor> leaves;
  for (auto& [name, x] : inputs) x = x.to(DType::float64).clone();
  for (const std::string& name : needs) {
    leaves.push_back(inputs[name].requires_grad_());
    inputs[name] = clone(inputs[name]);
  }
  Tensor out = call({inputs["a"], inputs["b"], inputs["row"]});
  inputs["out"] = out;
  if (inputs.contains(between) && !between.empty()) add_(inputs[between], ones({}, out.dtype()));
  const Tensor dy = arange(1.0, static_cast<double>(out.numel()) + 1).to(out.dtype()).view(out.shape());
  if (create_graph) return autograd::grad({out}, leaves, {dy}, {.create_graph = true});
  out.backward(dy);
  if (between == "again") {
    for (Tensor& leaf : leaves) leaf.zero_grad();
    out.backward(dy);
  }
  std::vector<Tensor> grads;
  grads.reserve(leaves.size());
  for (const Tensor& leaf : leaves) grads.push_back(leaf.grad());
  return grads;
}

}  // namespace

TEST_CASE("saved tensors: what no rule needs may be changed before backward, and where nothing is saved it runs twice") {
  const nlohmann::json& goldens = testing::golden("saved.json")["ops"];
  size_t found = 0;
  std::string last;
  for (const auto& golden : goldens.items()) {
    const std::string& key = golden.key();
    CAPTURE(key);
    std::istringstream words(key);
    std::string op, need;
    words >> op;
    std::vector<std::string> needs;
    while (words >> need) needs.push_back(need);
    REQUIRE(calls().contains(op));
    found += op != last;
    last = op;
    for (const bool create_graph : {false, true}) {
      CAPTURE(create_graph);
      const std::vector<Tensor> want = gradients(calls().at(op), needs, "", create_graph);
      for (const std::string between : golden.value()) {
        CAPTURE(between);
        std::vector<Tensor> got;
        CHECK_NOTHROW(got = gradients(calls().at(op), needs, between, create_graph));
        REQUIRE(got.size() == want.size());
        for (size_t i = 0; i < got.size(); ++i) CHECK(equal(got[i], want[i]));
      }
    }
  }
  CHECK(found == calls().size());
}

}  // namespace onestep

// Every op of tests/goldens/reference.json: values and gradients as PyTorch computes them, in float32 and float64.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "tests/goldens.h"

namespace onestep {
namespace {

using testing::number;
using testing::numbers;

constexpr int64_t kAllKeys = 1 << 30;

Shape shape_of(const nlohmann::json& sizes) { return Shape(sizes.get<std::vector<int64_t>>()); }

/// One golden case in one floating dtype.
struct Case {
  Case(const nlohmann::json& golden, DType floating) : attributes(golden.value("attributes", nlohmann::json::object())) {
    for (const auto& [name, input] : golden["inputs"].items()) {
      const bool integral = name == "index" || name == "target";
      const DType dtype = name == "mask" ? DType::boolean : integral ? DType::int64 : floating;
      Tensor x = to(from_values(numbers<double>(input["values"]), shape_of(input["shape"])), dtype);
      if (x.is_floating()) x.requires_grad_();
      inputs[name] = x;
    }
  }
  const Tensor& operator[](const std::string& name) const { return inputs.at(name); }
  template <class T>
  T attribute(const std::string& name, T otherwise) const {
    return attributes.contains(name) && !attributes[name].is_null() ? attributes[name].get<T>() : otherwise;
  }
  Shape dims() const {
    if (!attributes.contains("dim") || attributes["dim"].is_null()) return {};
    return attributes["dim"].is_array() ? shape_of(attributes["dim"]) : Shape(attributes["dim"].get<int64_t>());
  }
  bool keepdim() const { return attribute("keepdim", false); }

  nlohmann::json attributes;
  std::map<std::string, Tensor> inputs;
};

using Call = std::function<Tensor(const Case&)>;

Call unary(Tensor (*op)(const Tensor&)) {
  return [op](const Case& c) { return op(c["a"]); };
}
Call binary(Tensor (*op)(const Tensor&, const Tensor&)) {
  return [op](const Case& c) { return op(c["a"], c["b"]); };
}
Call power(double exponent) {
  return [exponent](const Case& c) { return pow(c["a"], exponent); };
}

Tensor normalized(const Case& c) {
  const Tensor &x = c["x"], weight = c.inputs.contains("w") ? c["w"] : Tensor();
  const Shape last = weight.defined() ? weight.shape() : Shape(x.shape().back());
  return layer_norm(x, last, weight, weight.defined() ? c["b"] : Tensor(), c.attribute("eps", 1e-5));
}

Call cross_entropy_with(Reduction reduction) {
  return [reduction](const Case& c) {
    const CrossEntropyOptions options{reduction, c.attribute<int64_t>("ignore_index", -100),
                                      c.attribute("label_smoothing", 0.0)};
    return cross_entropy(c["x"].dim() > 2 ? flatten(c["x"], 0, -2) : c["x"], flatten(c["target"]), options);
  };
}

Tensor attention(const Case& c) {
  AttentionOptions options{.is_causal = c.attribute("is_causal", false)};
  if (c.inputs.contains("mask")) options.mask = c["mask"];
  if (c.attributes.contains("scale")) options.scale = c.attributes["scale"].get<double>();
  return scaled_dot_product_attention(c["q"], c["k"], c["v"], options);
}

Tensor masked_softmax(const Case& c) { return softmax(masked_fill(c["a"], c["mask"], -INFINITY), -1); }

/// How to compute a golden case: by its id, or by the id up to an underscore.
const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
      {"matmul", binary(matmul)},
      {"matmul_4d_transposed", [](const Case& c) { return matmul(c["q"], transpose(c["k"], -2, -1)); }},
      {"linear_bias", [](const Case& c) { return linear(c["x"], c["w"], c["b"]); }},
      {"add", binary(add)},
      {"sub", binary(sub)},
      {"mul", binary(mul)},
      {"div", binary(div)},
      {"div_by_number", [](const Case& c) { return c["a"] / c.attribute("divisor", 0.0); }},
      {"mul_same", [](const Case& c) { return c["a"] * c["a"]; }},
      {"sum", [](const Case& c) { return sum(c["a"], c.dims(), c.keepdim()); }},
      {"mean", [](const Case& c) { return mean(c["a"], c.dims(), c.keepdim()); }},
      {"var", [](const Case& c) { return var(c["a"], -1, c.attribute<double>("correction", 1.0), c.keepdim()); }},
      {"softmax", [](const Case& c) { return softmax(c["a"], c.dims()[0]); }},
      {"log_softmax", [](const Case& c) { return log_softmax(c["a"], c.dims()[0]); }},
      {"masked_fill", [](const Case& c) { return masked_fill(c["a"], c["mask"], number(c.attributes["value"])); }},
      {"masked_softmax", masked_softmax},
      {"dropout", [](const Case& c) { return dropout(c["a"], c.attribute("p", 1.0), c.attribute("training", true)); }},
      {"transpose", [](const Case& c) { return transpose(c["a"], 0, 2); }},
      {"permute", [](const Case& c) { return permute(c["a"], shape_of(c.attributes["dims"])); }},
      {"view",
       [](const Case& c) {
         return view(c["a"], {3, 4});
       }},
      {"view_infer",
       [](const Case& c) {
         return view(c["a"], {2, -1});
       }},
      {"reshape_of_transpose",
       [](const Case& c) {
         return reshape(t(c["a"]), {2, 6});
       }},
      {"split_heads_and_back",
       [](const Case& c) {
         const Tensor heads = transpose(view(c["a"], {1, 3, 2, 2}), 1, 2) * 2;
         return view(contiguous(transpose(heads, 1, 2)), {1, 3, 4});
       }},
      {"contiguous", [](const Case& c) { return contiguous(t(c["a"])); }},
      {"cat",
       [](const Case& c) {
         return cat({c["a"], c["b"]}, c.dims()[0]);
       }},
      {"cat_last_three",
       [](const Case& c) {
         return cat({c["a"], c["b"], c["c"]}, c.dims()[0]);
       }},
      {"stack",
       [](const Case& c) {
         return stack({c["a"], c["b"]}, c.dims()[0]);
       }},
      {"stack_same",
       [](const Case& c) {
         return stack({c["a"], c["a"]}, c.dims()[0]);
       }},
      {"slice", [](const Case& c) { return slice(slice(c["a"], 1, 1, 3), 2, 0, kAllKeys, 2); }},
      {"select_row", [](const Case& c) { return c["a"][1]; }},
      {"expand",
       [](const Case& c) {
         return expand(c["a"], {2, 3, 4});
       }},
      {"unsqueeze_squeeze", [](const Case& c) { return squeeze(unsqueeze(c["a"], 1), 0); }},
      {"tril", [](const Case& c) { return tril(c["a"]); }},
      {"triu", [](const Case& c) { return triu(c["a"], c.attribute<int64_t>("diagonal", 0)); }},
      {"relu", unary(relu)},
      {"gelu_erf", [](const Case& c) { return gelu(c["a"]); }},
      {"gelu_tanh", [](const Case& c) { return gelu(c["a"], GeluApproximation::tanh); }},
      {"tanh", unary(tanh)},
      {"sigmoid", unary(sigmoid)},
      {"silu", unary(silu)},
      {"exp", unary(exp)},
      {"neg", unary(neg)},
      {"abs", unary(abs)},
      {"sin", unary(sin)},
      {"cos", unary(cos)},
      {"log", unary(log)},
      {"sqrt", unary(sqrt)},
      {"rsqrt", unary(rsqrt)},
      {"pow_2", power(2)},
      {"pow_3", power(3)},
      {"pow_half", power(0.5)},
      {"pow_minus1", power(-1)},
      {"pow_1p7", power(1.7)},
      {"pow_tensor", [](const Case& c) { return pow(c["a"], c["b"]); }},
      {"layer_norm", normalized},
      {"embedding", [](const Case& c) { return embedding(c["index"], c["w"]); }},
      {"embedding_padding",
       [](const Case& c) { return embedding(c["index"], c["w"], c.attribute<int64_t>("padding_idx", -1)); }},
      {"cross_entropy", cross_entropy_with(Reduction::mean)},
      {"cross_entropy_sum", cross_entropy_with(Reduction::sum)},
      {"cross_entropy_none", cross_entropy_with(Reduction::none)},
      {"mse_mean", [](const Case& c) { return mse_loss(c["a"], c["b"]); }},
      {"sdpa", attention},
  };
  return table;
}

Tensor compute(const std::string& id, const Case& c) {
  for (std::string name = id;; name.erase(name.rfind('_'))) {
    if (const auto call = calls().find(name); call != calls().end()) return call->second(c);
    REQUIRE_MESSAGE(name.find('_') != std::string::npos, "no call for " << id);
  }
}

/// |got - want| <= absolute + relative |want|; NaN equals NaN, an infinity itself.
void compare(const std::string& what, const Tensor& got, const nlohmann::json& want, double relative, double absolute) {
  INFO(what);
  const std::vector<double> values = got.to_vector<double>(), wanted = numbers<double>(want);
  REQUIRE(values.size() == wanted.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool same = values[i] == wanted[i] || (std::isnan(values[i]) && std::isnan(wanted[i])) ||
                      std::abs(values[i] - wanted[i]) <= absolute + relative * std::abs(wanted[i]);
    CHECK_MESSAGE(same, "element " << i << ": " << values[i] << " and not " << wanted[i]);
  }
}

/// Both dtypes are held against PyTorch's float64 results: its own float32 results lie within the same tolerance of them.
void check_golden(const nlohmann::json& golden, DType dtype, double relative, double absolute) {
  const Case c(golden, dtype);
  const Tensor y = compute(golden["id"].get<std::string>(), c);
  CHECK(y.dtype() == dtype);
  CHECK(y.shape() == shape_of(golden["out_shape"]));
  compare("the result", y, golden["f64"]["out"], relative, absolute);
  y.backward(to(from_values(numbers<double>(golden["grad_out"]), y.shape()), dtype));
  for (const auto& [name, want] : golden["f64"]["grads"].items()) {
    REQUIRE(c[name].grad().defined());
    compare("the gradient of " + name, c[name].grad(), want, relative, absolute);
  }
}

}  // namespace

TEST_CASE("reference goldens: every op in float32 and float64") {
  const nlohmann::json& goldens = testing::golden("reference.json")["ops"];
  CHECK(goldens.size() == 120);
  for (const nlohmann::json& golden : goldens) {
    CAPTURE(golden["id"].get<std::string>());
    check_golden(golden, DType::float32, 2e-6, 1e-6);
    check_golden(golden, DType::float64, 1e-13, 1e-14);
  }
}

}  // namespace onestep

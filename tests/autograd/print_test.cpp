// Printed tensors against PyTorch's own output (goldens/print.json, made by print.py beside it).
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <sstream>

#include "autograd/ops.h"
#include "tests/goldens.h"

namespace onestep {
namespace {

Tensor listed_values(const nlohmann::json& c) {
  const std::map<std::string, DType> dtypes{
      {"float32", DType::float32}, {"float64", DType::float64}, {"int64", DType::int64}, {"bool", DType::boolean}};
  Tensor x = empty(Shape(c.at("shape").get<std::vector<int64_t>>()), dtypes.at(c.at("dtype")));
  const nlohmann::json& values = c.at("values");
  dispatch(x.dtype(), [&]<class T>() {
    T* to = x.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const nlohmann::json& v = values[static_cast<size_t>(i) % values.size()];
      to[i] = v.is_number_integer() ? static_cast<T>(v.get<int64_t>())
              : v.is_boolean()      ? static_cast<T>(v.get<bool>())
                                    : static_cast<T>(testing::number(v));
    }
  });
  return x;
}

Tensor made_by(const std::string& op, Tensor x) {
  if (op.empty()) return x;
  x.requires_grad_();
  const std::map<std::string, std::function<Tensor()>> makers{
      {"leaf", [&] { return x; }},
      {"exp", [&] { return exp(x); }},
      {"neg", [&] { return neg(x); }},
      {"softmax", [&] { return softmax(x, -1); }},
      {"log_softmax", [&] { return log_softmax(x, -1); }},
      {"transpose", [&] { return transpose(x, 0, 1); }},
      {"select", [&] { return x[0]; }},
      {"slice", [&] { return slice(x, 0, 0, 1); }},
      {"masked_fill_",
       [&] {
         Tensor y = clone(x);
         return masked_fill_(y, gt(x, 0), 0);
       }},
      {"detach", [&] { return x.detach(); }},
      {"matmul", [&] { return matmul(x, x.t()); }},
      {"linear", [&] { return linear(x, x); }},
      {"linear with bias", [&] { return linear(x, x, x.select(1, 0)); }},
      {"layer_norm", [&] { return layer_norm(x, x.shape().back()); }},
      {"cross_entropy", [&] { return cross_entropy(x, zeros(x.shape()[0], DType::int64)); }},
      {"reshape", [&] { return reshape(x, {-1}); }},
      {"to", [&] { return to(x, DType::float64); }},
      {"sum", [&] { return sum(x); }},
      {"sum over dim", [&] { return sum(x, {0}); }},
      {"mean", [&] { return mean(x); }},
      {"mean over dim", [&] { return mean(x, {0}); }},
      {"pow", [&] { return pow(x, 2); }},
      {"pow of tensors", [&] { return pow(x, x); }},
  };
  return makers.at(op)();
}

TEST_CASE("print: the same text as PyTorch") {
  const nlohmann::json& cases = testing::golden("print.json").at("cases");
  REQUIRE(cases.size() >= 100);
  for (const nlohmann::json& c : cases) {
    const Tensor x = made_by(c.at("op"), listed_values(c));
    CHECK(to_string(x) == c.at("text").get<std::string>());
  }
}

TEST_CASE("print: strides do not matter and printing records nothing") {
  const Tensor x = tensor({{1.0, 2.5, 3.0}, {4.0, 5.0, 6.0}});
  CHECK(to_string(x.t()) == "tensor([[1.0000, 4.0000],\n        [2.5000, 5.0000],\n        [3.0000, 6.0000]])");
  CHECK(to_string(x.slice(1, 0, 3, 2)) == "tensor([[1., 3.],\n        [4., 6.]])");
  CHECK(to_string(x.select(0, 1).unsqueeze(0).expand({2, 3})) == "tensor([[4., 5., 6.],\n        [4., 5., 6.]])");
  CHECK(x.version() == 1);
}

TEST_CASE("print: streams and undefined tensors") {
  std::ostringstream out;
  out << tensor({1, 2});
  CHECK(out.str() == "tensor([1, 2])");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
}

}  // namespace
}  // namespace onestep

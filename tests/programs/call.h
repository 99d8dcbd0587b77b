#pragma once
// Ops called by name, with arguments from JSON in the order and under the names of PyTorch's signatures.
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "tests/goldens.h"

namespace onestep::programs {

/// An argument that PyTorch's op takes and ours does not have: no refusal by the engine, but it counts as one.
struct Unsupported : Error {
  using Error::Error;
};

/// The position of an argument that is only given by keyword.
inline constexpr size_t kKeywordOnly = 100;

using Tensors = std::map<std::string, Tensor>;

/// What an op gives: no tensor, one, or several.
struct Results {
  Results() = default;
  Results(Tensor one) : tensors{std::move(one)} {}
  Results(std::vector<Tensor> many) : tensors(std::move(many)) {}
  Results(ValuesIndices pair) : tensors{std::move(pair.values), std::move(pair.indices)} {}
  std::vector<Tensor> tensors;
};

/// The arguments of a call: position `i` or, where fewer were given, keyword `name`. "$x" is the tensor x, "nan", "inf" and
/// "-inf" are numbers, null is None.
class Args {
 public:
  Args(const nlohmann::json& positional, const nlohmann::json& keywords, const Tensors& tensors);

  /// The argument was given and is not None.
  bool has(size_t i, const char* name) const { return !find(i, name).is_null(); }
  bool is_tensor(size_t i, const char* name) const;
  bool is_list(size_t i, const char* name) const { return find(i, name).is_array(); }
  bool is_text(size_t i, const char* name) const { return find(i, name).is_string() && !is_tensor(i, name); }
  bool is_flag(size_t i, const char* name) const { return find(i, name).is_boolean(); }
  bool is_integer(size_t i, const char* name) const { return find(i, name).is_number_integer(); }

  /// Undefined where it was not given.
  Tensor tensor(size_t i, const char* name) const;
  Tensor x() const { return tensor(0, "input"); }
  /// Empty where it was not given.
  std::vector<Tensor> tensors(size_t i, const char* name) const;
  Scalar scalar(size_t i, const char* name) const;
  double real(size_t i, const char* name, double otherwise) const;
  int64_t integer(size_t i, const char* name, std::optional<int64_t> otherwise = {}) const;
  bool flag(size_t i, const char* name, bool otherwise = false) const;
  std::string text(size_t i, const char* name, const std::string& otherwise) const;
  DType dtype(size_t i, const char* name) const;
  /// One number or a list; where the sizes of a call like `x.view(2, 3)` have no brackets, all numbers from `i` on.
  Shape shape(size_t i, const char* name) const;
  /// Of an adaptive pool, -1 for None.
  Shape output_size(size_t i) const;
  /// One number or a list, and no more.
  std::vector<int64_t> list(size_t i, const char* name) const;
  std::vector<int64_t> integers(size_t i, const char* name) const;
  /// What is between the brackets of x[...].
  std::vector<TensorIndex> indices(size_t i, const char* name) const;
  std::optional<Scalar> optional_scalar(size_t i, const char* name) const;
  /// The numbers of a list.
  template <class T>
  std::vector<T> values(size_t i, const char* name) const {
    std::vector<T> all;
    for (const nlohmann::json& v : required(i, name)) {
      if constexpr (std::is_arithmetic_v<T>)
        all.push_back(v.is_number() ? v.get<T>() : static_cast<T>(testing::number(v)));
      else
        all.push_back(v.get<T>());
    }
    return all;
  }

  /// Throws Unsupported where an argument was given that nobody asked for.
  void check_all_used() const;

 private:
  const nlohmann::json& find(size_t i, const char* name) const;
  const nlohmann::json& required(size_t i, const char* name) const;
  Tensor resolve(const nlohmann::json& value) const;

  const nlohmann::json &positional_, &keywords_;
  const Tensors& tensors_;
  mutable std::set<std::string> used_;
};

Scalar scalar_of(const nlohmann::json& value);
DType dtype_of_name(const std::string& name);

using Call = std::function<Results(const Args&)>;
using CallTable = std::map<std::string, Call>;

/// Every op by its name; a group of rows a file (calls_GROUP.cpp).
const CallTable& calls();

void add_math_calls(CallTable& table);
void add_shape_calls(CallTable& table);
void add_nn_calls(CallTable& table);
void add_image_calls(CallTable& table);
void add_index_calls(CallTable& table);
void add_loss_calls(CallTable& table);
void add_order_calls(CallTable& table);
void add_pointwise_calls(CallTable& table);
void add_rearrange_calls(CallTable& table);

}  // namespace onestep::programs

#include "web/engine/tensor_json.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace onestep::web {

using nlohmann::json;

json number_or_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

namespace {

json nested_from(const std::vector<double>& values, const Shape& shape, int dim, size_t& next) {
  if (dim == shape.rank()) return number_or_text(values[next++]);
  json row = json::array();
  for (int64_t i = 0; i < shape[dim]; ++i) row.push_back(nested_from(values, shape, dim + 1, next));
  return row;
}

}  // namespace

json nested(const Tensor& tensor) {
  size_t next = 0;
  return nested_from(tensor.to_vector<double>(), tensor.shape(), 0, next);
}

std::string four_decimals(double value) {
  if (!std::isfinite(value)) return number_or_text(value).get<std::string>();
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.4f", value);
  return text.data();
}

}  // namespace onestep::web

#include "tests/programs/call.h"

namespace onestep::programs {
namespace {

const nlohmann::json kNone;

bool names_tensor(const nlohmann::json& value) { return value.is_string() && value.get_ref<const std::string&>()[0] == '$'; }

std::optional<int64_t> bound(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<int64_t>());
}

}  // namespace

Scalar scalar_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  return testing::number(value);
}

DType dtype_of_name(const std::string& name) {
  const auto all = names(DType());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == name) return static_cast<DType>(i);
  fail<Unsupported>("dtype ", name);
}

Args::Args(const nlohmann::json& positional, const nlohmann::json& keywords, const Tensors& tensors)
    : positional_(positional), keywords_(keywords), tensors_(tensors) {}

const nlohmann::json& Args::find(size_t i, const char* name) const {
  if (i < positional_.size()) {
    used_.insert(std::to_string(i));
    return positional_[i];
  }
  if (!keywords_.contains(name)) return kNone;
  used_.insert(name);
  return keywords_[name];
}

const nlohmann::json& Args::required(size_t i, const char* name) const {
  const nlohmann::json& value = find(i, name);
  ONESTEP_CHECK(Unsupported, !value.is_null(), "argument ", name, " is None");
  return value;
}

Tensor Args::resolve(const nlohmann::json& value) const {
  ONESTEP_CHECK(Unsupported, names_tensor(value), "a tensor is due in place of ", value.dump());
  return tensors_.at(value.get<std::string>().substr(1));
}

bool Args::is_tensor(size_t i, const char* name) const { return names_tensor(find(i, name)); }

Tensor Args::tensor(size_t i, const char* name) const {
  const nlohmann::json& value = find(i, name);
  return value.is_null() ? Tensor() : resolve(value);
}

std::vector<Tensor> Args::tensors(size_t i, const char* name) const {
  std::vector<Tensor> all;
  for (const nlohmann::json& value : find(i, name)) all.push_back(resolve(value));
  return all;
}

Scalar Args::scalar(size_t i, const char* name) const {
  const nlohmann::json& value = required(i, name);
  ONESTEP_CHECK(Unsupported, !names_tensor(value) && !value.is_array(), "a number is due for ", name);
  return scalar_of(value);
}

std::optional<Scalar> Args::optional_scalar(size_t i, const char* name) const {
  return has(i, name) ? std::optional(scalar(i, name)) : std::nullopt;
}

double Args::real(size_t i, const char* name, double otherwise) const {
  return has(i, name) ? scalar(i, name).value : otherwise;
}

int64_t Args::integer(size_t i, const char* name, std::optional<int64_t> otherwise) const {
  if (!has(i, name) && otherwise) return *otherwise;
  const nlohmann::json& value = required(i, name);
  if (names_tensor(value) && resolve(value).dtype() == DType::int64) return resolve(value).item<int64_t>();
  ONESTEP_CHECK(Unsupported, value.is_number_integer(), "an integer is due for ", name, ": ", value.dump());
  return value.get<int64_t>();
}

bool Args::flag(size_t i, const char* name, bool otherwise) const {
  return has(i, name) ? find(i, name).get<bool>() : otherwise;
}

std::string Args::text(size_t i, const char* name, const std::string& otherwise) const {
  return has(i, name) ? find(i, name).get<std::string>() : otherwise;
}

DType Args::dtype(size_t i, const char* name) const { return dtype_of_name(required(i, name).get<std::string>()); }

Shape Args::shape(size_t i, const char* name) const { return integers(i, name); }

Shape Args::output_size(size_t i) const {
  const nlohmann::json& given = find(i, "output_size");
  Shape sizes;
  for (const nlohmann::json& size : given.is_array() ? given : nlohmann::json::array({given})) {
    ONESTEP_CHECK(Unsupported, size.is_null() || size.get<int64_t>() >= 0, "output_size ", size.dump(), " (here it is None)");
    sizes.push_back(size.is_null() ? -1 : size.get<int64_t>());
  }
  return sizes;
}

std::vector<int64_t> Args::list(size_t i, const char* name) const {
  if (is_list(i, name)) return integers(i, name);
  return has(i, name) ? std::vector{integer(i, name)} : std::vector<int64_t>();
}

std::vector<int64_t> Args::integers(size_t i, const char* name) const {
  const nlohmann::json& value = find(i, name);
  if (value.is_array()) return value.get<std::vector<int64_t>>();
  std::vector<int64_t> sizes;
  if (value.is_null()) return sizes;
  sizes.push_back(integer(i, name));
  for (++i; i < positional_.size() && positional_[i].is_number_integer(); ++i) sizes.push_back(integer(i, name));
  return sizes;
}

std::vector<TensorIndex> Args::indices(size_t i, const char* name) const {
  std::vector<TensorIndex> all;
  for (const nlohmann::json& value : required(i, name)) {
    if (value.is_null())
      all.emplace_back(None);
    else if (value.is_number_integer())
      all.emplace_back(value.get<int64_t>());
    else if (value == "...")
      all.emplace_back(Ellipsis);
    else if (value.is_array())  // start, stop, step
      all.emplace_back(Slice(bound(value[0]), bound(value[1]), value[2].is_null() ? 1 : value[2].get<int64_t>()));
    else
      all.emplace_back(resolve(value));
  }
  return all;
}

void Args::check_all_used() const {
  for (size_t i = 0; i < positional_.size(); ++i)
    ONESTEP_CHECK(Unsupported, used_.contains(std::to_string(i)) || positional_[i].is_null(), "argument ", i, " is unknown");
  for (const auto& [name, value] : keywords_.items())
    ONESTEP_CHECK(Unsupported, used_.contains(name) || value.is_null(), "argument ", name, " is unknown");
}

const CallTable& calls() {
  static const CallTable table = [] {
    CallTable all;
    add_math_calls(all);
    add_shape_calls(all);
    add_nn_calls(all);
    add_image_calls(all);
    add_index_calls(all);
    add_loss_calls(all);
    add_order_calls(all);
    add_pointwise_calls(all);
    add_rearrange_calls(all);
    return all;
  }();
  return table;
}

}  // namespace onestep::programs

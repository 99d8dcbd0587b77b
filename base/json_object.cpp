#include "base/json_object.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_reader.h"

namespace onestep {

using nlohmann::json;

JsonObject::JsonObject(const json& value, std::string place) : value_(&value), place_(std::move(place)) {
  ONESTEP_CHECK(IoError, value.is_object(), place_, place_.ends_with(": ") ? "" : ": ", "must be an object: got ",
                brief(value));
}

void JsonObject::refuse(const char* key, const std::string& must_be) const {
  const json* const found = find(key);
  fail<IoError>(place_, "/", key, ": must be ", must_be, ": got ", found == nullptr ? "nothing" : brief(*found));
}

const json* JsonObject::find(const char* key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

const json& JsonObject::operator[](const char* key) const {
  const json* const found = find(key);
  if (found == nullptr) refuse(key, "there");
  return *found;
}

std::string JsonObject::text(const char* key) const {
  const json* const found = find(key);
  if (found == nullptr || !found->is_string()) refuse(key, "a string");
  return found->get<std::string>();
}

bool JsonObject::flag(const char* key, bool otherwise) const {
  const json* const found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) refuse(key, "true or false");
  return found->get<bool>();
}

JsonObject JsonObject::object(const char* key) const { return {(*this)[key], place_ + "/" + key}; }

std::vector<JsonObject> JsonObject::objects(const char* key) const {
  const json* const found = find(key);
  if (found == nullptr || !found->is_array()) refuse(key, "a list");
  std::vector<JsonObject> list;
  for (const json& item : *found) list.emplace_back(item, place_ + "/" + key + "/" + std::to_string(list.size()));
  return list;
}

}  // namespace onestep

#pragma once
// Objects in the JSON files of other programs: each value is checked when it is asked for.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace onestep {

/// An object and where it is; both go into what is refused, with IoError: `FILE: /pointer/key: must be ...: got ...`.
class JsonObject {
 public:
  /// `place` is `FILE: /pointer`, and `FILE: ` for the whole file. Throws unless `value`, which must outlive this, is an
  /// object.
  JsonObject(const nlohmann::json& value, std::string place);

  [[noreturn]] void refuse(const char* key, const std::string& must_be) const;
  /// The value; null where it is absent or null.
  const nlohmann::json* find(const char* key) const;
  bool has(const char* key) const { return find(key) != nullptr; }
  /// The value, which must be there and not null.
  const nlohmann::json& operator[](const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key, bool otherwise = false) const;
  JsonObject object(const char* key) const;
  /// The objects in the list `key`.
  std::vector<JsonObject> objects(const char* key) const;

  const std::string& place() const { return place_; }
  const nlohmann::json& value() const { return *value_; }

 private:
  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace onestep

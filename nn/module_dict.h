#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"

namespace onestep::nn {

/// Modules under names, in the order in which they came (torch.nn.ModuleDict). A copy has the same ones.
template <class T = Module>
class ModuleDict : public Module {
 public:
  /// Builds a U from the arguments, under a name that is not there yet, and returns it. Throws ConfigError on one that is.
  template <class U = T, class... A>
  U& emplace(const std::string& key, A&&... arguments) {
    auto item = std::make_shared<U>(std::forward<A>(arguments)...);
    U& built = *item;
    insert(key, std::move(item));
    return built;
  }
  void insert(const std::string& key, std::shared_ptr<T> item) {
    ONESTEP_CHECK(ConfigError, !contains(key), "ModuleDict: there is a module of that name: ", key);
    items_.emplace_back(key, std::move(item));
  }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [key, _] : items_) names.push_back(key);
    return names;
  }
  /// The module under `key`; throws ConfigError if there is none.
  T& operator[](const std::string& key) { return found(key); }
  const T& operator[](const std::string& key) const { return found(key); }

  std::string name() const override { return "ModuleDict"; }
  void visit(Visitor& visitor) override {
    for (const auto& [key, item] : items_) visitor.child(key, *item);
  }

 private:
  T* find(const std::string& key) const {
    for (const auto& [name, item] : items_)
      if (name == key) return item.get();
    return nullptr;
  }
  T& found(const std::string& key) const {
    T* const item = find(key);
    ONESTEP_CHECK(ConfigError, item != nullptr, "ModuleDict: no module of that name: ", key);
    return *item;
  }

  std::vector<std::pair<std::string, std::shared_ptr<T>>> items_;
};

}  // namespace onestep::nn

#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "nn/module.h"

namespace onestep::nn {

/// Items under their index, runs of equal ones on one line (torch.nn.ModuleList.__repr__).
std::string list_repr(const std::string& name, const std::vector<std::string>& items);

/// A list of modules, named 0, 1, 2, ... (torch.nn.ModuleList). A copy has the same ones.
template <class T = Module>
class ModuleList : public Module {
 public:
  /// Builds a U from the arguments at the end and returns it.
  template <class U = T, class... A>
  U& emplace_back(A&&... arguments) {
    auto item = std::make_shared<U>(std::forward<A>(arguments)...);
    U& built = *item;
    items_.push_back(std::move(item));
    return built;
  }
  void append(std::shared_ptr<T> item) { items_.push_back(std::move(item)); }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  /// The module at `i`, from 0; throws ShapeError outside the list.
  T& operator[](int64_t i) { return *items_[checked(i)]; }
  const T& operator[](int64_t i) const { return *items_[checked(i)]; }

  /// Iterates over the modules themselves: `for (const auto& head : heads) head(x)`.
  template <class U>
  struct Iterator {
    const std::shared_ptr<T>* place;
    U& operator*() const { return **place; }
    Iterator& operator++() { return ++place, *this; }
    bool operator==(const Iterator&) const = default;
  };
  Iterator<T> begin() { return {items_.data()}; }
  Iterator<T> end() { return {items_.data() + items_.size()}; }
  Iterator<const T> begin() const { return {items_.data()}; }
  Iterator<const T> end() const { return {items_.data() + items_.size()}; }

  std::string name() const override { return "ModuleList"; }
  void visit(Visitor& visitor) override {
    for (size_t i = 0; i < items_.size(); ++i) visitor.child(std::to_string(i), *items_[i]);
  }

  /// As PyTorch prints it: equal neighbours share a line, `(0-1): 2 x Linear(...)`.
  std::string repr() const override {
    std::vector<std::string> items;
    for (const auto& item : items_) items.push_back(item->repr());
    return list_repr(name(), items);
  }

 private:
  size_t checked(int64_t i) const {
    ONESTEP_CHECK(ShapeError, i >= 0 && i < size(), "ModuleList: index ", i, " is out of range for ", size(), " modules");
    return static_cast<size_t>(i);
  }

  std::vector<std::shared_ptr<T>> items_;
};

}  // namespace onestep::nn

#pragma once
// Objects that live from one call to another, which JavaScript knows by number.
#include <cstdint>
#include <map>
#include <memory>

#include "base/error.h"

namespace onestep::web {

template <class T>
class Handles {
 public:
  /// Where T is made of the arguments; the number by which it is known from now on.
  template <class... A>
  int64_t make(A&&... arguments) {
    auto object = std::make_unique<T>(std::forward<A>(arguments)...);
    objects_[++last_] = std::move(object);
    return last_;
  }
  /// Throws ConfigError for a number that stands for nothing (any more).
  T& at(int64_t number) {
    const auto found = objects_.find(number);
    ONESTEP_CHECK(ConfigError, found != objects_.end(), "there is no object ", number, " (it was closed)");
    return *found->second;
  }
  void close(int64_t number) { objects_.erase(number); }

 private:
  std::map<int64_t, std::unique_ptr<T>> objects_;
  int64_t last_ = 0;
};

}  // namespace onestep::web

#pragma once
// Cases (samples of ops and of modules, for tests and `onestep gradcheck`): what makes them is registered at start-up, wherever
// they are written, and called when they are first asked for.
#include <algorithm>
#include <iterator>
#include <vector>

namespace onestep {

/// Registers a maker of cases: `const RegisterCases<OpCase> registered([] { return OpCases{{"softmax", {...}, {...}}}; });`
template <class Case>
class RegisterCases {
 public:
  using Make = std::vector<Case> (*)();
  explicit RegisterCases(Make make) { makers().push_back(make); }

  /// The cases of all makers, sorted by `key` of a case.
  template <class Key>
  static std::vector<Case> make_all(Key key) {
    std::vector<Case> all;
    for (const Make make : makers()) std::ranges::move(make(), std::back_inserter(all));
    std::ranges::sort(all, {}, key);
    return all;
  }

 private:
  static std::vector<Make>& makers() {
    static std::vector<Make> all;
    return all;
  }
};

}  // namespace onestep

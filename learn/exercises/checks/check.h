#pragma once
// What the checks of the exercises are made of.
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "autograd/testing/gradcheck.h"
#include "learn/exercises/tasks.h"

namespace exercises {

/// What is still wrong, in one sentence.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Wrong with the parts streamed into one sentence unless `ok`.
template <class... P>
void require(bool ok, const P&... parts) {
  if (ok) return;
  std::ostringstream sentence;
  (sentence << ... << parts);
  throw Wrong(sentence.str());
}

/// A result that a well-known mistake gives, and the sentence about it.
struct Mistake {
  Tensor gives;
  const char* sentence;
};

/// Throws Wrong unless `yours` is `right` (of any floating dtype) to `tolerance`: with the sentence of the mistake that gives
/// the same, else with the first element that differs.
void require_close(const Tensor& yours, const Tensor& right, const std::vector<Mistake>& mistakes = {},
                   double tolerance = 1e-5);

/// Throws Wrong unless `yours` has the numbers that the chapter prints under `id` (in the torch dialect), to the printed
/// digits.
void require_printed(const Tensor& yours, const std::string& id, const std::vector<Mistake>& mistakes = {});

/// Throws Wrong unless gradcheck agrees with every gradient of `f`; `names` are those of its inputs.
void require_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
                       const std::vector<std::string>& names);

/// Random float64 values that require grad.
Tensor random_leaf(const Shape& shape, int64_t seed);

/// The chapter's sentence, "Your journey starts with one step", as embeddings: [6, 3].
Tensor journey();

/// One thing that a solution gets right; `run` throws Wrong.
struct Check {
  std::string what;
  std::function<void()> run;
};

struct Exercise {
  std::string name;  ///< Of its file: `04_causal_mask`.
  std::string title;
  std::string hint;
  std::vector<Check> checks;
};

/// Adds an exercise to those that the program checks: `const Register registered{{...}};`
struct Register {
  explicit Register(Exercise exercise);
};

/// The registered exercises by name.
std::vector<Exercise> registered_exercises();

}  // namespace exercises

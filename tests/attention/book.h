#pragma once
// The book's example sentence and the numbers it leads to.
#include "autograd/ops.h"
#include "tests/nn/check.h"

namespace onestep::testing {

/// "Your journey starts with one step" as six embeddings of width 3: [6, 3].
inline Tensor book_inputs() {
  return tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
}

/// The sentence twice: [2, 6, 3].
inline Tensor book_batch() { return stack({book_inputs(), book_inputs()}); }

/// A result of the chapter in full precision.
inline const nlohmann::json& book_result(const char* id) {
  return golden("reference.json").at("seed_results_full_precision").at(id).at("values");
}

}  // namespace onestep::testing

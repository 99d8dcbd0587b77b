#pragma once
// Op cases: everything the tests and `onestep gradcheck` need to know about an op, in one record beside it
// (ops/NAME.cases.cpp). The suite in tests/autograd/op_suite_test.cpp runs every check on every sample.
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "autograd/tensor.h"
#include "autograd/testing/case_registry.h"
#include "autograd/testing/gradcheck.h"

namespace onestep {

/// Row-major values in double, for naive references.
struct Values {
  Shape shape;
  std::vector<double> data;
  Values() = default;
  explicit Values(const Shape& s) : shape(s), data(static_cast<size_t>(s.numel())) {}
  double& operator[](int64_t i) { return data[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return data[static_cast<size_t>(i)]; }
};

/// How one input of a sample is drawn.
struct InputSpec {
  Shape shape;
  double low = -2, high = 2;        ///< Domain; integers are drawn from [low, high).
  std::vector<double> avoid = {};   ///< Kinks: values closer than 0.05 to one of these are moved away.
  DType dtype = DType::float64;     ///< A floating dtype means "the dtype under test"; int64 and boolean stay.
  std::vector<double> values = {};  ///< Given values instead of drawn ones.
};

/// One sample of an op. `forward` may fix arguments (dims, probabilities with a fresh Generator each call, ...).
struct OpSample {
  std::string label;
  std::vector<InputSpec> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> forward;
  /// The same result by naive double loops written without the engine (not by calling another op).
  std::function<Values(const std::vector<Values>&)> reference;
  bool differentiable = true;
  bool any_layout = true;  ///< False where strides matter to the result (view, dropout's draws): skips the strided variants.
  /// False at a kink of the gradient (a tie) or where a second derivative is refused: skips gradgradcheck.
  bool twice_differentiable = true;
  /// False where a half is rounded more than once: the result is compared with float32's within that.
  bool rounds_once = true;
  bool takes_int32 = true;    ///< False where PyTorch wants int64: class indices.
  double tolerance32 = 2e-6;  ///< Of float32 values and gradients against float64: |a - b| <= 1e-6 + tolerance32 * |b|.
};

/// The samples of both lists.
inline std::vector<OpSample> joined(std::vector<OpSample> all, std::vector<OpSample> more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The samples, which all lack a property: `without(&OpSample::rounds_once, {...})`.
inline std::vector<OpSample> without(bool OpSample::*property, std::vector<OpSample> samples) {
  for (OpSample& sample : samples) sample.*property = false;
  return samples;
}

/// Whether an error is an E.
template <class E>
bool is_a(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}
using ErrorType = bool (*)(const std::exception&);

/// A call that must be refused. The message is the whole sentence, or `NAME: ` for a check that many ops share, whose sentence
/// another test pins.
struct OpError {
  std::string label;
  std::function<void()> call;
  std::string message;
  ErrorType type = is_a<Error>;
};

struct OpCase {
  std::string op;  ///< The function's name in ops.h.
  std::vector<OpSample> samples;
  std::vector<OpError> errors;
};

using OpCases = std::vector<OpCase>;

/// All registered cases, sorted by op; made by the first call.
const OpCases& op_cases();

/// The inputs of a sample, the same for every dtype under test: each value is exact in float32.
std::vector<Values> draw_values(const OpSample& sample, int64_t seed = 0);

/// The drawn values as contiguous tensors; floating inputs get dtype `floating` and, if asked, require grad.
std::vector<Tensor> make_inputs(const OpSample& sample, const std::vector<Values>& values, DType floating,
                                bool requires_grad = false);

/// Compares the gradients of all floating inputs with finite differences, in float64.
GradcheckResult gradcheck(const OpSample& sample, const GradcheckOptions& options = {});
/// Compares the derivatives of those gradients with finite differences.
GradcheckResult gradgradcheck(const OpSample& sample, const GradcheckOptions& options = {});

using RegisterOpCases = RegisterCases<OpCase>;

}  // namespace onestep

// Compiled once, in op_case.cpp: a test program begins with copying such lists into each other.
extern template class std::vector<onestep::InputSpec>;
extern template class std::vector<onestep::OpSample>;
extern template class std::vector<onestep::OpError>;
extern template class std::vector<onestep::OpCase>;

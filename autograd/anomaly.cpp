#include "autograd/anomaly.h"

#include <atomic>
#include <string_view>
#include <utility>

#include "autograd/node.h"
#include "autograd/ops_math.h"
#include "autograd/tensor.h"

namespace onestep {
namespace {
thread_local AnomalyGuard* active_guard = nullptr;
std::atomic<GradientCheck> nan_check = nullptr;

void refuse_nan(const Node& node, size_t i, const Tensor& gradient) {
  const NoGradGuard no_grad;
  ONESTEP_CHECK(NonFiniteError, !any(isnan(gradient)).item<bool>(), "backward of ", node.name, ": the gradient of its input ",
                i, " of shape ", gradient.shape(), " holds NaN");
}
}  // namespace

AnomalyGuard::AnomalyGuard(std::function<std::string()> place)
    : place_(std::move(place)), outer_(std::exchange(active_guard, this)) {}

AnomalyGuard::~AnomalyGuard() { active_guard = outer_; }

AnomalyGuard* AnomalyGuard::active() { return active_guard; }

GradientCheck gradient_check() { return nan_check; }
bool nan_gradients_refused() { return gradient_check() != nullptr; }
void refuse_nan_gradients(bool on) { nan_check = on ? refuse_nan : nullptr; }

void AnomalyGuard::check_result(const Node& node, const Tensor& result) {
  std::string place = place_();
  const bool fine = std::string_view(node.name) == "masked_fill" || all_finite(result);
  ONESTEP_CHECK(NonFiniteError, fine, node.name, " in ", place, ": its result of shape ", result.shape(), " is not finite");
  places_[node.sequence] = std::move(place);
}

void AnomalyGuard::check_gradient(const Node& node, size_t i, const Tensor& gradient) {
  if (all_finite(gradient)) return;
  const auto found = places_.find(node.sequence);
  fail<NonFiniteError>("backward of ", node.name, " in ", found == places_.end() ? "an earlier graph" : found->second,
                       ": the gradient of its input ", i, " of shape ", gradient.shape(), " is not finite");
}

bool all_finite(const Tensor& x) {
  const NoGradGuard no_grad;
  return !x.is_floating() || all(isfinite(x)).item<bool>();
}

}  // namespace onestep

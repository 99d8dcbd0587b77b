#pragma once
// Whether ops are recorded, per thread.
#include <utility>

namespace onestep {
namespace detail {
// In the header: every op asks several times, and each tensor once.
inline constinit thread_local bool recording = true, inference = false;
}  // namespace detail

/// True while ops are recorded (torch.is_grad_enabled).
inline bool grad_enabled() { return detail::recording; }
/// Switches recording on or off (torch.set_grad_enabled as a function). Ops record again only outside inference mode.
inline void set_grad_enabled(bool on) { detail::recording = on; }
/// True within an InferenceGuard (torch.is_inference_mode_enabled).
inline bool inference_enabled() { return detail::inference; }

/// Switches recording on or off in its scope (torch.set_grad_enabled).
class GradGuard {
 public:
  explicit GradGuard(bool on) : previous_(grad_enabled()) { set_grad_enabled(on); }
  ~GradGuard() { set_grad_enabled(previous_); }
  GradGuard(const GradGuard&) = delete;
  GradGuard& operator=(const GradGuard&) = delete;

 private:
  bool previous_;
};

/// Ops inside its scope are not recorded (torch.no_grad).
class NoGradGuard : public GradGuard {
 public:
  NoGradGuard() : GradGuard(false) {}
};

/// Ops inside its scope are recorded, also within a NoGradGuard (torch.enable_grad).
class EnableGradGuard : public GradGuard {
 public:
  EnableGradGuard() : GradGuard(true) {}
};

/// Ops inside its scope are not recorded, and what they make can never take part in a graph: a recorded op refuses to save it,
/// and outside of such a scope it cannot be written to; with `on` false, they are what they are outside of all such scopes
/// (torch.inference_mode).
class InferenceGuard : public GradGuard {
 public:
  explicit InferenceGuard(bool on = true) : GradGuard(!on), previous_(std::exchange(detail::inference, on)) {}
  ~InferenceGuard() { detail::inference = previous_; }
  InferenceGuard(const InferenceGuard&) = delete;
  InferenceGuard& operator=(const InferenceGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace onestep

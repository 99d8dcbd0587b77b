#include "autograd/grad_mode.h"

#include <utility>

namespace onestep {
namespace {
thread_local bool recording = true;
thread_local bool inference = false;
}  // namespace

bool grad_enabled() { return recording; }
void set_grad_enabled(bool on) { recording = on; }
bool inference_enabled() { return inference; }

InferenceGuard::InferenceGuard() : previous_(std::exchange(inference, true)) {}
InferenceGuard::~InferenceGuard() { inference = previous_; }

}  // namespace onestep

#include "autograd/grad_hook.h"

#include <utility>

namespace onestep {
namespace {
thread_local const GradHook* active_hook = nullptr;
}  // namespace

GradHook::GradHook(std::function<void(const Node&)> ready)
    : ready_(std::move(ready)), outer_(std::exchange(active_hook, this)) {}

GradHook::~GradHook() { active_hook = outer_; }

const GradHook* GradHook::active() { return active_hook; }

}  // namespace onestep

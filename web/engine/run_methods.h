#pragma once
#include <vector>

#include "web/engine/methods.h"

namespace onestep::web {

/// Configs and runs (web/README.md): check_config, run_new, run_open, run_step, run_evaluate, run_attention, run_samples,
/// run_gradients, run_set_learning_rate, run_save, run_close.
std::vector<Method> run_methods();

}  // namespace onestep::web

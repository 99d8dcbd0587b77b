#pragma once
#include <vector>

#include "web/engine/methods.h"

namespace onestep::web {

/// Trained models (web/README.md): folder_kind, model_open, model_next, model_attention, model_generate, model_close.
std::vector<Method> model_methods();

}  // namespace onestep::web

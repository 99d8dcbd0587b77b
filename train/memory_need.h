#pragma once
// The memory that training will take, from the config alone, and whether the machine has it.
#include <cstdint>
#include <string>

#include "train/config/config.h"

namespace onestep::train {

/// Bytes; parameters and what is kept beside each are counted, activations are estimated.
struct MemoryNeed {
  int64_t parameters = 0;  ///< How many there are.
  int64_t trained = 0;     ///< Of them: those that are not frozen.
  double mask_bytes = 0;   ///< Of the masks that attention modules keep: one an element.
  double parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  double activation_bytes = 0;  ///< What one micro-batch keeps for its backward pass, with the gradients of the logits.
  double total() const { return parameter_bytes + gradient_bytes + optimizer_bytes + activation_bytes + mask_bytes; }
};

/// What training on batches of rows of `length` tokens will need, for `vocab_size` tokens or model.vocab_size if that is more.
/// Throws ConfigError as frozen_parameters does.
MemoryNeed memory_need(const Config& config, int64_t vocab_size, int64_t length);

/// Throws ConfigError with the numbers if training needs more than a quarter above `available`; what there is to say if it
/// needs nearly all of it or somewhat more, else "".
std::string check_memory(const Config& config, const MemoryNeed& need, int64_t available);

}  // namespace onestep::train

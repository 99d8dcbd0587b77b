#pragma once
#include <memory>

#include "attention/attention.h"
#include "attention/attention_kind.h"
#include "attention/options.h"
#include "autograd/random/generator.h"

namespace onestep::attention {

/// Builds a type of attention. Throws ConfigError on an option that the type does not have, and what the type's constructor
/// throws. `generator` must outlive the module.
std::unique_ptr<Attention> make_attention(AttentionKind kind, const Options& options,
                                          Generator& generator = default_generator());

}  // namespace onestep::attention

#pragma once
// The sections of the chapter, one function each: simplified.cpp, trainable.cpp, causal.cpp, multi_head.cpp,
// worked_example.cpp.
#include "autograd/ops.h"
#include "learn/book/page.h"

namespace onestep::book {

void simplified_one_query(Page& page);
void simplified_all_queries(Page& page);
void trainable_steps(Page& page);
void trainable_modules(Page& page);
void causal_masks(Page& page);
void dropout_masks(Page& page);
void causal_module(Page& page);
void multi_head_wrapper(Page& page);
void multi_head_split(Page& page);
void gpt2_size(Page& page);
void worked_example(Page& page);

/// "Your journey starts with one step" as six embeddings of width 3: [6, 3].
Tensor journey();

}  // namespace onestep::book

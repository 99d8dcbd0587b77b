#pragma once
// What counting pairs of tokens is worth: the figure that a model which sees more has to beat.
#include <cstdint>

#include "train/data/token_file.h"

namespace onestep::train {

/// Mean loss in nats a token of the table p(next | token) that is counted in the first `train_count` tokens, on those after
/// them; pairs it has not seen get the share that Witten-Bell smoothing leaves them [Chen and Goodman 1999]. Where none come
/// after them, on the first ones themselves and without smoothing: the conditional entropy, which no predictor that sees one
/// token falls below there. The target `ignore_index` does not count. 0 if there is no pair to evaluate.
double bigram_loss(const Tokens& tokens, int64_t train_count, int64_t vocab_size, int64_t ignore_index);

}  // namespace onestep::train

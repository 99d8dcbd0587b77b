#include "nn/dropout.h"

namespace onestep::nn {

Dropout::Dropout(double p, Generator& generator) : p_(p), generator_(&generator) {
  ONESTEP_CHECK(ConfigError, p >= 0 && p <= 1, "Dropout: p must be between 0 and 1: got ", p);
}

}  // namespace onestep::nn

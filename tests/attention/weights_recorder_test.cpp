#include "attention/weights_recorder.h"

#include <doctest/doctest.h>

#include "attention/multi_head_attention.h"
#include "autograd/ops.h"

using namespace onestep;
using namespace onestep::attention;

TEST_CASE("WeightsRecorder: keeps the weights of every call while it lives") {
  Generator generator(1);
  const MultiHeadAttention first(4, 4, 5, 0.0, 2, false, generator);
  const MultiHeadAttentionWrapper second(4, 2, 5, 0.0, 2, false, generator);
  const Tensor x = randn({3, 5, 4}, generator);
  const AttentionResult a = first.forward_with_weights(x), b = second.forward_with_weights(a.context);
  {
    const WeightsRecorder recorder;
    CHECK(equal(second(first(x)), b.context));
    REQUIRE(recorder.weights().size() == 2);
    CHECK(equal(recorder.weights()[0], a.weights));
    CHECK(equal(recorder.weights()[1], b.weights));
    {
      const WeightsRecorder inner;
      first(x);
      CHECK(inner.weights().size() == 1);
    }
    CHECK(recorder.weights().size() == 2);
    KvCache cache;
    first.forward_cached(x, cache);
    CHECK(recorder.weights().size() == 2);
  }
  CHECK(WeightsRecorder::active() == nullptr);
}

// DataParallel over threads. Whole runs over processes: tests/cli/distributed_test.cpp.
#include "train/distributed/data_parallel.h"

#include <doctest/doctest.h>

#include <limits>

#include "autograd/ops.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "tests/train/distributed/thread_ranks.h"

using namespace onestep;
using onestep::testing::run_ranks;
using onestep::testing::ThreadCommunicator;

namespace {

/// Three layers of a weight and a bias, and a micro-batch for each rank.
struct Net {
  Net() {
    Generator generator(3);
    for (int i = 0; i < 3; ++i) layers.emplace_back<nn::Linear>(4, 4, /*bias=*/true, generator);
  }
  void backward(int rank) const { sum(sin(layers.forward(full({2, 4}, 0.5 + rank)))).backward(); }

  nn::Sequential layers;
};

constexpr double kAnyNorm = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("data parallel: buckets leave during the backward pass and their gradients are forgotten") {
  const std::vector<std::string> failures = run_ranks(2, [](ThreadCommunicator& ranks) {
    Net net;
    const Tensor first = net.layers.parameters().front();
    train::DataParallel parallel({std::shared_ptr<void>(), &ranks}, net.layers, {{net.layers.parameters(), 0.0}},
                                 /*bucket_bytes=*/4);  // each parameter is a bucket
    std::vector<bool> first_has_grad;
    ranks.on_transfer = [&] { first_has_grad.push_back(first.grad().defined()); };
    parallel.reduce_gradients({true, true}, [&] { net.backward(ranks.rank()); });
    // The first layer comes last: its weight has a gradient when its bias leaves, and none any more when it leaves itself.
    const std::vector<bool> expected{false, false, false, false, true, false};
    ONESTEP_CHECK(Error, first_has_grad == expected, "the order of buckets");
    for (const Tensor& parameter : net.layers.parameters())
      ONESTEP_CHECK(Error, !parameter.grad().defined(), "a gradient is left");
  });
  CHECK(failures == std::vector<std::string>(2));
}

TEST_CASE("data parallel: the sum of the ranks has the norm of one process to the bit and ranks without targets add nothing") {
  const std::vector<int> orders[] = {{0, 1, 2}, {0, 2}};
  for (const std::vector<int>& order : orders) {
    Net alone;
    for (const int rank : order) alone.backward(rank);
    const double norm = optim::clip_grad_norm_(alone.layers.parameters(), kAnyNorm);
    const std::vector<std::string> failures = run_ranks(3, [&](ThreadCommunicator& ranks) {
      Net net;
      train::DataParallel parallel({std::shared_ptr<void>(), &ranks}, net.layers, {{net.layers.parameters(), 0.0}}, 100);
      std::vector<bool> contributes(3, false);
      for (const int rank : order) contributes[static_cast<size_t>(rank)] = true;
      parallel.reduce_gradients(contributes, [&] {
        if (contributes[static_cast<size_t>(ranks.rank())]) net.backward(ranks.rank());
      });
      const double ours = parallel.clip_grad_norm_(kAnyNorm);
      ONESTEP_CHECK(Error, ours == norm, "the norm is ", ours, ", not ", norm);
    });
    CHECK(failures == std::vector<std::string>(3));
  }
}

TEST_CASE("data parallel: samples of gradients are those of one process") {
  Net alone;
  for (int rank = 0; rank < 3; ++rank) alone.backward(rank);
  std::vector<std::vector<double>> expected;
  for (const Tensor& parameter : alone.layers.parameters()) {  // 16 elements, of which every fourth, or 4
    std::vector<double>& samples = expected.emplace_back();
    const std::vector<double> all = parameter.grad().to_vector<double>();
    for (size_t i = 0; i < all.size(); i += all.size() == 16 ? 4 : 1) samples.push_back(all[i]);
  }
  const std::vector<std::string> failures = run_ranks(3, [&](ThreadCommunicator& ranks) {
    Net net;
    train::DataParallel parallel({std::shared_ptr<void>(), &ranks}, net.layers, {{net.layers.parameters(), 0.0}}, 100);
    ONESTEP_CHECK(Error, parallel.sample_gradients(5) == std::vector<std::vector<double>>(6), "there is a gradient");
    parallel.reduce_gradients({true, true, true}, [&] { net.backward(ranks.rank()); });
    ONESTEP_CHECK(Error, parallel.sample_gradients(5) == expected, "the samples differ");
  });
  CHECK(failures == std::vector<std::string>(3));
}

#include <limits>

#include "nn/activation.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/rnn.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"
#include "tests/nn/check.h"

namespace onestep::nn {
namespace {

using testing::check_against_pytorch;
using testing::refusal;

TEST_CASE("layers: Linear and LayerNorm and FeedForward follow PyTorch") {
  check_against_pytorch("Linear", [](Generator& g) { return std::make_unique<Linear>(5, 3, true, g); });
  check_against_pytorch("LayerNorm", [](Generator&) { return std::make_unique<LayerNorm>(5); });
  check_against_pytorch("FeedForward", [](Generator& g) { return std::make_unique<FeedForward>(5, 4, "gelu", g); });
}

TEST_CASE("layers: Embedding picks rows and prints as PyTorch prints") {
  Generator g(3);
  const Embedding table(7, 4, g), padded(7, 4, g, 0);
  const Tensor rows = table(tensor({{6, 0}, {2, 2}})).detach();
  CHECK(rows.shape() == Shape{2, 2, 4});
  CHECK(equal(rows[0][0], table.weight[6].detach()));
  CHECK(equal(rows[1][1], table.weight[2].detach()));
  sum(padded(tensor({0, 3, 3}))).backward();
  CHECK(padded.weight.grad().select(1, 0).to_vector<float>() == std::vector<float>{0, 0, 0, 2, 0, 0, 0});
  const Embedding last(7, 4, g, -7);  // counted from the end
  CHECK(equal(last.weight[0].detach(), zeros(4)));
  CHECK(last.repr() == padded.repr());
  CHECK(table.repr() == testing::golden("modules.json").at("printed").at("Embedding"));
  CHECK(padded.repr() == testing::golden("modules.json").at("printed").at("Embedding padded"));
}

TEST_CASE("layers: LayerNorm takes a size or a braced list of sizes") {
  const LayerNorm one({3}), same(3), two({2, 3}, 1e-3);
  CHECK(one.repr() == same.repr());
  CHECK(two.repr() == LayerNorm(Shape{2, 3}, 1e-3).repr());
  CHECK(two.weight.shape() == Shape{2, 3});
  CHECK(two(ones({4, 2, 3})).shape() == Shape{4, 2, 3});
}

TEST_CASE("layers: activations by name are the ops") {
  const Tensor x = tensor({-2.0, -0.5, 0.0, 0.5, 2.0});
  CHECK(equal((*make_activation("relu"))(x), relu(x)));
  CHECK(equal((*make_activation("gelu"))(x), gelu(x)));
  CHECK(equal((*make_activation("gelu_tanh"))(x), gelu(x, GeluApproximation::tanh)));
  CHECK(equal((*make_activation("silu"))(x), silu(x)));
  CHECK(equal((*make_activation("tanh"))(x), tanh(x)));
  CHECK(equal((*make_activation("sigmoid"))(x), sigmoid(x)));
  CHECK(refusal<ConfigError>([] { make_activation("geglu"); }) ==
        "make_activation: unknown activation: \"geglu\" (relu, gelu, gelu_tanh, silu, tanh or sigmoid)");
}

TEST_CASE("layers: activations are the ops of their names") {
  const Tensor x = tensor({{-2.0, -0.5, 0.0, 0.5}, {2.0, 3.5, -7.0, 1.0}});
  CHECK(equal(LeakyReLU(0.2)(x), leaky_relu(x, 0.2)));
  CHECK(equal(Softplus(2)(x), softplus(x, 2.0)));
  CHECK(equal(Hardtanh(-2, 3)(x), hardtanh(x, -2, 3)));
  CHECK(equal(Threshold(0.1, 20)(x), threshold(x, 0.1, 20)));
  CHECK(equal(Softmax(0)(x), softmax(x, 0)));
  CHECK(equal(GLU()(x), glu(x)));
  CHECK(equal(PReLU(4, 0.5)(x), prelu(x, full({4}, 0.5))));
  static_assert(!std::is_constructible_v<Softmax> && !std::is_constructible_v<Threshold, double>);
  static_assert(!std::is_constructible_v<ELU, double, double>);
}

TEST_CASE("layers: Dropout draws only in training and only for p between 0 and 1") {
  Generator generator(123);
  const std::string start = generator.state();
  const Tensor x = ones({6, 6});
  Dropout half(0.5, generator);
  half.eval();
  CHECK(equal(half(x), x));
  CHECK(equal(Dropout(0.0, generator)(x), x));
  CHECK(equal(Dropout(1.0, generator)(x), zeros({6, 6})));
  CHECK(generator.state() == start);
  half.train();
  CHECK_FALSE(equal(half(x), x));
  CHECK(generator.state() != start);
  CHECK(refusal<ConfigError>([] { Dropout(1.5); }) == "Dropout: p must be between 0 and 1: got 1.5");
  CHECK(refusal<ConfigError>([] { Dropout{std::numeric_limits<double>::quiet_NaN()}; }).starts_with("Dropout: p "));
}

TEST_CASE("layers: Dropout follows the dialect of its generator") {
  const auto& results = testing::golden("reference.json").at("seed_results_full_precision");
  Generator torch(123), mkl(123, RngDialect::torch_mkl);
  testing::check_same(Dropout(0.5, torch)(ones({6, 6})), results.at("dropout_ones").at("values"));
  testing::check_same(Dropout(0.5, mkl)(ones({6, 6})), results.at("dropout_ones__old_mkl_mask").at("values"));
}

TEST_CASE("layers: Sequential applies its layers in order and names them by number") {
  Generator g(1);
  Sequential layers;
  const Linear& first = layers.emplace_back<Linear>(3, 4, true, g);
  layers.append(make_activation("tanh"));
  const Linear& last = layers.emplace_back<Linear>(4, 2, false, g);
  const Tensor x = randn({5, 3}, g);
  CHECK(equal(layers(x), last(tanh(first(x)))));
  CHECK(layers.size() == 3);
  CHECK(layers[1].name() == "Tanh");
  const NamedTensors named = layers.named_parameters();
  CHECK(named.front().first == "0.weight");
  CHECK(named.back().first == "2.weight");
}

TEST_CASE("layers: ModuleList iterates over the modules themselves") {
  Generator g(1);
  ModuleList<Linear> list;
  for (int64_t i = 1; i <= 3; ++i) list.emplace_back(i, 2, true, g);
  list.append(std::make_unique<Linear>(4, 2, true, g));
  int64_t in_features = 0;
  for (const Linear& layer : std::as_const(list)) CHECK(layer.weight.size(1) == ++in_features);
  CHECK(in_features == 4);
  CHECK(list.size() == 4);
  CHECK(list[3].weight.size(1) == 4);
  for (Linear& layer : list) layer.eval();
  CHECK_FALSE(list[0].is_training());
  CHECK(list.named_parameters()[3].first == "1.bias");
  CHECK(refusal<ShapeError>([&] { list[4]; }) == "ModuleList: index 4 is out of range for 4 modules");
  CHECK(refusal<ShapeError>([&] { list[-1]; }).starts_with("ModuleList: index -1 "));
}

TEST_CASE("layers: wrong sizes are named") {
  CHECK(refusal<ShapeError>([] { Linear(-1, 2); }) == "Linear: features cannot be negative: in_features=-1, out_features=2");
  CHECK(refusal<ShapeError>([] { Embedding(2, -3); }) ==
        "Embedding: sizes cannot be negative: num_embeddings=2, embedding_dim=-3");
  CHECK(refusal<ShapeError>([] { LayerNorm(Shape{}); }) == "LayerNorm: normalized_shape needs at least one size");
  CHECK(Linear(0, 2)(ones({3, 0})).shape() == Shape{3, 2});
}

}  // namespace
TEST_CASE("layers: Sequential takes its layers in braces, which draw in this order") {
  manual_seed(7);
  Sequential net{Linear(3, 4), ReLU(), Linear(4, 2)};
  manual_seed(7);
  Sequential by_lines;
  by_lines.emplace_back<Linear>(3, 4);
  by_lines.emplace_back<ReLU>();
  by_lines.emplace_back<Linear>(4, 2);
  const NamedTensors state = net.state_dict(), expected = by_lines.state_dict();
  REQUIRE(state.size() == 4);
  for (size_t i = 0; i < state.size(); ++i) {
    CHECK(state[i].first == expected[i].first);
    CHECK(equal(state[i].second, expected[i].second));
  }
  CHECK(net(ones(5, 3)).shape() == Shape{5, 2});
}

TEST_CASE("layers: Sequential takes layers that have names, and is trained through them") {
  Linear first(3, 4), last(4, 2);
  Dropout dropout(0.5);
  Sequential body(first, ReLU(), dropout), net(body, last);
  const NamedTensors named = net.named_parameters();
  REQUIRE(named.size() == 4);
  CHECK(named[0].first == "0.0.weight");
  CHECK(named[0].second.data<float>() == first.weight.data<float>());

  net.eval();
  CHECK_FALSE(first.is_training());
  CHECK_FALSE(dropout.is_training());
  first.train();
  const std::vector<Module*> modules = net.modules();
  CHECK(std::count_if(modules.begin(), modules.end(), [](const Module* module) { return module->is_training(); }) == 1);

  const Tensor x = ones(5, 3);
  CHECK(equal(net(x), last(relu(first(x)))));
  int64_t calls = 0;
  last.register_forward_hook([&](const Layer&, const Tensor&, const Tensor&) { return ++calls, Tensor(); });
  net(x).sum().backward();
  CHECK(calls == 1);
  REQUIRE(first.weight.grad().defined());
  const Tensor before = first.weight.clone().detach();
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  sgd.step();
  CHECK_FALSE(equal(first.weight, before));
}

TEST_CASE("layers: a copy is another handle of the same module, and what is moved from keeps its mode alone") {
  Sequential net{Linear(3, 4), ReLU()};
  Sequential same = net;
  CHECK(same.size() == 2);
  CHECK(&same[0] == &net[0]);
  same.eval();
  CHECK_FALSE(net.is_training());
  const Sequential taken = std::move(net);
  CHECK(taken.size() == 2);
  CHECK_FALSE(taken.is_training());
  // NOLINTNEXTLINE(bugprone-use-after-move): what is left is defined.
  CHECK(net.parameters().empty());
  CHECK_FALSE(net.is_training());
}

TEST_CASE("layers: losses are the ops of their names") {
  const Tensor logits = tensor({{1.0, 2.0, 0.5}, {0.1, -1.0, 3.0}}), target = tensor({1, 0});
  CHECK(equal(CrossEntropyLoss()(logits, target), cross_entropy(logits, target)));
  CHECK(equal(CrossEntropyLoss({.label_smoothing = 0.1})(logits, target),
              cross_entropy(logits, target, {.label_smoothing = 0.1})));
  const Tensor log_probabilities = logits.log_softmax(-1);
  CHECK(equal(NLLLoss(Reduction::none)(log_probabilities, target), nll_loss(log_probabilities, target, Reduction::none)));
  CHECK(equal(MSELoss()(logits, logits * 2), mse_loss(logits, logits * 2)));
}

namespace {
template <class M>
concept Trainable = requires(M& module) {
  module.parameters();
};
static_assert(Trainable<Linear> && !Trainable<const Linear>);
static_assert(std::is_constructible_v<Linear, Linear&> && !std::is_constructible_v<Linear, const Linear&>);
static_assert(std::is_constructible_v<Sequential, Linear&, ReLU> && !std::is_constructible_v<Sequential, const Linear&, ReLU>);
}  // namespace

TEST_CASE("recurrent layers: the bits do not depend on recording") {
  Generator g(3);
  const LSTM lstm(7, 40, {.num_layers = 2, .bidirectional = true}, g);
  const GRU gru(7, 40, {}, g);
  for (const int64_t rows : {1, 5, 40}) {
    const Tensor x = randn({6, rows, 7}, g), h = lstm(x).output, other = gru(x).output;
    const NoGradGuard no_grad;
    CHECK(equal(lstm(x).output, h));
    CHECK(equal(gru(x).output, other));
  }
}

}  // namespace onestep::nn

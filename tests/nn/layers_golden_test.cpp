// Recurrent, attention and transformer modules against PyTorch: names, initial values, results and gradients
// (tests/goldens/layers.py).
#include <functional>
#include <map>

#include "nn/activation.h"
#include "nn/bilinear.h"
#include "nn/identity.h"
#include "nn/loss.h"
#include "nn/module_dict.h"
#include "nn/multihead_attention.h"
#include "nn/parameter_list.h"
#include "nn/rnn.h"
#include "nn/rnn_cell.h"
#include "nn/transformer.h"
#include "tests/nn/check.h"

namespace onestep::nn {
namespace {

using testing::check_close;
using Tensors = std::vector<Tensor>;

const nlohmann::json& goldens() { return testing::golden("layers.json"); }

/// A module and how it is called.
struct Sample {
  std::unique_ptr<Module> module;
  std::function<Tensors(const Tensors&)> call;
};

template <class M, class F>
Sample sample(std::unique_ptr<M> module, F call) {
  const M& m = *module;
  return {std::move(module), [&m, call](const Tensors& in) { return call(m, in); }};
}

/// The rows of a braced list as a bool tensor.
Tensor bools(const NestedValues& rows) { return tensor(rows).to(DType::boolean); }

const Tensor kHidden = bools({{0, 1, 0, 0}, {0, 0, 1, 1}, {1, 1, 1, 0}});
const Tensor kPadded = bools({{0, 0, 1, 0}, {1, 0, 0, 0}}), kFlipped = bools({{0, 1, 0, 0}, {0, 0, 0, 1}});
const Tensor kBias = tensor({{0.5, -1.0, 0.25, -INFINITY}, {0.0, 1.0, -0.5, 2.0}, {-INFINITY, 0.75, 0.0, 0.125}});
const Tensor kPaddingBias = tensor({{0.0, -INFINITY, 0.5, 0.0}, {0.25, 0.0, 0.0, -INFINITY}});
const Tensor kCausal = Transformer::generate_square_subsequent_mask(4);
const Tensor kMemoryPadded = bools({{0, 0, 1, 1, 0}, {1, 0, 0, 0, 0}});

Tensor at(const Tensors& in, size_t i) { return i < in.size() ? in[i] : Tensor(); }

template <class Cell>
Sample cell(std::unique_ptr<Cell> module) {
  return sample(std::move(module), [](const Cell& m, const Tensors& in) -> Tensors { return {m(in[0], at(in, 1))}; });
}
Sample cell(std::unique_ptr<LSTMCell> module) {
  return sample(std::move(module), [](const LSTMCell& m, const Tensors& in) -> Tensors {
    const auto [h, c] = m(in[0], {at(in, 1), at(in, 2)});
    return {h, c};
  });
}
template <class M>
Sample layers(std::unique_ptr<M> module) {
  return sample(std::move(module), [](const M& m, const Tensors& in) -> Tensors {
    const auto [output, h] = m(in[0], at(in, 1));
    return {output, h};
  });
}
Sample layers(std::unique_ptr<LSTM> module) {
  return sample(std::move(module), [](const LSTM& m, const Tensors& in) -> Tensors {
    const auto [output, state] = m(in[0], {at(in, 1), at(in, 2)});
    return {output, state.h, state.c};
  });
}

/// Attention to keys and values of their own, or of one tensor to itself.
Sample attention(Generator& g, int64_t embed_dim, int64_t heads, const MultiheadAttentionOptions& options,
                 const MultiheadAttentionCall& call) {
  return sample(std::make_unique<MultiheadAttention>(embed_dim, heads, options, g),
                [call](const MultiheadAttention& m, const Tensors& in) -> Tensors {
                  const bool self = in.size() == 1;
                  const auto [output, weights] = m(in[0], self ? in[0] : in[1], self ? in[0] : in[2], call);
                  return weights.defined() ? Tensors{output, weights} : Tensors{output};
                });
}

TransformerLayerOptions small(TransformerLayerOptions options = {}) {
  options.dim_feedforward = 5;
  options.dropout = 0.2;
  return options;
}
const TransformerLayerOptions kNormFirst = small({.activation = "gelu", .batch_first = true, .norm_first = true});

template <class M, class Masks>
Sample encoder(std::unique_ptr<M> module, const Masks& masks) {
  return sample(std::move(module), [masks](const M& m, const Tensors& in) -> Tensors { return {m(in[0], masks)}; });
}
template <class M>
Sample decoder(std::unique_ptr<M> module, const DecoderMasks& masks) {
  return sample(std::move(module), [masks](const M& m, const Tensors& in) -> Tensors { return {m(in[0], in[1], masks)}; });
}

const RNNOptions kTwoWays{.num_layers = 2, .bias = true, .batch_first = true, .dropout = 0.3, .bidirectional = true};

const std::map<std::string, std::function<Sample(Generator&)>> kSamples = {
    {"RNNCell", [](Generator& g) { return cell(std::make_unique<RNNCell>(4, 5, true, "tanh", g)); }},
    {"RNNCell relu", [](Generator& g) { return cell(std::make_unique<RNNCell>(4, 5, false, "relu", g)); }},
    {"GRUCell", [](Generator& g) { return cell(std::make_unique<GRUCell>(4, 5, true, g)); }},
    {"GRUCell single", [](Generator& g) { return cell(std::make_unique<GRUCell>(4, 5, false, g)); }},
    {"LSTMCell", [](Generator& g) { return cell(std::make_unique<LSTMCell>(4, 5, true, g)); }},
    {"LSTMCell single", [](Generator& g) { return cell(std::make_unique<LSTMCell>(4, 5, true, g)); }},
    {"RNN", [](Generator& g) { return layers(std::make_unique<RNN>(3, 5, RNNOptions(), g)); }},
    {"RNN relu",
     [](Generator& g) {
       RNNOptions options = kTwoWays;
       options.nonlinearity = "relu";
       return layers(std::make_unique<RNN>(3, 5, options, g));
     }},
    {"GRU", [](Generator& g) { return layers(std::make_unique<GRU>(3, 5, RNNOptions(), g)); }},
    {"GRU stacked",
     [](Generator& g) {
       RNNOptions options = kTwoWays;
       options.bias = options.batch_first = false;
       return layers(std::make_unique<GRU>(3, 5, options, g));
     }},
    {"LSTM", [](Generator& g) { return layers(std::make_unique<LSTM>(3, 5, RNNOptions(), g)); }},
    {"LSTM stacked", [](Generator& g) { return layers(std::make_unique<LSTM>(3, 5, kTwoWays, g)); }},
    {"LSTM projected",
     [](Generator& g) {
       return layers(std::make_unique<LSTM>(3, 5, RNNOptions{.num_layers = 2, .bidirectional = true, .proj_size = 2}, g));
     }},
    {"Bilinear",
     [](Generator& g) {
       return sample(std::make_unique<Bilinear>(4, 2, 3, true, g),
                     [](const Bilinear& m, const Tensors& in) -> Tensors { return {m(in[0], in[1])}; });
     }},
    {"MultiheadAttention", [](Generator& g) { return attention(g, 6, 2, {}, {}); }},
    {"MultiheadAttention self", [](Generator& g) { return attention(g, 6, 3, {.dropout = 0.3}, {.need_weights = false}); }},
    {"MultiheadAttention causal",
     [](Generator& g) { return attention(g, 6, 3, {.batch_first = true}, {.need_weights = false, .is_causal = true}); }},
    {"MultiheadAttention sizes",
     [](Generator& g) {
       return attention(g, 6, 2, {.dropout = 0.3, .bias = false, .kdim = 5, .vdim = 3}, {.average_attn_weights = false});
     }},
    {"MultiheadAttention hidden keys",
     [](Generator& g) {
       return attention(g, 6, 2, {.add_bias_kv = true, .add_zero_attn = true},
                        {.key_padding_mask = kPadded, .attn_mask = kHidden});
     }},
    {"MultiheadAttention added masks",
     [](Generator& g) {
       return attention(g, 6, 2, {.add_bias_kv = true},
                        {.key_padding_mask = kPaddingBias, .need_weights = false, .attn_mask = kBias});
     }},
    {"MultiheadAttention mixed masks",
     [](Generator& g) {
       return attention(g, 6, 2, {.batch_first = true}, {.key_padding_mask = kPadded, .attn_mask = kBias.expand(4, 3, 4)});
     }},
    {"MultiheadAttention single",
     [](Generator& g) {
       return attention(g, 6, 2, {}, {.key_padding_mask = kPadded[0], .need_weights = false, .attn_mask = kHidden});
     }},
    {"TransformerEncoderLayer",
     [](Generator& g) { return encoder(std::make_unique<TransformerEncoderLayer>(6, 2, small(), g), EncoderMasks()); }},
    {"TransformerEncoderLayer norm_first",
     [](Generator& g) {
       TransformerLayerOptions options = kNormFirst;
       options.bias = false;
       return encoder(std::make_unique<TransformerEncoderLayer>(6, 2, options, g),
                      EncoderMasks{.src_key_padding_mask = kFlipped, .is_causal = true});
     }},
    {"TransformerDecoderLayer",
     [](Generator& g) {
       return decoder(std::make_unique<TransformerDecoderLayer>(6, 2, small(), g),
                      {.tgt_mask = kCausal, .memory_key_padding_mask = kMemoryPadded});
     }},
    {"TransformerDecoderLayer norm_first",
     [](Generator& g) { return decoder(std::make_unique<TransformerDecoderLayer>(6, 2, kNormFirst, g), {}); }},
    {"TransformerEncoder",
     [](Generator& g) {
       const TransformerEncoderLayer layer(6, 2, small(), g);
       return encoder(std::make_unique<TransformerEncoder>(layer, 2, std::make_unique<LayerNorm>(6)),
                      EncoderMasks{.mask = kCausal});
     }},
    {"TransformerDecoder",
     [](Generator& g) {
       const TransformerDecoderLayer layer(6, 2, small(), g);
       return decoder(std::make_unique<TransformerDecoder>(layer, 2), {});
     }},
    {"Transformer",
     [](Generator& g) {
       const TransformerOptions options{.num_encoder_layers = 2, .num_decoder_layers = 1, .layer = small()};
       return sample(std::make_unique<Transformer>(6, 2, options, g), [](const Transformer& m, const Tensors& in) -> Tensors {
         return {m(in[0], in[1], {.src_key_padding_mask = kMemoryPadded}, {.tgt_mask = kCausal})};
       });
     }},
};

void check_outputs(const Tensors& got, const nlohmann::json& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) check_close(got[i], wanted[i]);
}

/// The gradient of an output with n elements.
Tensor upstream(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>((i * 37 + 11) % 127 - 63) / 64);
  return from_values(values, {n});
}

/// Repeats run() of layers.py.
void check_sample(const std::string& name, const nlohmann::json& wanted) {
  CAPTURE(name);
  Generator generator(7);
  Tensors inputs;
  for (const auto& sizes : wanted.at("shapes")) {
    Shape shape;
    for (const auto& size : sizes) shape.push_back(size.get<int64_t>());
    inputs.push_back(randn(shape, generator).requires_grad_());
  }
  const Sample s = kSamples.at(name)(generator);
  CHECK(s.module->repr() == wanted.at("repr"));
  std::vector<std::string> keys;
  for (const auto& [key, _] : s.module->state_dict()) keys.push_back(key);
  CHECK(keys == wanted.at("keys"));
  for (const auto& [key, parameter] : s.module->named_parameters()) {
    const std::string& label = key;  // clang 14 captures no binding
    CHECK_MESSAGE(testing::fnv1a(parameter.to_vector<float>()) == wanted.at("hashes").at(key), label);
  }

  const Tensors outputs = s.call(inputs);
  Tensor loss = zeros({});
  for (const Tensor& y : outputs) loss = loss + sum(flatten(y) * upstream(y.numel()));
  loss.backward();
  check_outputs(outputs, wanted.at("y"));
  for (size_t i = 0; i < inputs.size(); ++i) check_close(inputs[i].grad(), wanted.at("input_grads")[i]);
  if (wanted.contains("grads")) {
    for (const auto& [key, parameter] : s.module->named_parameters()) {
      const std::string& label = key;  // clang 14 captures no binding
      CAPTURE(label);
      check_close(parameter.grad(), wanted.at("grads").at(key));
    }
  }
  s.module->eval();
  check_outputs(s.call(inputs), wanted.at("y_eval"));
}

TEST_CASE("layers: recurrent and attention and transformer modules follow PyTorch") {
  CHECK(kSamples.size() == goldens().at("runs").size());
  for (const auto& [name, wanted] : goldens().at("runs").items()) check_sample(name, wanted);
}

TEST_CASE("layers: they print as PyTorch prints") {
  const auto& printed = goldens().at("printed");
  Generator g(1);
  CHECK(Identity().repr() == printed.at("Identity"));
  CHECK(RNNCell(2, 3, false, "relu", g).repr() == printed.at("RNNCell"));
  const RNNOptions gru{.num_layers = 2, .bias = false, .batch_first = true, .dropout = 0.5, .bidirectional = true};
  CHECK(GRU(2, 3, gru, g).repr() == printed.at("GRU"));
  CHECK(LSTM(2, 3, {.proj_size = 1}, g).repr() == printed.at("LSTM"));
  CHECK(Bilinear(2, 3, 4, false, g).repr() == printed.at("Bilinear"));
  ModuleDict dict;
  dict.emplace<Linear>("first", 2, 3, true, g);
  dict.emplace<ReLU>("second");
  CHECK(dict.repr() == printed.at("ModuleDict"));
  CHECK(ParameterList({zeros(2, 3), zeros(4)}).repr() == printed.at("ParameterList"));
  const std::vector<std::string> activations = {
      LeakyReLU().repr(), LeakyReLU(0.2).repr(),  ELU().repr(),      SELU().repr(),         CELU().repr(),
      Softplus().repr(),  Softplus(2, 10).repr(), Softmax(1).repr(), LogSoftmax(-1).repr(), Softmin(0).repr(),
      Hardtanh().repr(),  Hardtanh(-2).repr(),    ReLU6().repr(),    Hardsigmoid().repr(),  Hardswish().repr(),
      Mish().repr(),      LogSigmoid().repr(),    Softsign().repr(), Tanhshrink().repr(),   Threshold(0.1, 20).repr(),
      GLU().repr(),       PReLU().repr(),         PReLU(3).repr()};
  CHECK(activations == printed.at("activations"));
  const std::vector<std::string> losses = {CrossEntropyLoss().repr(),
                                           NLLLoss().repr(),
                                           MultiMarginLoss().repr(),
                                           BCELoss().repr(),
                                           BCEWithLogitsLoss().repr(),
                                           MultiLabelSoftMarginLoss().repr(),
                                           SoftMarginLoss().repr(),
                                           KLDivLoss().repr(),
                                           MSELoss().repr(),
                                           L1Loss().repr(),
                                           SmoothL1Loss().repr(),
                                           HuberLoss().repr(),
                                           PoissonNLLLoss().repr(),
                                           HingeEmbeddingLoss().repr(),
                                           GaussianNLLLoss().repr(),
                                           MarginRankingLoss().repr(),
                                           CosineEmbeddingLoss().repr(),
                                           TripletMarginLoss().repr()};
  CHECK(losses == printed.at("losses"));
  std::vector<std::string> keys;
  const BCEWithLogitsLoss weighted({.weight = ones(2), .pos_weight = ones(2)});
  for (const auto& [key, _] : weighted.state_dict()) keys.push_back(key);
  CHECK(keys == printed.at("weights of losses"));
}

TEST_CASE("layers: ModuleDict and ParameterList hold what they are given under its names") {
  Generator g(1);
  ModuleDict<Linear> dict;
  dict.emplace("b", 2, 3, true, g);
  dict.insert("a", std::make_unique<Linear>(3, 1, true, g));
  CHECK(dict.size() == 2);
  CHECK(dict.keys() == std::vector<std::string>{"b", "a"});
  CHECK(dict.contains("a"));
  CHECK_FALSE(dict.contains("c"));
  CHECK(dict["a"].weight.shape() == Shape{1, 3});
  CHECK(dict.named_parameters().back().first == "a.bias");
  CHECK(testing::refusal<ConfigError>([&] { dict["c"]; }) == "ModuleDict: no module of that name: c");
  CHECK(testing::refusal<ConfigError>([&] { dict.emplace("a", 1, 1); }) == "ModuleDict: there is a module of that name: a");
  ParameterList list({ones(2)});
  list.append(zeros({3}));
  CHECK(list.size() == 2);
  CHECK(list[1].requires_grad());
  CHECK(list.named_parameters()[1].first == "1");
  CHECK(testing::refusal<ShapeError>([&] { list[2]; }) == "ParameterList: index 2 is out of range for 2 parameters");
}

TEST_CASE("layers: what does not fit a recurrent module is named") {
  using testing::refusal;
  CHECK(refusal<ShapeError>([] { LSTM(0, 3); }) == "LSTM: sizes must be positive: input_size=0, hidden_size=3, num_layers=1");
  CHECK(refusal<ShapeError>([] { LSTM(2, 3, {.proj_size = 3}); }) == "LSTM: proj_size must be below hidden_size: got 3 and 3");
  CHECK(refusal<ShapeError>([] { GRUCell(2, -1); }) == "GRUCell: sizes must be positive: input_size=2, hidden_size=-1");
  CHECK(refusal<ConfigError>([] { GRU(2, 3, {.dropout = 1.5}); }) == "GRU: dropout must be between 0 and 1: got 1.5");
  CHECK(refusal<ConfigError>([] { GRU(2, 3, {.proj_size = 1}); }) == "GRU: proj_size is an option of LSTM: got 1");
  CHECK(refusal<ConfigError>([] { LSTM(2, 3, {.nonlinearity = "relu"}); }) ==
        "LSTM: nonlinearity is an option of RNN: got relu");
  CHECK(refusal<ConfigError>([] { RNNCell(2, 3, true, "gelu"); }) == "RNNCell: unknown nonlinearity: \"gelu\" (tanh or relu)");
  CHECK(refusal<ShapeError>([] { LSTM(2, 3)(ones(4, 2, 3)); }) == "LSTM: needs an input [T, B, 2] or [T, 2]: got [4, 2, 3]");
  CHECK(refusal<ShapeError>([] { RNN(2, 3)(ones(0, 1, 2)); }) == "RNN: needs at least one token: got [0, 1, 2]");
  CHECK(refusal<ShapeError>([] { RNN(2, 3)(ones(4, 1, 2), ones(1, 2, 3)); }) == "RNN: needs a state [1, 1, 3]: got [1, 2, 3]");
  CHECK(refusal<ShapeError>([] { GRUCell(2, 3)(ones(4, 2), ones(3)); }).starts_with("GRUCell: needs a state "));
}

TEST_CASE("layers: what does not fit MultiheadAttention is named") {
  using testing::refusal;
  CHECK(refusal<ShapeError>([] { MultiheadAttention(6, 4); }) ==
        "MultiheadAttention: embed_dim must be a positive multiple of num_heads: got 6 and 4");
  const MultiheadAttention attention(6, 2);
  const Tensor x = ones(3, 2, 6);
  CHECK(
      refusal<ShapeError>([&] { attention(x, x, ones(4, 2, 6)); }) ==
      "MultiheadAttention: needs a query [T, B, 6], a key and a value with 6 and 6 features, or all without B: got [3, 2, 6], "
      "[3, 2, 6] and [4, 2, 6]");
  CHECK(refusal<ShapeError>([&] { attention(x, x, x, {.attn_mask = zeros(2, 3)}); }) ==
        "MultiheadAttention: attn_mask must be [3, 3] or [4, 3, 3]: got [2, 3]");
  CHECK(refusal<DTypeError>([&] {
          attention(x, x, x, {.attn_mask = zeros({3, 3}, DType::int64)});
        }) == "MultiheadAttention: attn_mask must be bool or float32: got int64");
}

TEST_CASE("layers: a query of MultiheadAttention without keys gets the bias of the output projection and no gradient") {
  Generator g(3);
  MultiheadAttention attention(4, 2, {}, g);
  const Tensor hidden = bools({{1, 1, 1}, {0, 1, 0}, {0, 0, 0}});
  for (const bool need_weights : {true, false}) {
    Tensor x = randn({3, 1, 4}, g).requires_grad_();
    const Tensor y = attention(x, x.detach(), x.detach(), {.need_weights = need_weights, .attn_mask = hidden}).output;
    CHECK(equal(y[0].detach(), zeros({1, 4})));
    sum(y * y).backward();
    CHECK(equal(x.grad()[0], zeros({1, 4})));
    CHECK_FALSE(equal(x.grad()[1], zeros({1, 4})));
  }
}

TEST_CASE("layers: hooks of an encoder layer are called where it gets masks") {
  Generator g(5);
  TransformerEncoder encoder(TransformerEncoderLayer(4, 2, small(), g), 2);
  int calls = 0;
  encoder.layers[1].register_forward_hook([&](const Layer&, const Tensor&, const Tensor&) { return ++calls, Tensor(); });
  encoder(ones(3, 1, 4), {.is_causal = true});
  encoder(ones(3, 1, 4));
  CHECK(calls == 2);
}

TEST_CASE("layers: TransformerEncoder draws one layer and clones it") {
  Generator a(5), b(5);
  const TransformerEncoderLayer layer(4, 2, small(), a), same(4, 2, small(), b);
  TransformerEncoder encoder(layer, 2);
  CHECK(a.state() == b.state());
  const auto& last = encoder.layers[1];
  CHECK(equal(last.self_attn.in_proj_weight.detach(), same.self_attn.in_proj_weight.detach()));
  CHECK_FALSE(last.linear1.weight.shares_storage(layer.linear1.weight));
}

}  // namespace
}  // namespace onestep::nn

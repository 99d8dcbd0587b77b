// Module cases of what has several inputs or results: each is called on one x, and one tensor of its results is checked.
#include "autograd/operators.h"
#include "nn/bilinear.h"
#include "nn/identity.h"
#include "nn/lora.h"
#include "nn/module_case.h"
#include "nn/multihead_attention.h"
#include "nn/rnn.h"
#include "nn/rnn_cell.h"
#include "nn/transformer.h"

namespace onestep::nn {
namespace {

/// A module as a layer, with what it is called by.
template <class M, class Call>
class Called : public Layer {
 public:
  Called(M module, Call call) : module_(std::move(module)), call_(std::move(call)) {}
  Tensor forward(const Tensor& x) const override { return call_(module_, x); }
  std::string name() const override { return module_.name(); }
  void visit(Visitor& visitor) override { module_.visit(visitor); }

 private:
  M module_;
  Call call_;
};

template <class M, class Call>
std::unique_ptr<Layer> called(M module, Call call) {
  return std::make_unique<Called<M, Call>>(std::move(module), std::move(call));
}

/// Draws x from the standard normal.
auto normal(const Shape& shape) {
  return [shape](Generator& generator) { return randn(shape, generator); };
}

auto output = [](const auto& module, const Tensor& x) { return module(x).output; };

/// Output and last states of two layers in two directions, one after another in the last dim.
template <class Layers>
auto recurrent_case(RNNOptions options) {
  options.num_layers = 2;
  options.bidirectional = true;
  options.dropout = 0.3;
  return [options](Generator& g) {
    return called(Layers(2, 3, options, g), [](const Layers& layers, const Tensor& x) {
      if constexpr (std::is_same_v<Layers, LSTM>) {
        const auto [y, state] = layers(x);
        return cat({flatten(y), flatten(state.h), flatten(state.c)});
      } else {
        const auto [y, h] = layers(x, full({4, x.size(1), 3}, 0.5, x.dtype()));
        return cat({flatten(y), flatten(h)});
      }
    });
  };
}

auto attention_case(const MultiheadAttentionOptions& options, const MultiheadAttentionCall& call) {
  return [=](Generator& g) {
    return called(MultiheadAttention(4, 2, options, g),
                  [call](const MultiheadAttention& attention, const Tensor& x) { return attention(x, x, x, call).output; });
  };
}

const TransformerLayerOptions kSmall{.dim_feedforward = 3, .dropout = 0.2, .activation = "gelu"};
const TransformerLayerOptions kNormFirst{
    .dim_feedforward = 3, .dropout = 0.0, .activation = "gelu", .batch_first = true, .norm_first = true};

template <class M>
auto transformer_case(const TransformerLayerOptions& options) {
  return [options](Generator& g) {
    return called(M(2, 1, options, g), [](const M& layer, const Tensor& x) {
      if constexpr (std::is_same_v<M, TransformerEncoderLayer>)
        return layer(x, {.is_causal = true});
      else
        return layer(x, x * x, {.tgt_is_causal = true});
    });
  };
}

std::unique_ptr<Layer> make_encoder(Generator& g) {
  return std::make_unique<TransformerEncoder>(TransformerEncoderLayer(2, 1, kSmall, g), 2, std::make_unique<LayerNorm>(2));
}

std::unique_ptr<Layer> make_decoder(Generator& g) {
  return called(TransformerDecoder(TransformerDecoderLayer(2, 1, kSmall, g), 2),
                [](const TransformerDecoder& decoder, const Tensor& x) { return decoder(x, x * x); });
}

std::unique_ptr<Layer> make_transformer(Generator& g) {
  const TransformerOptions options{.num_encoder_layers = 1, .num_decoder_layers = 1, .layer = kSmall};
  return called(Transformer(2, 1, options, g),
                [](const Transformer& transformer, const Tensor& x) { return transformer(x, x * x); });
}

const RegisterModuleCases registered([] {
  return ModuleCases{
      {"Identity", "", [](Generator&) { return std::make_unique<Identity>(); }, normal({3, 4})},
      {"LoraAdapter", "",
       [](Generator& g) {
         auto adapter = std::make_unique<LoraAdapter>(3, 2, LoraOptions{.rank = 2, .alpha = 3.0}, g);
         adapter->lora_B.weight = randn({2, 2}, g).requires_grad_();  // a new one is zero
         return adapter;
       },
       normal({4, 3})},
      {"Bilinear", "",
       [](Generator& g) {
         return called(Bilinear(3, 3, 2, true, g), [](const Bilinear& m, const Tensor& x) { return m(x, x * 2); });
       },
       normal({4, 3})},
      {"RNNCell", "",
       [](Generator& g) {
         return called(RNNCell(3, 3, true, "tanh", g), [](const RNNCell& m, const Tensor& x) { return m(x, x); });
       },
       normal({2, 3})},
      {"GRUCell", "",
       [](Generator& g) { return called(GRUCell(3, 3, true, g), [](const GRUCell& m, const Tensor& x) { return m(x, x); }); },
       normal({2, 3})},
      {"LSTMCell", "",
       [](Generator& g) {
         return called(LSTMCell(3, 3, true, g), [](const LSTMCell& m, const Tensor& x) {
           const auto [h, c] = m(x, {x, x * 2});
           return h + c;
         });
       },
       normal({2, 3})},
      {"RNN", "", recurrent_case<RNN>({}), normal({3, 2, 2})},
      {"RNN", "relu", [](Generator& g) { return called(RNN(2, 3, {.nonlinearity = "relu"}, g), output); }, normal({3, 2, 2})},
      {"GRU", "", recurrent_case<GRU>({}), normal({3, 2, 2})},
      {"LSTM", "", recurrent_case<LSTM>({}), normal({3, 2, 2})},
      {"LSTM", "projected", recurrent_case<LSTM>({.bias = false, .proj_size = 1}), normal({3, 2, 2})},
      {"MultiheadAttention", "", attention_case({}, {}), normal({3, 2, 4})},
      {"MultiheadAttention", "fused", attention_case({.dropout = 0.2, .batch_first = true}, {.need_weights = false}),
       normal({2, 3, 4})},
      {"MultiheadAttention", "more keys", attention_case({.add_bias_kv = true, .add_zero_attn = true}, {.is_causal = true}),
       normal({3, 4})},
      {"TransformerEncoderLayer", "", transformer_case<TransformerEncoderLayer>(kSmall), normal({3, 2, 2})},
      {"TransformerEncoderLayer", "norm_first", transformer_case<TransformerEncoderLayer>(kNormFirst), normal({2, 3, 2})},
      {"TransformerDecoderLayer", "", transformer_case<TransformerDecoderLayer>(kSmall), normal({3, 2, 2})},
      {"TransformerDecoderLayer", "norm_first", transformer_case<TransformerDecoderLayer>(kNormFirst), normal({2, 3, 2})},
      {"TransformerEncoder", "", make_encoder, normal({3, 2, 2})},
      {"TransformerDecoder", "", make_decoder, normal({3, 2, 2})},
      {"Transformer", "", make_transformer, normal({3, 2, 2})},
  };
});

}  // namespace
}  // namespace onestep::nn

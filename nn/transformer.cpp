#include "nn/transformer.h"

#include <cmath>

#include "autograd/operators.h"
#include "nn/activation.h"
#include "nn/init.h"

namespace onestep::nn {
namespace {

MultiheadAttentionOptions attention_options(const TransformerLayerOptions& o) {
  return {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first};
}

LayerNorm layer_norm_of(int64_t d_model, const TransformerLayerOptions& o) {
  return LayerNorm(Shape{d_model}, o.layer_norm_eps, true, o.bias);
}

/// A layer like this one, made with `make(generator)` without moving the generator on.
template <class L, class Make>
std::unique_ptr<L> clone_of(const L& layer, Make make) {
  Generator& generator = layer.dropout.generator();
  const Generator before = generator;
  std::unique_ptr<L> copy = make(generator);
  generator = before;
  copy->to(layer.linear1.weight.dtype());
  copy->load_state_dict(layer.state_dict());
  copy->train(layer.is_training());
  return copy;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& o,
                                                 Generator& generator)
    : self_attn(d_model, nhead, attention_options(o), generator),
      linear1(d_model, o.dim_feedforward, o.bias, generator),
      dropout(o.dropout, generator),
      linear2(o.dim_feedforward, d_model, o.bias, generator),
      norm1(layer_norm_of(d_model, o)),
      norm2(layer_norm_of(d_model, o)),
      dropout1(o.dropout, generator),
      dropout2(o.dropout, generator),
      d_model_(d_model),
      nhead_(nhead),
      options_(o),
      activation_(make_activation(o.activation)) {}

void TransformerEncoderLayer::visit(Visitor& visitor) {
  visitor.child("self_attn", self_attn);
  visitor.child("linear1", linear1);
  visitor.child("dropout", dropout);
  visitor.child("linear2", linear2);
  visitor.child("norm1", norm1);
  visitor.child("norm2", norm2);
  visitor.child("dropout1", dropout1);
  visitor.child("dropout2", dropout2);
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const EncoderMasks& masks) const {
  const auto attention = [&](const Tensor& x) {
    return dropout1(self_attn(x, x, x,
                              {.key_padding_mask = masks.src_key_padding_mask,
                               .need_weights = false,
                               .attn_mask = masks.mask,
                               .is_causal = masks.is_causal})
                        .output);
  };
  const auto feed_forward = [&](const Tensor& x) { return dropout2(linear2(dropout((*activation_)(linear1(x))))); };
  if (options_.norm_first) {
    const Tensor x = src + attention(norm1(src));
    return x + feed_forward(norm2(x));
  }
  const Tensor x = norm1(src + attention(src));
  return norm2(x + feed_forward(x));
}

Tensor TransformerEncoderLayer::operator()(const Tensor& src, const EncoderMasks& masks) const {
  return between_hooks(src, [&](const Tensor& x) { return forward(x, masks); });
}

std::unique_ptr<TransformerEncoderLayer> TransformerEncoderLayer::clone() const {
  return clone_of(*this,
                  [this](Generator& g) { return std::make_unique<TransformerEncoderLayer>(d_model_, nhead_, options_, g); });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& o,
                                                 Generator& generator)
    : self_attn(d_model, nhead, attention_options(o), generator),
      multihead_attn(d_model, nhead, attention_options(o), generator),
      linear1(d_model, o.dim_feedforward, o.bias, generator),
      dropout(o.dropout, generator),
      linear2(o.dim_feedforward, d_model, o.bias, generator),
      norm1(layer_norm_of(d_model, o)),
      norm2(layer_norm_of(d_model, o)),
      norm3(layer_norm_of(d_model, o)),
      dropout1(o.dropout, generator),
      dropout2(o.dropout, generator),
      dropout3(o.dropout, generator),
      d_model_(d_model),
      nhead_(nhead),
      options_(o),
      activation_(make_activation(o.activation)) {}

void TransformerDecoderLayer::visit(Visitor& visitor) {
  visitor.child("self_attn", self_attn);
  visitor.child("multihead_attn", multihead_attn);
  visitor.child("linear1", linear1);
  visitor.child("dropout", dropout);
  visitor.child("linear2", linear2);
  visitor.child("norm1", norm1);
  visitor.child("norm2", norm2);
  visitor.child("norm3", norm3);
  visitor.child("dropout1", dropout1);
  visitor.child("dropout2", dropout2);
  visitor.child("dropout3", dropout3);
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
  const auto self_attention = [&](const Tensor& x) {
    return dropout1(self_attn(x, x, x,
                              {.key_padding_mask = masks.tgt_key_padding_mask,
                               .need_weights = false,
                               .attn_mask = masks.tgt_mask,
                               .is_causal = masks.tgt_is_causal})
                        .output);
  };
  const auto cross_attention = [&](const Tensor& x) {
    return dropout2(multihead_attn(x, memory, memory,
                                   {.key_padding_mask = masks.memory_key_padding_mask,
                                    .need_weights = false,
                                    .attn_mask = masks.memory_mask,
                                    .is_causal = masks.memory_is_causal})
                        .output);
  };
  const auto feed_forward = [&](const Tensor& x) { return dropout3(linear2(dropout((*activation_)(linear1(x))))); };
  if (options_.norm_first) {
    Tensor x = tgt + self_attention(norm1(tgt));
    x = x + cross_attention(norm2(x));
    return x + feed_forward(norm3(x));
  }
  Tensor x = norm1(tgt + self_attention(tgt));
  x = norm2(x + cross_attention(x));
  return norm3(x + feed_forward(x));
}

Tensor TransformerDecoderLayer::operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
  const RunningModule running(*this);
  return forward(tgt, memory, masks);
}

std::unique_ptr<TransformerDecoderLayer> TransformerDecoderLayer::clone() const {
  return clone_of(*this,
                  [this](Generator& g) { return std::make_unique<TransformerDecoderLayer>(d_model_, nhead_, options_, g); });
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, std::shared_ptr<Layer> last)
    : norm(std::move(last)) {
  for (int64_t i = 0; i < num_layers; ++i) layers.append(layer.clone());
}

Tensor TransformerEncoder::forward(const Tensor& src, const EncoderMasks& masks) const {
  Tensor x = src;
  for (const TransformerEncoderLayer& layer : layers) x = layer(x, masks);
  return norm ? (*norm)(x) : x;
}

Tensor TransformerEncoder::operator()(const Tensor& src, const EncoderMasks& masks) const {
  return between_hooks(src, [&](const Tensor& x) { return forward(x, masks); });
}

void TransformerEncoder::visit(Visitor& visitor) {
  visitor.child("layers", layers);
  if (norm) visitor.child("norm", *norm);
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, std::shared_ptr<Layer> last)
    : norm(std::move(last)) {
  for (int64_t i = 0; i < num_layers; ++i) layers.append(layer.clone());
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
  Tensor x = tgt;
  for (const TransformerDecoderLayer& layer : layers) x = layer(x, memory, masks);
  return norm ? (*norm)(x) : x;
}

Tensor TransformerDecoder::operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
  const RunningModule running(*this);
  return forward(tgt, memory, masks);
}

void TransformerDecoder::visit(Visitor& visitor) {
  visitor.child("layers", layers);
  if (norm) visitor.child("norm", *norm);
}

Transformer::Transformer(int64_t d_model, int64_t nhead, const TransformerOptions& o, Generator& generator)
    : encoder(TransformerEncoderLayer(d_model, nhead, o.layer, generator), o.num_encoder_layers,
              std::make_unique<LayerNorm>(layer_norm_of(d_model, o.layer))),
      decoder(TransformerDecoderLayer(d_model, nhead, o.layer, generator), o.num_decoder_layers,
              std::make_unique<LayerNorm>(layer_norm_of(d_model, o.layer))) {
  for (Tensor& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter, 1.0, generator);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& src_masks,
                            const DecoderMasks& tgt_masks) const {
  return decoder(tgt, encoder(src, src_masks), tgt_masks);
}

Tensor Transformer::operator()(const Tensor& src, const Tensor& tgt, const EncoderMasks& src_masks,
                               const DecoderMasks& tgt_masks) const {
  const RunningModule running(*this);
  return forward(src, tgt, src_masks, tgt_masks);
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, DType dtype) {
  return masked_fill(zeros({size, size}, dtype), triu(ones({size, size}, DType::boolean), 1), -INFINITY);
}

void Transformer::visit(Visitor& visitor) {
  visitor.child("encoder", encoder);
  visitor.child("decoder", decoder);
}

}  // namespace onestep::nn

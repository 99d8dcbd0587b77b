#pragma once
#include <memory>
#include <string>

#include "autograd/ops_shape.h"
#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/module_list.h"
#include "nn/multihead_attention.h"

namespace onestep::nn {

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  ///< As in make_activation.
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  ///< Tensors are [B, T, d_model] instead of [T, B, d_model].
  bool norm_first = false;   ///< Layer norm before attention and feed-forward, not after the residual sum.
  bool bias = true;
};

// Masks are those of MultiheadAttention: true = may not attend, or floating and added to the scores.
struct EncoderMasks {
  Tensor mask = {};                  ///< [T, T] or [B nhead, T, T].
  Tensor src_key_padding_mask = {};  ///< [B, T].
  bool is_causal = false;
};
struct DecoderMasks {
  Tensor tgt_mask = {};     ///< [T, T] or [B nhead, T, T].
  Tensor memory_mask = {};  ///< [T, S] or [B nhead, T, S].
  Tensor tgt_key_padding_mask = {};
  Tensor memory_key_padding_mask = {};
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
};

/// Self-attention and a feed-forward layer, each with dropout, residual sum and layer norm: x [T, B, d_model], one sequence [T,
/// d_model], or with batch_first [B, T, d_model] -> the same shape (Vaswani et al. 2017; torch.nn.TransformerEncoderLayer).
class TransformerEncoderLayer : public Layer {
 public:
  /// Draws self_attn, linear1, linear2; dropout masks come from `generator`, which must outlive the module. Throws what its
  /// children throw.
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options = {},
                          Generator& generator = default_generator());

  Tensor forward(const Tensor& src) const override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const EncoderMasks& masks) const;
  using Layer::operator();
  Tensor operator()(const Tensor& src, const EncoderMasks& masks) const;
  std::string name() const override { return "TransformerEncoderLayer"; }
  void visit(Visitor& visitor) override;
  /// A layer of the same options, values and mode; draws nothing.
  std::unique_ptr<TransformerEncoderLayer> clone() const;

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;

 private:
  int64_t d_model_, nhead_;
  TransformerLayerOptions options_;
  std::shared_ptr<Layer> activation_;
};

/// As the encoder's layer, with attention to `memory` [S, B, d_model], the encoder's output, between the two
/// (torch.nn.TransformerDecoderLayer).
class TransformerDecoderLayer : public Module {
 public:
  /// Draws self_attn, multihead_attn, linear1, linear2; else as TransformerEncoderLayer.
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options = {},
                          Generator& generator = default_generator());

  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) const;
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) const;
  std::string name() const override { return "TransformerDecoderLayer"; }
  void visit(Visitor& visitor) override;
  /// A layer of the same options, values and mode; draws nothing.
  std::unique_ptr<TransformerDecoderLayer> clone() const;

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;

 private:
  int64_t d_model_, nhead_;
  TransformerLayerOptions options_;
  std::shared_ptr<Layer> activation_;
};

/// Encoder layers one after another, and a last layer, most often a LayerNorm, if there is one (torch.nn.TransformerEncoder).
class TransformerEncoder : public Layer {
 public:
  /// `num_layers` clones of `layer`.
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, std::shared_ptr<Layer> last = nullptr);

  Tensor forward(const Tensor& src) const override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const EncoderMasks& masks) const;
  using Layer::operator();
  Tensor operator()(const Tensor& src, const EncoderMasks& masks) const;
  std::string name() const override { return "TransformerEncoder"; }
  void visit(Visitor& visitor) override;

  ModuleList<TransformerEncoderLayer> layers;
  std::shared_ptr<Layer> norm;  // or null
};

/// Decoder layers one after another, and a last layer if there is one (torch.nn.TransformerDecoder).
class TransformerDecoder : public Module {
 public:
  /// `num_layers` clones of `layer`.
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, std::shared_ptr<Layer> last = nullptr);

  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) const;
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) const;
  std::string name() const override { return "TransformerDecoder"; }
  void visit(Visitor& visitor) override;

  ModuleList<TransformerDecoderLayer> layers;
  std::shared_ptr<Layer> norm;  // or null
};

struct TransformerOptions {
  int64_t num_encoder_layers = 6, num_decoder_layers = 6;
  TransformerLayerOptions layer = {};
};

/// An encoder of the source and a decoder of the target, both with a last LayerNorm (torch.nn.Transformer).
class Transformer : public Module {
 public:
  /// Draws an encoder layer and a decoder layer, then every parameter of rank 2 again (init::xavier_uniform_).
  explicit Transformer(int64_t d_model = 512, int64_t nhead = 8, const TransformerOptions& options = {},
                       Generator& generator = default_generator());

  /// src [S, B, d_model] and tgt [T, B, d_model] -> [T, B, d_model]; likewise with batch_first or without B.
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& src_masks = {},
                 const DecoderMasks& tgt_masks = {}) const;
  Tensor operator()(const Tensor& src, const Tensor& tgt, const EncoderMasks& src_masks = {},
                    const DecoderMasks& tgt_masks = {}) const;
  /// -inf above the diagonal, 0 elsewhere: [size, size], added to scores.
  static Tensor generate_square_subsequent_mask(int64_t size, DType dtype = DType::float32);
  std::string name() const override { return "Transformer"; }
  void visit(Visitor& visitor) override;

  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace onestep::nn

#pragma once
// LoRA (Hu et al. 2022): a layer stays as it is, and a product of two narrow matrices that is added to its output is trained.
#include <memory>
#include <string>
#include <vector>

#include "nn/dropout.h"
#include "nn/linear.h"

namespace onestep::nn {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 8.0, dropout = 0.0;
};

/// x -> B A dropout(x) alpha / rank: [..., in_features] -> [..., out_features].
class LoraAdapter : public Layer {
 public:
  /// Draws what the peft package draws, lora_A and lora_B as Linear layers and then A again, within +-1/sqrt(in_features); B is
  /// zero, so that a new adapter changes nothing. Throws ConfigError unless rank and alpha are above 0 and 0 <= dropout <= 1.
  LoraAdapter(int64_t in_features, int64_t out_features, const LoraOptions& options = {},
              Generator& generator = default_generator());
  Tensor forward(const Tensor& x) const override;
  std::string name() const override { return "LoraAdapter"; }
  void visit(Visitor& visitor) override;
  /// What merging adds to the weight of the layer: lora_weight.
  Tensor weight() const;

  Linear lora_A, lora_B;  // [in_features] -> [rank] -> [out_features]
  Dropout dropout;
  double scaling;  // alpha / rank
};

/// B A scaling, what an adapter adds to the weight of its layer: [rank, in], [out, rank] -> [out, in].
Tensor lora_weight(const Tensor& a, const Tensor& b, double scaling);

/// Some rows of a layer's weight, whose outputs an adapter moves: queries, say, where one layer gives queries, keys and values.
struct LoraRows {
  std::string name = {};          ///< Of the adapter in the layer's state dict; empty: none, as for all rows.
  int64_t first = 0, count = -1;  ///< -1: all that follow.
};

/// The adapters of one Linear (Linear::lora).
struct Lora {
  struct Part {
    LoraRows rows;
    std::unique_ptr<LoraAdapter> adapter;
  };
  std::vector<Part> parts;  ///< In the order of their rows, which do not overlap.
  bool merged = false;      ///< They are part of the weight.

  /// y + what the adapters make of x, written into y: [..., out] and [..., in].
  Tensor add_to(Tensor y, const Tensor& x) const;
};

/// Gives a layer, or some of its outputs, an adapter; its own parameters require no grad any more. Throws ConfigError where the
/// rows are not there or have one, IndexError.
LoraAdapter& add_lora(Linear& layer, const LoraOptions& options = {}, Generator& generator = default_generator(),
                      const LoraRows& rows = {});

/// Gives an adapter to every Linear of a model whose name, or a last part of it, has the form of one of `targets` (* stands for
/// any characters, ? for one), and trains these alone; the names (peft.get_peft_model with target_modules). Throws ConfigError
/// for a target without a layer.
std::vector<std::string> add_lora(Module& model, const LoraOptions& options, const std::vector<std::string>& targets,
                                  Generator& generator = default_generator());

/// Whether a target names a module: `c_attn` and `attn.c_attn` do `transformer.h.0.attn.c_attn`.
bool is_lora_target(const std::string& target, const std::string& name);

/// Adds the product of every adapter of a model to the weight of its layer, which then costs what it did without one; outputs
/// differ by the rounding of the sum. unmerge_lora subtracts it again.
void merge_lora(Module& model);
void unmerge_lora(Module& model);

}  // namespace onestep::nn

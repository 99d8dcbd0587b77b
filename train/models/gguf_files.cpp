#include "train/models/gguf_files.h"

#include <map>

#include "autograd/creation.h"
#include "autograd/ops_shape.h"
#include "autograd/portable_math.h"
#include "base/new_files.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "train/models/gguf_vocabulary.h"
#include "train/models/pretrained_config.h"
#include "train/models/tensor_names.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;

const std::vector<ModuleNames>& gguf_names(bool gpt2) {
  const auto with = [](std::vector<ModuleNames> names, const std::vector<ModuleNames>& more) {
    names.insert(names.end(), more.begin(), more.end());
    return names;
  };
  static const std::vector<ModuleNames> common{
      {"transformer.wte", {"token_embd"}},
      {"transformer.wpe", {"position_embd"}},
      {"transformer.h.#.ln_1", {"blk.#.attn_norm"}},
      {"transformer.h.#.attn.c_proj", {"blk.#.attn_output"}},
      {"transformer.h.#.attn.q_norm", {"blk.#.attn_q_norm"}},
      {"transformer.h.#.attn.k_norm", {"blk.#.attn_k_norm"}},
      {"transformer.h.#.ln_2", {"blk.#.ffn_norm"}},
      {"transformer.h.#.mlp.c_fc", {"blk.#.ffn_up"}},
      {"transformer.h.#.mlp.c_proj", {"blk.#.ffn_down"}},
      {"transformer.h.#.mlp.gate_proj", {"blk.#.ffn_gate"}},
      {"transformer.h.#.mlp.up_proj", {"blk.#.ffn_up"}},
      {"transformer.h.#.mlp.down_proj", {"blk.#.ffn_down"}},
      {"transformer.ln_f", {"output_norm"}},
      {"lm_head", {"output"}},
  };
  static const auto fused = with(common, {{"transformer.h.#.attn.c_attn", {"blk.#.attn_qkv"}}});
  static const auto split = with(common, {{"transformer.h.#.attn.c_attn", {"blk.#.attn_q", "blk.#.attn_k", "blk.#.attn_v"}}});
  return gpt2 ? fused : split;
}

std::string architecture(Family family) { return std::string(family == Family::mistral ? "llama" : name_of(family)); }

void add_config(GgufWriter& file, const ModelConfig& m, Family family, GgmlType type) {
  const std::string arch = architecture(family);
  const auto count = [&](const std::string& key, int64_t value) { file.add(arch + key, static_cast<uint32_t>(value)); };
  const auto number = [&](const std::string& key, double value) { file.add(arch + key, static_cast<float>(value)); };
  // file_type as in llama.cpp's enum llama_ftype
  const uint32_t file_type = type == GgmlType::f32 ? 0 : type == GgmlType::f16 ? 1 : type == GgmlType::q8_0 ? 7 : 32;
  file.add("general.architecture", arch);
  file.add("general.file_type", file_type);
  file.add("general.quantization_version", uint32_t{2});
  count(".vocab_size", m.vocab_size);
  count(".context_length", m.context_length);
  count(".embedding_length", m.d_model);
  count(".block_count", m.num_layers);
  count(".feed_forward_length", m.d_ff);
  count(".attention.head_count", m.num_heads);
  if (family == Family::gpt2) return number(".attention.layer_norm_epsilon", m.norm_eps);
  count(".attention.head_count_kv", m.num_kv_heads);
  count(".attention.key_length", m.head_dim);
  count(".attention.value_length", m.head_dim);
  number(".attention.layer_norm_rms_epsilon", m.norm_eps);
  count(".rope.dimension_count", m.head_dim);
  number(".rope.freq_base", m.rope_theta);
  if (m.window > 0) count(".attention.sliding_window", m.window);
  if (m.rope_scaling != RotaryScaling::Kind::linear) return;
  file.add(arch + ".rope.scaling.type", std::string("linear"));
  number(".rope.scaling.factor", m.rope_factor);
}

/// By what llama.cpp divides the frequency of each pair of features: [head_dim / 2].
Tensor frequency_divisors(const ModelConfig& m) {
  const RotaryScaling scaling = rotary_scaling(m);
  std::vector<float> divisors;
  for (int64_t i = 0; i < m.head_dim / 2; ++i) {
    const double frequency = portable::pow(m.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(m.head_dim));
    divisors.push_back(static_cast<float>(frequency / scaled_frequency(frequency, scaling)));
  }
  return from_values(divisors, {m.head_dim / 2});
}

/// Rows of queries or keys, heads with their halves one after the other, with the two of a pair as neighbours.
Tensor interleaved(const Tensor& rows, int64_t head_dim) {
  const Tensor heads = contiguous(rows).reshape({-1, 2, head_dim / 2, rows.numel() / rows.size(0)});  // [H, 2, d / 2, in]
  return contiguous(heads.transpose(1, 2)).reshape(rows.shape());
}

bool is_queries_or_keys(const std::string& name) {
  return name.find(".attn_q.") != std::string::npos || name.find(".attn_k.") != std::string::npos;
}

GgmlType type_of(const FileTensor& tensor, GgmlType type) {
  if (tensor.shape.rank() == 1 || tensor.name == "position_embd.weight") return GgmlType::f32;
  return type == GgmlType::q8_0 && tensor.shape.back() % kQ8Block != 0 ? GgmlType::f16 : type;
}

/// An export replaces a GGUF, not anything else.
void check_replaces_gguf(const fs::path& path) {
  if (!fs::exists(path)) return;
  InputFile file(path.string());
  char magic[4] = {};
  const bool gguf = file.size() >= sizeof magic && (file.read(magic, sizeof magic), std::string_view(magic, 4) == "GGUF");
  ONESTEP_CHECK(IoError, gguf, path.string(), ": is no GGUF, and an export would replace it (name another file)");
}

}  // namespace

void write_gguf(const fs::path& path, const Pretrained& pretrained, const GgufOptions& options) {
  const NoGradGuard no_grad;
  ModelConfig m = written_out(pretrained.model);
  const Family family = family_of(m);
  if (family == Family::gpt2) m = with_all_biases(m);
  GgufWriter file;
  add_config(file, m, family, options.type);
  add_vocabulary(file, options.tokenizer, m.vocab_size, m.eos_token_ids);
  const std::map<std::string, Tensor> state(pretrained.state.begin(), pretrained.state.end());
  if (m.rope_scaling == RotaryScaling::Kind::llama3) file.add_tensor("rope_freqs.weight", frequency_divisors(m), GgmlType::f32);
  for (const FileTensor& tensor : file_tensors(m, gguf_names(family == Family::gpt2))) {
    Tensor part = exported(tensor, state).to(DType::float32);
    if (architecture(family) == "llama" && is_queries_or_keys(tensor.name)) part = interleaved(part, m.head_dim);
    const GgmlType type = type_of(tensor, options.type);
    if (type == GgmlType::f16) check_range(tensor.name, part, DType::float16);
    if (type == GgmlType::bf16) check_range(tensor.name, part, DType::bfloat16);
    file.add_tensor(tensor.name, part, type);
  }
  check_replaces_gguf(path);
  NewFiles files(path.has_parent_path() ? path.parent_path() : fs::path("."));
  file.write(files.add(path.filename().string()).string(), options.quiet);
  files.finish();
}

}  // namespace onestep::train

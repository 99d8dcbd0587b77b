// GGUF exports: the header, the place of every tensor, and how Q8_0 rounds. tests/pretrained/gguf_read compares with the gguf
// package.
#include "train/models/gguf_files.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "autograd/half.h"
#include "autograd/ops.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/models/language_model.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::read;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = ONESTEP_SOURCE_DIR "/tests/goldens";

/// A GGUF taken apart as its specification says.
struct Gguf {
  struct Entry {
    std::vector<uint64_t> sizes;  // the innermost first
    uint32_t type;
    uint64_t offset;
  };

  explicit Gguf(std::string file) : bytes(std::move(file)) {
    REQUIRE(bytes.starts_with("GGUF"));
    at = 4;
    CHECK(number<uint32_t>() == 3);
    const auto tensor_count = number<uint64_t>(), pair_count = number<uint64_t>();
    for (uint64_t i = 0; i < pair_count; ++i) {
      const std::string key = text();
      value(key, number<uint32_t>());
    }
    for (uint64_t i = 0; i < tensor_count; ++i) {
      const std::string name = text();
      Entry entry;
      entry.sizes.resize(number<uint32_t>());
      for (uint64_t& size : entry.sizes) size = number<uint64_t>();
      entry.type = number<uint32_t>();
      entry.offset = number<uint64_t>();
      CHECK(entry.offset % 32 == 0);
      tensors[name] = entry;
    }
    data = (at + 31) / 32 * 32;
  }

  template <class T>
  T number() {
    REQUIRE(at + sizeof(T) <= bytes.size());
    T result;
    std::memcpy(&result, bytes.data() + at, sizeof result);
    at += sizeof result;
    return result;
  }
  std::string text() {
    const auto length = number<uint64_t>();
    REQUIRE(at + length <= bytes.size());
    at += length;
    return bytes.substr(at - length, length);
  }
  void value(const std::string& key, uint32_t type) {
    if (type == 4) counts[key] = number<uint32_t>();
    if (type == 5) counts[key] = number<int32_t>();
    if (type == 6) numbers[key] = number<float>();
    if (type == 8) texts[key].push_back(text());
    if (type != 9) return;
    const auto inner = number<uint32_t>();
    const auto length = number<uint64_t>();
    for (uint64_t i = 0; i < length; ++i) value(inner == 8 ? key : key + '/' + std::to_string(i), inner);
  }
  template <class T>
  T stored(const std::string& name, uint64_t i) const {
    T result;
    std::memcpy(&result, bytes.data() + data + tensors.at(name).offset + i * sizeof result, sizeof result);
    return result;
  }

  std::string bytes;
  size_t at = 0, data = 0;
  std::map<std::string, Entry> tensors;
  std::map<std::string, int64_t> counts;
  std::map<std::string, float> numbers;
  std::map<std::string, std::vector<std::string>> texts;
};

Gguf exported(const Pretrained& model, const GgufOptions& options = {}) {
  const TemporaryFolder folder;
  write_gguf(folder.path() / "m.gguf", model, options);
  return Gguf(read(folder.path() / "m.gguf"));
}

Tensor parameter(const Pretrained& model, const std::string& name) {
  for (const auto& [key, tensor] : model.state)
    if (key == name) return tensor;
  FAIL("no parameter " << name);
  return {};
}

}  // namespace

TEST_CASE("gguf: Q8_0 is a scale in float16 and 32 numbers rounded with halves away from zero") {
  Generator generator(1);
  std::vector<float> numbers = randn({64}, generator).to_vector<float>();
  numbers.insert(numbers.end(), 32, 0.0f);
  std::vector<float> halves(32, 0.5f);  // of a scale of 1
  halves[0] = -127;
  halves[1] = 2.5f;
  halves[2] = -2.5f;
  halves[3] = 1.5f;
  numbers.insert(numbers.end(), halves.begin(), halves.end());
  const std::vector<uint8_t> blocks = to_q8_0(numbers);
  REQUIRE(blocks.size() == 4 * 34);
  for (size_t block = 0; block < 4; ++block) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(numbers[block * 32 + i]));
    const uint8_t* at = blocks.data() + block * 34;
    CHECK((at[0] | at[1] << 8) == half_of_float(largest / 127));
    const float inverse = largest > 0 ? 1 / (largest / 127) : 0;
    for (size_t i = 0; i < 32; ++i) {
      const double scaled = double{numbers[block * 32 + i] * inverse};
      const double wanted = std::copysign(std::floor(std::abs(scaled) + 0.5), scaled);
      CHECK(static_cast<int8_t>(at[2 + i]) == static_cast<int>(wanted));
    }
  }
  CHECK(static_cast<int8_t>(blocks[3 * 34 + 2 + 1]) == 3);
  CHECK(static_cast<int8_t>(blocks[3 * 34 + 2 + 2]) == -3);
}

TEST_CASE("gguf: a Llama has llama.cpp's keys and names, and queries and keys with pairs as neighbours") {
  const Pretrained model = read_pretrained(kGoldens / "hf_decoders/llama3");
  const Gguf file = exported(model);
  CHECK(file.texts.at("general.architecture")[0] == "llama");
  CHECK(file.texts.at("tokenizer.ggml.model")[0] == "none");
  CHECK(file.counts.at("llama.block_count") == 2);
  CHECK(file.counts.at("llama.attention.head_count_kv") == 2);
  CHECK(file.counts.at("llama.rope.dimension_count") == 4);
  CHECK(file.counts.at("llama.vocab_size") == 48);
  CHECK(file.numbers.at("llama.rope.freq_base") == 500000.0f);
  CHECK(file.numbers.at("llama.attention.layer_norm_rms_epsilon") == 1e-5f);
  CHECK(file.tensors.size() == 1 + 1 + 2 * 9 + 2);
  CHECK(file.tensors.at("token_embd.weight").sizes == std::vector<uint64_t>{16, 48});
  const Tensor c_attn = parameter(model, "transformer.h.1.attn.c_attn.weight");  // 16 rows of queries, 8 of keys, 8 of values
  // Row 4 h + 2 i + j of a head of 4 features was its row j * 2 + i.
  for (const auto& [name, first, heads] : {std::tuple("blk.1.attn_q.weight", 0, 4), std::tuple("blk.1.attn_k.weight", 16, 2)})
    for (int head = 0; head < heads; ++head)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          CHECK(file.stored<float>(name, static_cast<uint64_t>((4 * head + 2 * i + j) * 16 + 3)) ==
                static_cast<float>(c_attn.at({first + 4 * head + 2 * j + i, 3})));
  CHECK(file.stored<float>("blk.1.attn_v.weight", 5 * 16 + 3) == static_cast<float>(c_attn.at({24 + 5, 3})));
  // One of two pairs makes 16 / 2 pi turns in the original context of 16, between 1 and 4; the other next to none.
  const double turns = 16 / (2 * std::acos(-1.0)), kept = (turns - 1) / 3;
  CHECK(file.stored<float>("rope_freqs.weight", 0) == doctest::Approx(1 / ((1 - kept) / 8 + kept)));
  CHECK(file.stored<float>("rope_freqs.weight", 1) == doctest::Approx(8.0));
}

TEST_CASE("gguf: Qwen and GPT-2 keep the order of their rows") {
  const Pretrained qwen = read_pretrained(kGoldens / "hf_decoders/qwen2"), gpt2 = read_pretrained(kGoldens / "hf_gpt2");
  const Gguf q = exported(qwen), g = exported(gpt2);
  CHECK(q.texts.at("general.architecture")[0] == "qwen2");
  CHECK_FALSE(q.tensors.contains("output.weight"));  // tied
  const Tensor bias = parameter(qwen, "transformer.h.0.attn.c_attn.bias");
  for (int i = 0; i < 8; ++i)
    CHECK(q.stored<float>("blk.0.attn_k.bias", static_cast<uint64_t>(i)) == static_cast<float>(bias.at({16 + i})));
  CHECK(g.texts.at("general.architecture")[0] == "gpt2");
  CHECK(g.numbers.at("gpt2.attention.layer_norm_epsilon") == 1e-5f);
  CHECK(g.tensors.at("position_embd.weight").sizes == std::vector<uint64_t>{16, 24});
  const Tensor c_attn = parameter(gpt2, "transformer.h.0.attn.c_attn.weight");
  CHECK(g.stored<float>("blk.0.attn_qkv.weight", 7 * 16 + 2) == static_cast<float>(c_attn.at({7, 2})));
}

TEST_CASE("gguf: matrices are rounded and vectors are not, and rows that are no blocks are float16") {
  const ModelConfig config{.kind = ModelKind::gpt,
                           .d_model = 32,
                           .num_heads = 2,
                           .context_length = 8,
                           .num_layers = 1,
                           .d_ff = 40,
                           .activation = Activation::swiglu,
                           .norm = NormKind::rms_norm,
                           .bias = false,
                           .vocab_size = 11,
                           .rope = true};
  Generator generator(1);
  const auto model = make_language_model(config, 11, generator);
  const Pretrained pretrained{config, model->state_dict()};
  const Gguf q8 = exported(pretrained, {.type = GgmlType::q8_0}), f16 = exported(pretrained, {.type = GgmlType::f16});
  CHECK(q8.tensors.at("blk.0.attn_q.weight").type == 8);
  CHECK(q8.tensors.at("blk.0.ffn_down.weight").type == 1);  // rows of 40
  CHECK(q8.tensors.at("output_norm.weight").type == 0);
  CHECK(q8.counts.at("general.file_type") == 7);
  CHECK(f16.tensors.at("blk.0.attn_q.weight").type == 1);
  CHECK(f16.counts.at("general.file_type") == 1);
  const Tensor down = parameter(pretrained, "transformer.h.0.mlp.down_proj.weight");
  CHECK(f16.stored<uint16_t>("blk.0.ffn_down.weight", 43) == half_of_float(static_cast<float>(down.at({1, 3}))));
  const std::vector<float> row = down.flatten().to_vector<float>();
  const Tensor up = parameter(pretrained, "transformer.h.0.mlp.up_proj.weight");
  const std::vector<uint8_t> wanted = to_q8_0(up.to_vector<float>());
  for (size_t i = 0; i < wanted.size(); ++i) REQUIRE(q8.stored<uint8_t>("blk.0.ffn_up.weight", i) == wanted[i]);
}

TEST_CASE("gguf: a byte-pair encoding goes with the model and ids of the model alone are unused") {
  Pretrained model = read_pretrained(kGoldens / "hf_decoders/llama2");
  const auto with = [&](const std::string& name) {
    const auto tokenizer = open_tokenizer((kGoldens / "hf_tokenizers" / name).string());
    Pretrained fitting = model;
    fitting.model.vocab_size = tokenizer->vocab_size() + 2;
    for (auto& [key, tensor] : fitting.state)
      if (tensor.size(0) == 48) tensor = zeros({fitting.model.vocab_size, 16});
    return exported(fitting, {.tokenizer = tokenizer.get()});
  };
  CHECK_FALSE(with("llama3").counts.contains("tokenizer.ggml.eos_token_id"));
  model.model.eos_token_ids = {7, 9};
  const Gguf llama3 = with("llama3"), llama2 = with("llama2");
  const auto& tokens = llama3.texts.at("tokenizer.ggml.tokens");
  CHECK(llama3.texts.at("tokenizer.ggml.model")[0] == "gpt2");
  CHECK(llama3.texts.at("tokenizer.ggml.pre")[0] == "llama-bpe");
  CHECK(std::ssize(tokens) == llama3.counts.at("llama.vocab_size"));
  CHECK(tokens.back() == "[PAD" + std::to_string(tokens.size() - 1) + "]");
  const auto bos = llama3.counts.at("tokenizer.ggml.bos_token_id");
  CHECK(tokens[static_cast<size_t>(bos)] == "<|begin_of_text|>");
  CHECK(llama3.counts.at("tokenizer.ggml.eos_token_id") == 7);
  const auto type = [](const Gguf& file, int64_t id) {
    return file.counts.at("tokenizer.ggml.token_type/" + std::to_string(id));
  };
  CHECK(type(llama3, bos) == 3);
  CHECK(type(llama3, 0) == 1);
  CHECK(type(llama3, std::ssize(tokens) - 1) == 5);
  CHECK(llama3.texts.at("tokenizer.ggml.merges")[0].find(' ') != std::string::npos);
  CHECK(llama2.texts.at("tokenizer.ggml.model")[0] == "llama");
  CHECK(llama2.texts.at("tokenizer.ggml.tokens")[3] == "<0x00>");
  CHECK(type(llama2, 0) == 2);
  CHECK(type(llama2, 1) == 3);
  CHECK(type(llama2, 3) == 6);
  CHECK(llama2.numbers.at("tokenizer.ggml.scores/300") == -300.0f);
  CHECK(llama2.counts.at("tokenizer.ggml.bos_token_id") == 1);
}

TEST_CASE("gguf: a file that is no GGUF is not replaced") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "m.gguf";
  testing::write(file, "mine, and longer than four bytes");
  const Pretrained model = read_pretrained(kGoldens / "hf_decoders/llama2");
  CHECK(testing::refusal<IoError>([&] { write_gguf(file, model); }) ==
        file.string() + ": is no GGUF, and an export would replace it (name another file)");
  CHECK(read(file) == "mine, and longer than four bytes");
  fs::remove(file);
  write_gguf(file, model);
  const std::string first = read(file);
  write_gguf(file, model);
  CHECK(read(file) == first);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

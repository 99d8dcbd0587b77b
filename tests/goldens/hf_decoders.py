"""Writes hf_decoders/: small Llama, Mistral, Qwen2 and Qwen3 models with random weights as Hugging Face's transformers saves them,
their logits in float32 and what they continue a prompt with.

Run with torch 2.13.0 (CPU) and transformers 5.24.0: python3 hf_decoders.py
"""

import json
import shutil
from pathlib import Path

import torch
import transformers
from transformers import (AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

root = Path(__file__).parent / "hf_decoders"
shutil.rmtree(root, ignore_errors=True)
torch.set_num_threads(1)

small = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=None, eos_token_id=None)
llama3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)

# name: class, config, dtype of the file, size of its shards
models = {
    "llama2": (LlamaForCausalLM, LlamaConfig(**small | dict(num_key_value_heads=4), tie_word_embeddings=False,
                                             rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=10000.0)),
               torch.float32, "1GB"),
    "llama3": (LlamaForCausalLM, LlamaConfig(**small, tie_word_embeddings=False, rope_parameters=llama3 | dict(rope_theta=500000.0)),
               torch.bfloat16, "6KB"),
    "llama_biases": (LlamaForCausalLM, LlamaConfig(**small, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
                     torch.bfloat16, "1GB"),
    "mistral": (MistralForCausalLM, MistralConfig(**small, sliding_window=5, head_dim=6, tie_word_embeddings=False),
                torch.float16, "1GB"),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**small, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
              torch.float16, "1GB"),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**small, head_dim=10, tie_word_embeddings=True), torch.float32, "8KB"),
    "qwen3_window": (Qwen3ForCausalLM, Qwen3Config(**small, head_dim=4, attention_bias=True, tie_word_embeddings=False,
                                                   use_sliding_window=True, sliding_window=7, max_window_layers=0),
                     torch.bfloat16, "1GB"),
}


def as_published(config):
    """config.json as those of the published models are: what transformers 4 wrote."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)
    return config


for seed, (name, (model_class, config, dtype, shard)) in enumerate(models.items()):
    torch.manual_seed(seed)
    folder = root / name
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)  # no norm or bias is 1 or 0 any more
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    file = folder / "config.json"
    if name in ("llama2", "llama3", "qwen2"):
        file.write_text(json.dumps(as_published(json.loads(file.read_text())), indent=2) + "\n")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokens = torch.randint(0, 48, (1, 26))
    with torch.no_grad():
        logits = model(tokens).logits
        prompt = tokens[:, :5]
        greedy = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=40, do_sample=False, pad_token_id=0)
    result = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "tokens": tokens.tolist(),
        "logits": [float("%.9g" % v) for v in logits.flatten().tolist()],
        "prompt": tokens[0, :5].tolist(),
        "greedy": greedy[0, 5:].tolist(),
    }
    (folder / "logits.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")
    print(name, sorted(p.name for p in folder.iterdir()), float(logits.abs().max()), result["greedy"][:12])

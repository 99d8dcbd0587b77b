"""Writes hf_adapters/: adapters of the small models of hf_gpt2/ and hf_decoders/ as Hugging Face's peft saves them, with what it draws
for them from a seed, the logits of the adapted models and the gradients of their loss.

Run with torch 2.13.0 (CPU), transformers 5.24.0 and peft 0.21.2: python3 hf_adapters.py
"""

import json
import shutil
from pathlib import Path

import peft
import torch
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

goldens = Path(__file__).parent
root = goldens / "hf_adapters"
shutil.rmtree(root, ignore_errors=True)
torch.set_num_threads(1)

# name: base, its adapters
adapters = {
    "gpt2": ("hf_gpt2", dict(r=3, lora_alpha=6, target_modules=["c_attn"], fan_in_fan_out=True)),
    "gpt2_some": ("hf_gpt2", dict(r=2, lora_alpha=3, target_modules=["transformer.h.1.mlp.c_proj", "transformer.h.0.attn.c_attn"],
                                  fan_in_fan_out=True)),
    "llama3": ("hf_decoders/llama3", dict(r=4, lora_alpha=4, target_modules=["q_proj", "v_proj"])),
    "qwen2": ("hf_decoders/qwen2", dict(r=2, lora_alpha=5,
                                        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])),
}


def digits(tensor):
    return [float("%.9g" % v) for v in tensor.flatten().tolist()]


for seed, (name, (base, options)) in enumerate(adapters.items()):
    model = AutoModelForCausalLM.from_pretrained(goldens / base, dtype=torch.float32, attn_implementation="eager")
    torch.manual_seed(seed)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options)).eval()
    trained = {key.replace(".default", ""): value for key, value in model.named_parameters() if value.requires_grad}
    drawn = {key: digits(value) for key, value in trained.items() if "lora_A" in key}
    with torch.no_grad():
        for key, value in trained.items():
            if "lora_B" in key:
                value.copy_(0.2 * torch.randn(value.shape))
    tokens = torch.randint(0, 48, (2, 20))
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    folder = root / name
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    (folder / "adapter_model.safetensors").chmod(0o644)
    file = folder / "adapter_config.json"
    config = json.loads(file.read_text())
    config["base_model_name_or_path"] = None  # a path of this machine
    config["target_modules"].sort()  # a set
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    result = {
        "peft": peft.__version__,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "base": base,
        "seed": seed,
        "drawn": drawn,
        "tokens": tokens.tolist(),
        "logits": digits(logits),
        "loss": loss.item(),
        "gradients": {key: digits(value.grad) for key, value in trained.items()},
    }
    (folder / "golden.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")

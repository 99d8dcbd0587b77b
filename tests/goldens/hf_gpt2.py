"""Writes hf_gpt2/: a small GPT-2 with random weights as Hugging Face's transformers saves it, and its logits.

Run with torch 2.13.0 (CPU) and transformers 5.23.0: python3 hf_gpt2.py
"""

import json
import shutil
from pathlib import Path

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

folder = Path(__file__).parent / "hf_gpt2"
shutil.rmtree(folder, ignore_errors=True)
torch.manual_seed(20)
torch.set_num_threads(1)
config = GPT2Config(vocab_size=61, n_positions=24, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
model = GPT2LMHeadModel(config).eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        parameter += 0.2 * torch.randn(parameter.shape)  # nothing is 0 or 1 any more
    tokens = torch.randint(0, 61, (2, 24))
    logits = model(tokens).logits
model.save_pretrained(folder)
(folder / "generation_config.json").unlink(missing_ok=True)
result = {
    "transformers": transformers.__version__,
    "torch": torch.__version__,
    "tokens": tokens.tolist(),
    "logits": [float("%.9g" % v) for v in logits.flatten().tolist()],
}
(folder / "logits.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")

"""Writes sampling.json: probabilities that transformers' logits processors leave, in the order in which `generate` uses them.

Run from this folder with torch 2.13.0 (CPU) and transformers 5.24.0: python3 sampling.py > sampling.json
"""

import json

import torch
import transformers
from transformers.generation import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

torch.manual_seed(31)
VOCAB = 23


def processors(repetition_penalty=1.0, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    chain = LogitsProcessorList()
    if repetition_penalty != 1:
        chain.append(RepetitionPenaltyLogitsProcessor(repetition_penalty))
    if temperature != 1:
        chain.append(TemperatureLogitsWarper(temperature))
    if top_k > 0:
        chain.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        chain.append(TopPLogitsWarper(top_p))
    if min_p > 0:
        chain.append(MinPLogitsWarper(min_p))
    return chain


OPTIONS = [
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.7},
    {"min_p": 0.05},
    {"min_p": 0.5},
    {"min_p": 1.0},
    {"temperature": 0.6, "min_p": 0.1},
    {"top_k": 5, "min_p": 0.2},
    {"top_p": 0.8, "min_p": 0.3},
    {"repetition_penalty": 1.8, "temperature": 1.4, "top_k": 12, "top_p": 0.9, "min_p": 0.08},
]
cases = []
for options in OPTIONS:
    for _ in range(3):
        logits = 2 * torch.randn(1, VOCAB)
        ids = torch.randint(0, VOCAB, (1, 9))
        probabilities = torch.softmax(processors(**options)(ids, logits.clone()), -1)
        cases.append(
            {
                "options": options,
                "ids": ids[0].tolist(),
                "logits": [float("%.9g" % v) for v in logits[0].tolist()],
                "probabilities": [float("%.9g" % v) for v in probabilities[0].tolist()],
            }
        )
lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
print(f'{{"torch": "{torch.__version__}", "transformers": "{transformers.__version__}", "cases": [\n{lines}\n]}}')

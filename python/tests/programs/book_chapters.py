"""Trains with the book's own modules (chapters 5 to 7 and appendix E), unmodified, on small models and generated data, and prints losses.

python book_chapters.py BOOK pretrain|classify|instruct|lora: BOOK is a checkout of the book's repository."""

import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace

SIZES = {"vocab_size": 50257, "context_length": 64, "emb_dim": 48, "n_heads": 4, "n_layers": 2, "drop_rate": 0.1, "qkv_bias": False}
CHAPTER = {"pretrain": "ch05", "classify": "ch06", "instruct": "ch07", "lora": "appendix-E"}
GOOD, BAD = "see you at home tomorrow evening for dinner".split(), "win a free prize now call this number today".split()


def sentence(draws: random.Random, words: list) -> str:
    return " ".join(draws.choice(words) for _ in range(8))


def pretrain() -> None:
    from gpt_train import main

    draws = random.Random(1)
    Path("the-verdict.txt").write_text(". ".join(sentence(draws, GOOD + BAD) for _ in range(200)))
    main(SIZES, {"learning_rate": 5e-4, "num_epochs": 2, "batch_size": 2, "weight_decay": 0.1})


def mails(tokenizer, module) -> tuple:
    """Loaders of generated mails, of which half are spam."""
    import torch

    loaders = []
    for seed, count in ((1, 160), (2, 32)):
        draws = random.Random(seed)
        rows = [f"{label},{sentence(draws, BAD if label else GOOD)}" for label in (draws.randrange(2) for _ in range(count))]
        Path("mails.csv").write_text("\n".join(["Label,Text", *rows]))
        dataset = module.SpamDataset("mails.csv", tokenizer, max_length=SIZES["context_length"])
        torch.manual_seed(123)
        loaders.append(torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=seed == 1, drop_last=seed == 1))
    return tuple(loaders)


def classify() -> None:
    import gpt_class_finetune as module
    import tiktoken
    import torch

    train, val = mails(tiktoken.get_encoding("gpt2"), module)
    torch.manual_seed(123)
    model = module.GPTModel(SIZES)
    for param in model.parameters():
        param.requires_grad = False
    model.out_head = torch.nn.Linear(in_features=SIZES["emb_dim"], out_features=2)
    for param in [*model.trf_blocks[-1].parameters(), *model.final_norm.parameters()]:
        param.requires_grad = True
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.1)
    module.train_classifier_simple(model, train, val, optimizer, "cpu", num_epochs=2, eval_freq=2, eval_iter=2)


def lora() -> None:
    import previous_chapters as module
    import tiktoken
    import torch

    cells = json.loads((Path(module.__file__).parent / "appendix-E.ipynb").read_text())["cells"]
    names = {"torch": torch}
    for source in ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"):
        if any(mark in source for mark in ("class LoRALayer", "class LinearWithLoRA", "def replace_linear_with_lora")):
            exec(source, names)
    train, val = mails(tiktoken.get_encoding("gpt2"), module)
    torch.manual_seed(123)
    model = module.GPTModel(SIZES)
    model.out_head = torch.nn.Linear(in_features=SIZES["emb_dim"], out_features=2)
    for param in model.parameters():
        param.requires_grad = False
    names["replace_linear_with_lora"](model, rank=4, alpha=4)
    print(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, weight_decay=0.1)
    module.train_classifier_simple(model, train, val, optimizer, "cpu", num_epochs=2, eval_freq=2, eval_iter=2)


def instruct() -> None:
    from functools import partial

    import gpt_instruction_finetuning as module
    import tiktoken
    import torch

    tokenizer = tiktoken.get_encoding("gpt2")
    collate = partial(module.custom_collate_fn, device="cpu", allowed_max_length=SIZES["context_length"])
    loaders = []
    for seed, count in ((1, 80), (2, 16)):
        draws = random.Random(seed)
        data = [{"instruction": "Say it.", "input": draws.choice(GOOD), "output": draws.choice(BAD)} for _ in range(count)]
        torch.manual_seed(123)
        dataset = module.InstructionDataset(data, tokenizer)
        loaders.append(torch.utils.data.DataLoader(dataset, batch_size=4, collate_fn=collate, shuffle=seed == 1, drop_last=seed == 1))
    model = module.GPTModel({**SIZES, "context_length": 256})
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.1)
    module.train_model_simple(
        model, *loaders, optimizer, "cpu", num_epochs=2, eval_freq=2, eval_iter=2, start_context="Say it.", tokenizer=tokenizer
    )


if __name__ == "__main__":
    book, work = Path(sys.argv[1]), sys.argv[2]
    sys.path.insert(0, str(book / CHAPTER[work] / "01_main-chapter-code"))
    sys.modules["gpt_download"] = SimpleNamespace(download_and_load_gpt2=None)  # asks for tensorflow; nothing is downloaded here
    {"pretrain": pretrain, "classify": classify, "instruct": instruct, "lora": lora}[work]()

"""Runs programs that others wrote for PyTorch under PyTorch and under onestep.as_torch, unmodified, and compares the losses they print.

python others.py SOURCES SCRATCH [NAME...]: SOURCES holds checkouts named nanoGPT, minGPT, examples (pytorch/examples) and
LLMs-from-scratch (rasbt/LLMs-from-scratch, the book's later chapters).
"""
from __future__ import annotations

import os
import pickle
import random
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent
TOLERANCE = 2e-3
WORDS = "the a cat dog sees likes runs jumps over under quick lazy brown red house tree and then stops".split()


def text(lines: int, seed: int) -> str:
    draws = random.Random(seed)
    return "\n".join(" ".join(draws.choice(WORDS) for _ in range(12)) for _ in range(lines)) + "\n"


def prepare(sources: Path, scratch: Path) -> None:
    """The data of all programs, generated; nanoGPT reads its configurator from the working directory."""
    import numpy as np

    link = scratch / "configurator.py"
    if not link.exists():
        link.symlink_to(sources / "nanoGPT" / "configurator.py")
    corpus = "O God, O God!\n" + text(400, 0)
    (scratch / "input.txt").write_text(corpus)
    chars = sorted(set(corpus))
    ids = np.array([chars.index(c) for c in corpus], dtype=np.uint16)
    generated = scratch / "data" / "generated"
    generated.mkdir(parents=True, exist_ok=True)
    ids.tofile(generated / "train.bin")
    ids[:3000].tofile(generated / "val.bin")
    tables = {"vocab_size": len(chars), "itos": dict(enumerate(chars)), "stoi": {c: i for i, c in enumerate(chars)}}
    (generated / "meta.pkl").write_bytes(pickle.dumps(tables))
    words = scratch / "words"
    words.mkdir(exist_ok=True)
    for part, lines in (("train", 320), ("valid", 20), ("test", 20)):
        (words / f"{part}.txt").write_text(text(lines, lines))
    (scratch / "results").mkdir(exist_ok=True)


LANGUAGE = "--data words --emsize 32 --nhid 32 --nlayers 2 --epochs 3 --log-interval 4 --bptt 10 --batch_size 10 --dropout"
NANO = ("--dataset=generated --device=cpu --compile=False --dtype=float32 --max_iters=40 --eval_interval=20 --eval_iters=2 --log_interval=1 "
        "--block_size=32 --batch_size=8 --n_layer=2 --n_head=2 --n_embd=32 --warmup_iters=5 --lr_decay_iters=40 "
        "--gradient_accumulation_steps=2 --out_dir=out --always_save_checkpoint=True")
PROGRAMS = {
    "nanoGPT": ("nanoGPT/train.py", NANO + " --dropout=0.0"),
    "nanoGPT dropout": ("nanoGPT/train.py", NANO + " --dropout=0.1 --bias=True"),
    "minGPT chargpt": ("minGPT/projects/chargpt/chargpt.py",
                       "--trainer.max_iters=311 --trainer.batch_size=8 --model.model_type=None --model.n_layer=2 --model.n_head=2 "
                       "--model.n_embd=32 --data.block_size=32 --system.work_dir=out_chargpt --trainer.num_workers=0 --trainer.device=cpu"),
    "minGPT adder": ("minGPT/projects/adder/adder.py",
                     "--trainer.max_iters=311 --trainer.batch_size=8 --model.model_type=gpt-nano --system.work_dir=out_adder "
                     "--trainer.num_workers=0 --trainer.device=cpu"),
    "mnist": ("examples/mnist/main.py", "--epochs 1 --log-interval 1 --no-accel --save-model"),
    "vae": ("examples/vae/main.py", "--epochs 2 --log-interval 1 --no-accel"),
    "mnist_rnn": ("examples/mnist_rnn/main.py", "--epochs 1 --log-interval 1"),
    "mnist_forward_forward": ("examples/mnist_forward_forward/main.py", "--epochs 35 --train_size 500 --test_size 100 --log-interval 1 --no_accel"),
    "word LSTM": ("examples/word_language_model/main.py", f"{LANGUAGE} 0.2 --model LSTM --lr 5"),
    "word GRU": ("examples/word_language_model/main.py", f"{LANGUAGE} 0.2 --model GRU --lr 2"),
    "word RNN": ("examples/word_language_model/main.py", f"{LANGUAGE} 0 --model RNN_TANH --lr 1"),
    "word Transformer": ("examples/word_language_model/main.py", f"{LANGUAGE} 0.1 --model Transformer --lr 1"),
    **{f"book {work}": (str(HERE / "book_chapters.py"), f"LLMs-from-scratch {work}") for work in ("pretrain", "classify", "instruct", "lora")},
}


def run(program: Path, arguments: list[str], scratch: Path, onestep: bool) -> tuple[int, str, float]:
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(HERE / "stubs"), str(program.parent)] + ([str(PACKAGE)] if onestep else [])
    for up in (program.parent.parent.parent,):  # minGPT's projects import the package at its root
        paths.append(str(up))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "agg"}
    command = [sys.executable, *(["-m", "onestep.as_torch"] if onestep else []), str(program), *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr, time.perf_counter() - start


def losses(output: str) -> list[float]:
    """Every number that follows the word loss, and the perplexity's."""
    return [float(n) for n in re.findall(r"[Ll]oss(?: after| of)?[^0-9\n+-]*([+-]?\d+\.\d+(?:e[+-]?\d+)?|nan)", output)]


def compare(name: str, sources: Path, scratch: Path) -> bool:
    file, arguments = PROGRAMS[name]
    program = sources / file
    if not program.is_file():
        print(f"{name:24s} not there")
        return True
    words = [str(sources / word) if word == "LLMs-from-scratch" else word for word in arguments.split()]
    want_status, want, want_time = run(program, words, scratch, False)
    status, got, got_time = run(program, words, scratch, True)
    a, b = losses(want), losses(got)
    worst = max((abs(x - y) / max(1.0, abs(x)) for x, y in zip(a, b)), default=float("nan"))
    good = status == want_status == 0 and len(a) == len(b) >= 30 and worst <= TOLERANCE
    print(f"{name:24s} {'follows' if good else 'DIFFERS'}: losses {len(a)} {len(b)}, worst {worst:.1e}, "
          f"exit {want_status} {status}, {want_time:.1f} s and {got_time:.1f} s", flush=True)
    if not good:
        print("\n".join((got if status else want).strip().splitlines()[-6:]), flush=True)
    return good


def main() -> int:
    sources, scratch = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    prepare(sources, scratch)
    names = sys.argv[3:] or list(PROGRAMS)
    return 0 if all([compare(name, sources, scratch) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())

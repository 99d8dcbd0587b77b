"""The chapter's code blocks print under as_torch what they print under PyTorch (where both the chapter and PyTorch are there)."""
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onestep

PYTHON = Path(__file__).resolve().parents[1]
PACKAGE = Path(onestep.__file__).parents[1]
RUNNER = PYTHON / "tests" / "programs" / "book.py"
BOOK = Path(os.environ.get("ONESTEP_BOOK", PYTHON.parents[1] / "shared" / "book"))
FILES = sorted(BOOK.glob("*.txt"))
NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")

sys.path.insert(0, str(RUNNER.parent))
from book import blocks  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not FILES, reason="the chapter is not there (ONESTEP_BOOK)"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]


def printed(file, onestep):
    environment = os.environ | {"PYTHONPATH": str(PACKAGE) + os.pathsep + os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, *(["-m", "onestep.as_torch"] if onestep else []), str(RUNNER), str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def comparable(text):
    """The text without what may differ: the version, and the names of backward functions."""
    text = re.sub(r"(torch version:).*", r"\1", text)
    return re.sub(r"grad_fn=<\w+>", "grad_fn", text)


def close(a, b):
    """Equal but for the last digit of printed numbers."""
    if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split():
        return False
    for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
        digits = len(x.split("e")[0].partition(".")[2])
        if abs(float(x) - float(y)) > 1.01 * 10.0 ** -digits * (10.0 ** int(x.split("e")[1]) if "e" in x else 1):
            return False
    return True


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name[:3])
def test_blocks(file):
    want, got = printed(file, False), printed(file, True)
    codes = blocks(file.read_text(encoding="utf8"))
    assert len(want) == len(got) == len(codes)
    different = [i for i, (a, b) in enumerate(zip(want, got))
                 if "torch.empty(" not in codes[i] and not close(comparable(a), comparable(b))]  # memory as it was found
    assert different == [], "\n".join(f"block {i}: {want[i]!r}\nonestep: {got[i]!r}" for i in different[:5])

"""The package and its stubs as mypy reads them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onestep

PROGRAM = """
import onestep
from onestep import nn


def train(model: nn.Module, x: onestep.Tensor) -> float:
    optimizer = onestep.optim.AdamW(model.parameters(), lr=1e-3)
    loss = nn.functional.mse_loss(model(x), x.softmax(-1)[1:3, 0].sum())
    loss.backward()
    optimizer.step()
    return loss.item()


result = onestep.empty(2, 3)
onestep.exp(result, out=result)
reveal_type(onestep.softmax(onestep.randn(2, 3), dim=-1))
"""


@pytest.mark.long
def test_the_package_and_a_program_are_clean(tmp_path):
    pytest.importorskip("mypy")
    package = Path(onestep.__file__).parent
    shutil.copytree(package, tmp_path / "onestep", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    stub = package / "_C.pyi"
    shutil.copy(stub if stub.exists() else package.parent / "_C.pyi", tmp_path / "onestep")
    (tmp_path / "program.py").write_text(PROGRAM)
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "onestep", "program.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert 'Revealed type is "onestep._C.Tensor"' in done.stdout

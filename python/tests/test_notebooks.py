"""The notebooks as they are committed, and that notebooks/run sees a number that has changed (`python: the notebooks` runs all)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_the_table_lists_them_all():
    listed = re.findall(r"^\| \[\w+\]\((\w+\.ipynb)\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M)
    assert listed == [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_committed_was_executed_and_would_be_the_same_elsewhere(path):
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert len(cell["source"]) <= 40
        for output in cell["outputs"]:
            assert output["output_type"] != "error" and output.get("name") != "stderr"
            assert not re.search(r"0x[0-9a-f]{6}|/tmp/|/home/|/root/", json.dumps(output))


@pytest.mark.long
@pytest.mark.parametrize("output, status", [("3", 0), ("4", 1)])
def test_run_compares_outputs(tmp_path, output, status):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    source = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    result = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": [output]}}
    source["cells"] = [{"cell_type": "code", "id": "sum", "metadata": {}, "execution_count": 1, "source": ["1 + 2"], "outputs": [result]}]
    (tmp_path / "sum.ipynb").write_text(json.dumps(source))
    done = subprocess.run([sys.executable, FOLDER / "run", tmp_path / "sum.ipynb"], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert ("cell 1:" in done.stdout and "-4" in done.stdout and "+3" in done.stdout) == bool(status)

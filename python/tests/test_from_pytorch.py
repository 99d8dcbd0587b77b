"""docs/from_pytorch.md: the left columns of its tables run under as_torch, and the table about Python says what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import onestep

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "from_pytorch.md").read_text(encoding="utf-8")
GIVEN = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]
HABITS = re.findall(r"^\| (`.*`) \| `[^`]*` \|$", PAGE, re.M)  # as tests/docs/CMakeLists.txt finds the C++ beside them
OUTCOMES = re.findall(r"^\| `([^`]*)` \| (gives|raises) `([^`]*)`", PAGE, re.M)


def run(program, tmp_path):
    """What a program prints for each line, under `python -m onestep.as_torch`."""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    path = str(Path(onestep.__file__).parents[1]) + os.pathsep + os.environ.get("PYTHONPATH", "")
    done = subprocess.run([sys.executable, "-m", "onestep.as_torch", "program.py"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_habit_runs(tmp_path):
    assert len(HABITS) >= 180
    rows = [re.findall(r"`([^`]*)`", row) for row in HABITS]
    program = f"import contextlib, io\nfor lines in {rows!r}:\n    scope = {{}}\n    exec({GIVEN!r}, scope)\n"
    program += "    for line in lines:\n        try:\n            with contextlib.redirect_stdout(io.StringIO()):\n"
    program += "                exec(line, scope)\n"
    program += "        except Exception as error:\n            print(f'{line}: {type(error).__name__}: {error}')\n"
    assert run(program, tmp_path) == []


def test_the_outcomes_are_those_of_the_page(tmp_path):
    assert len(OUTCOMES) >= 10
    program = GIVEN + f"for line in {[line for line, _, _ in OUTCOMES]!r}:\n"
    program += "    try:\n        print('gives', repr(eval(line)))\n    except Exception as error:\n"
    program += "        kinds = [kind.__name__ for kind in type(error).__mro__]\n        print('raises', *kinds, error)\n"
    for (line, verb, outcome), printed in zip(OUTCOMES, run(program, tmp_path)):
        said, *rest = printed.split(" ")
        assert said == verb, (line, printed)
        if verb == "gives":
            assert " ".join(rest) == outcome, line
        else:
            kind, message = outcome.split(": ", 1)
            assert kind in rest and printed.endswith(" " + message), (line, printed)

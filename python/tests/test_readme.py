"""The README's Python runs and prints what it says."""

import re
from pathlib import Path


def test_readme(capsys):
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == re.search(r"# (tensor\(.*\))", code)[1] + "\n"

"""docs/python.md: its Python runs, as one program, and prints what its comments say."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_blocks_run_and_print_what_the_comments_say(capsys, monkeypatch, tmp_path):
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.S))
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "python.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", program, re.M)
    for name in ("attention.svg", "loss.svg", "own.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg")

"""The README's Python runs and prints what it says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE, TRAINING = re.findall(r"```python\n(.*?)```", README, re.S)


def printed(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    return capsys.readouterr().out


def test_the_example_prints_what_the_cpp_beside_it_does(capsys):
    assert printed(EXAMPLE, capsys) == re.search(r"```text\n(.*?)```", README, re.S)[1]


def test_the_training(capsys, monkeypatch, tmp_path):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    assert printed(TRAINING, capsys) == re.search(r"print\(.*\)  # (.*)", TRAINING)[1] + "\n"
    assert "journey" in (tmp_path / "report.html").read_text(encoding="utf-8")

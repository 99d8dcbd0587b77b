"""The code blocks of notebooks that were saved as text (In [n]: markers, ``` fences), in order, each with whether it compiles."""
from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from pathlib import Path


def compiles(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return bool(code.strip())


def is_code(code: str) -> bool:
    """Python, not prose that happens to parse: it has a call, an assignment, an import or a definition."""
    wanted = (ast.Call, ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    return compiles(code) and any(isinstance(node, wanted) for node in ast.walk(ast.parse(code)))


def longest_prefix(lines: list[str]) -> str:
    """The longest run of first lines that parses: after a cell's code its output and prose follow without a mark."""
    for n in range(len(lines), 0, -1):
        if compiles("\n".join(lines[:n])):
            return "\n".join(lines[:n])
    return ""


def blocks(text: str) -> list[str]:
    """Fenced blocks marked python, and what follows each In [n]: until a line that is no code."""
    found: list[tuple[int, str]] = []
    for match in re.finditer(r"^([ \t]*)```python\n(.*?)^[ \t]*```", text, re.S | re.M):
        indent = len(match[1])
        code = "\n".join(line[indent:] if line[:indent].isspace() or not line.strip() else line for line in match[2].split("\n"))
        found.append((match.start(), code))
    cells = list(re.finditer(r"^In \[(?:[ \d]*|None)\]:[ \t]*\n", text, re.M))
    for cell, following in zip(cells, [*cells[1:], None]):
        body = text[cell.end(): following.start() if following else len(text)]
        found.append((cell.start(), longest_prefix(body.split("\n"))))
    return [code for _, code in sorted(found) if is_code(code)]


def run_blocks(codes: list[str]) -> list[str]:
    """What each block prints in one namespace, and the error that ends it."""
    namespace: dict = {"__name__": "__main__"}
    printed = []
    for code in codes:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(code, "<block>", "exec"), namespace)
            except Exception as error:  # noqa: BLE001 - a block that fails under both is no finding
                print(f"{type(error).__name__}")
        printed.append(out.getvalue())
    return printed


if __name__ == "__main__":
    import json

    print(json.dumps(run_blocks(blocks(Path(sys.argv[1]).read_text(encoding="utf8")))))

"""Writes the `///` comments of the engine's headers as a C++ table of docstrings: docs.py OUT HEADER..."""

import re
import sys


def comments(text: str) -> dict[str, str]:
    """The comment above each function; functions that follow one another without a blank line share it."""
    found: dict[str, str] = {}
    comment: list[str] = []
    declared = True
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("///"):
            if declared:
                comment = []
            declared = False
            comment.append(line[3:].strip())
            continue
        declared = True
        if not line:
            comment = []
        match = re.match(r"(?:inline )?[\w:<>]+ (\w+)\(", line)
        if match:  # the first declaration counts
            found.setdefault(match.group(1), " ".join(comment))
    return {name: doc for name, doc in found.items() if doc}


def main(out: str, *headers: str) -> None:
    docs: dict[str, str] = {}
    for header in headers:
        with open(header, encoding="utf-8") as file:
            for name, doc in comments(file.read()).items():
                docs.setdefault(name, doc)
    with open(out, "w", encoding="utf-8") as file:
        for name, doc in sorted(docs.items()):
            file.write(f'{{"{name}", R"~({doc})~"}},\n')


if __name__ == "__main__":
    main(*sys.argv[1:])

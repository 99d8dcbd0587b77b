#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy on the sources of the library: tests/tidy.py BUILD [headers | FILE...]

BUILD is a configured build folder. Without files all are checked, and all headers; `headers` checks those alone. Most of the time
goes to the headers of others that each source includes, so sources are checked in groups, all included into one file. Exit status
1 with the findings, 77 where there is no clang-tidy, or, with `headers`, where it cannot read the headers of the system.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("base", "autograd", "nn", "attention", "optim", "train", "cli", "learn/book", "python/src")
GROUP_LINES = 3000  # so that no group keeps the others waiting at the end
ALONE = {"autograd/kernels/table.cpp", "train/text/pretokenizer.cpp"}  # a specialisation before its use; a macro before a header


class Unreadable(Exception):
    """A header that is not ours, with the first error in it: clang is older than GCC's headers, say. Nothing can be checked."""


def private_names(text):
    """The names in a source's unnamed namespaces: in a group only one source can have each."""
    names = set()
    for region in re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", text, re.M | re.S):
        for line in region.splitlines():
            declared = re.match(r"(?:template\b.*?>\s*)?(?:struct|class|enum class|enum|union)\s+(\w+)|using (\w+) =", line)
            if not declared and re.match(r"(?!using |namespace |static_assert)\w", line):
                declared = re.search(r"(\w+)\s*[(={;\[]", line)
            if declared:
                names.add(declared[declared.lastindex])
    return names


def compile_commands(build, files):
    """[(source, flags)], a source once for each instruction set it is compiled for."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"]).resolve()
        words = shlex.split(entry["command"])[1:]
        flags = tuple(w for w in words[: words.index("-o")] if not w.startswith("-W"))
        grouped = file.parent.name == "unity"  # a file that includes sources: cmake/Unity.cmake
        sources = re.findall('#include "(.*)"', file.read_text()) if grouped else [file.relative_to(ROOT).as_posix()]
        for source in sources:
            if source in files if files else source.startswith(tuple(folder + "/" for folder in FOLDERS)):
                yield source, flags


def make_groups(commands):
    """[(flags, {source: names to change})]: sources of one folder and the same flags whose private names differ or can be changed."""
    groups = []
    for source, flags in sorted(commands):
        text = (ROOT / source).read_text()
        names, lines, key = private_names(text), text.count("\n"), (source if source in ALONE else source.split("/")[0], flags)
        for group in groups:
            taken = group["names"] & names
            members = set(re.findall(r"(?:\.|->|::)(\w+)", text))
            if group["key"] == key and group["lines"] + lines <= GROUP_LINES and not taken & members:
                break
        else:
            taken = set()
            groups.append(group := {"key": key, "names": set(), "lines": 0, "sources": {}})
        group["names"] |= names
        group["lines"] += lines
        group["sources"][source] = taken
    return [(group["key"][1], group["sources"]) for group in groups]


def group_text(sources):
    """The headers first, which keep their names."""
    texts = [(ROOT / source).read_text() for source in sources if source.endswith(".cpp")]
    parts = sorted({line for text in texts for line in re.findall(r"^#include .*", text, re.M)})
    for number, (source, changed) in enumerate(sources.items()):
        parts += [f"#define {name} {name}_{number}" for name in sorted(changed)]
        parts += [f'#include "{source}"'] + [f"#undef {name}" for name in sorted(changed)]
    return "\n".join(parts) + "\n"


def all_headers():
    """Kernels' own headers belong to one instruction set and are seen with their sources; MPI's and Python's may not be there."""
    headers = (path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.h"))
    return {path: () for path in sorted(headers) if not re.search("/mpi/|/kernels/|^python/", path)}


def check(tidy, path, flags):
    """(findings, the first error of the compiler or None)"""
    command = [tidy, f"--config-file={ROOT}/.clang-tidy", "--quiet", "--checks=-bugprone-suspicious-include", str(path), "--", *flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    findings = run.stdout or f"{path}: clang-tidy: status {run.returncode}: {run.stderr}"
    error = re.search(r"^(.+?):\d+:\d+: error: .*\[clang-diagnostic-error\]$", run.stdout, re.M)
    if error and not any(Path(ROOT, error[1]).resolve().is_relative_to(ours) for ours in (ROOT, path.resolve().parent)):
        raise Unreadable(error[0])
    return findings if run.returncode else "", error and error[0]


def check_group(tidy, folder, number, flags, sources):
    if len(sources) > 1:
        path = folder / f"group_{number}.cpp"
        path.write_text(group_text(sources))
        findings, error = check(tidy, path, flags)
        if not error:
            return findings
        if all(source.endswith(".h") for source in sources):
            return f"{error} (no header is checked until they compile as one file)\n"
    # Sources that do not go together for a reason that private_names does not see are checked one by one.
    return "".join(check(tidy, ROOT / source, flags)[0] for source in sources)


def main():
    build, headers_only = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["headers"]
    files = set() if headers_only else {Path(file).resolve().relative_to(ROOT).as_posix() for file in sys.argv[2:]}
    tidy = next(filter(None, (shutil.which(f"clang-tidy{v}") for v in ("", *(f"-{n}" for n in range(20, 13, -1))))), None)
    if tidy is None:
        print("tidy: skipped: there is no clang-tidy (Debian: clang-tidy)")
        return 77
    groups = [] if headers_only else make_groups(compile_commands(build, files))
    if not files:
        groups.append((("-xc++", "-std=c++20", f"-I{ROOT}"), all_headers()))
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    print(f"tidy: {sum(len(sources) for _, sources in groups)} files in {len(groups)} groups", flush=True)
    try:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            found = "".join(pool.map(lambda numbered: check_group(tidy, folder, numbered[0], *numbered[1]), enumerate(groups)))
    except Unreadable as error:
        print(f"tidy: {'skipped: ' if headers_only else ''}{tidy} cannot read a header of the system: {error}")
        return 77 if headers_only else 1
    if found:
        print(f"{found}tidy: see above; .clang-tidy says which checks are off and why")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

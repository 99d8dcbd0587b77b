#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy on the sources of the library: tests/tidy.py BUILD [headers | FILE...]

BUILD is a configured build folder. Without files all are checked, and all headers; `headers` checks those alone. Sources that the
build compiles in groups (cmake/Unity.cmake) are checked in those, and all headers in one file: most of the time goes to the headers
of others. Exit status 1 with the findings, 77 where there is no clang-tidy, or, with `headers`, where it cannot read the headers of
the system.
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
HEADER_FLAGS = ("-xc++", "-std=c++20", f"-I{ROOT}")


class Unreadable(Exception):
    """A header that is not ours, with the first error in it: clang is older than GCC's headers, say. Nothing can be checked."""


def sources_of(file):
    """The sources that a file of the build stands for."""
    grouped = file.parent.name == "unity"
    return re.findall('#include "(.*)"', file.read_text()) if grouped else [file.relative_to(ROOT).as_posix()]


def compile_commands(build, files):
    """[(path, flags)] to check, once for each instruction set that it is compiled for: all that the build compiles of FOLDERS but the
    ops' cases, which are tests, or of it these files, each by itself."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"]).resolve()
        if not file.is_relative_to(ROOT):  # nanobind's, where Python's packages are
            continue
        words = shlex.split(entry["command"])[1:]
        flags = tuple(w for w in words[: words.index("-o")] if not w.startswith(("-W", "--param")))
        sources = sources_of(file)
        if files:
            yield from ((ROOT / source, flags) for source in sources if source in files)
        elif sources[0].startswith(tuple(folder + "/" for folder in FOLDERS)) and ".cases." not in sources[0]:
            yield file, flags


def all_headers():
    """Kernels' own headers belong to one instruction set and are seen with their sources; MPI's and Python's may not be there."""
    headers = (path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.h"))
    return [path for path in sorted(headers) if not re.search("/mpi/|/kernels/|^python/", path)]


def check(tidy, path, flags, again):
    """The findings; where the file of all headers does not compile, the first error alone. What the analyzer finds in a kernel it
    finds with any instruction set, and it takes most of the time: not again."""
    off = "-bugprone-suspicious-include" + ",-clang-analyzer-*" * again
    command = [tidy, f"--config-file={ROOT}/.clang-tidy", "--quiet", f"--checks={off}", str(path), "--", *flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    error = re.search(r"^(.+?):\d+:\d+: error: .*\[clang-diagnostic-error\]$", run.stdout, re.M)
    if error and not any(Path(ROOT, error[1]).resolve().is_relative_to(ours) for ours in (ROOT, path.resolve().parent)):
        raise Unreadable(error[0])
    if error and path.name == "headers.cpp":
        return f"{error[0]} (no header is checked until they compile as one file)\n"
    findings = run.stdout or f"{path}: clang-tidy: status {run.returncode}: {run.stderr}"
    return findings if run.returncode else ""


def main():
    build, headers_only = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["headers"]
    files = set() if headers_only else {Path(file).resolve().relative_to(ROOT).as_posix() for file in sys.argv[2:]}
    tidy = next(filter(None, (shutil.which(f"clang-tidy{v}") for v in ("", *(f"-{n}" for n in range(20, 13, -1))))), None)
    if tidy is None:
        print("tidy: skipped: there is no clang-tidy (Debian: clang-tidy)")
        return 77
    work = [] if headers_only else list(compile_commands(build, files))
    if not files:
        path = build / "tidy" / "headers.cpp"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'#include "{header}"\n' for header in all_headers()))
        work.append((path, HEADER_FLAGS))
    print(f"tidy: {len(work)} files and groups", flush=True)
    try:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            paths = [path for path, _ in work]
            found = "".join(pool.map(lambda i: check(tidy, *work[i], again=paths[i] in paths[:i]), range(len(work))))
    except Unreadable as error:
        print(f"tidy: {'skipped: ' if headers_only else ''}{tidy} cannot read a header of the system: {error}")
        return 77 if headers_only else 1
    if found:
        print(f"{found}tidy: see above; .clang-tidy says which checks are off and why")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs a program as `python PROGRAM ARGS...` would: arguments, __main__, traceback, exit status."""
from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path
from types import ModuleType, TracebackType


def _without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on."""
    own = str(Path(__file__).resolve().parent)
    inside = ("<frozen runpy>", runpy.__file__)
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not (file in inside or os.path.realpath(file).startswith(own)):
            return traceback
        traceback = traceback.tb_next
    return None


def _run_file(program: str) -> None:
    if os.path.isdir(program):
        sys.path[0] = program
        program = os.path.join(program, "__main__.py")
    else:
        program = os.path.abspath(program)
        sys.path[0] = os.path.dirname(program)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=program, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    exec(compile(Path(program).read_bytes(), program, "exec", dont_inherit=True), main.__dict__)  # without our own __future__


def run(arguments: list[str], module: bool = False) -> int:
    """Runs arguments[0] (a file, a directory with __main__.py, or with `module` a module) and returns the exit status."""
    program = arguments[0]
    if not module and not os.path.exists(program):
        print(f"as_torch: can't open file '{program}'", file=sys.stderr)
        return 2
    sys.argv = list(arguments)
    try:
        if module:
            sys.path[0] = os.getcwd()
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            _run_file(program)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - the interpreter's own last resort, without our frames
        traceback = _without_own_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        if isinstance(error, KeyboardInterrupt):
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0

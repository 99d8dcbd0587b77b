"""python -m onestep.as_torch PROGRAM [ARGS...] | -m MODULE [ARGS...] | --coverage PROGRAM"""
import sys
from pathlib import Path

from onestep.as_torch.coverage import report
from onestep.as_torch.run import run


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--coverage"] and len(arguments) == 2:
        if not Path(arguments[1]).is_file():
            print(f"as_torch: can't open file '{arguments[1]}'", file=sys.stderr)
            return 2
        return report(Path(arguments[1]))
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        return run(arguments[1:], module=True)
    if arguments and not arguments[0].startswith("-"):
        return run(arguments)
    print(f"usage: {__doc__}", file=sys.stdout if arguments in (["-h"], ["--help"]) else sys.stderr)
    return 0 if arguments in (["-h"], ["--help"]) else 2


sys.exit(main())

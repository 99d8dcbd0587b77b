#!/usr/bin/env python3
"""PyTorch's samples of every op that the engine has, run by the engine: samples.py RUN_PROGRAMS [OP...].

Prints a table: how many samples come out equal, are refused, are different, and of the inputs that must be refused, how many are not.
Fails where one is different or one that must be refused is not. Status 77 where there is no PyTorch (or expecttest, which its samples need).
"""
import collections
import re
import sys

try:
    import torch
    from op_samples import calls, error_programs, programs
except ImportError as e:
    print(f"samples: skipped, there is no {e.name}")
    sys.exit(77)
from torch_programs import Engine


def example(program, answer):
    text = [f"{step[0]} = {step[1]}({step[2]}, {step[3:]})"[:300] for step in program["steps"]]
    return "\n      ".join(text + [f"-> {answer['what'][:400]}"])


def main():
    torch.set_num_threads(1)
    engine = Engine(sys.argv[1])
    rows, notes, total = [], [], collections.Counter()
    columns = ("samples", "equal", "refused", "accepted", "different", "crashed", "inexpressible", "errors", "not refused")
    for name, op, call, in_place in calls(engine.operations(), sys.argv[2:]):
        counts, reasons = collections.Counter(), {}
        for kind, program in programs(name, op, call, in_place):
            counts["samples"] += 1
            answer = engine.check(program) if program else {"verdict": "inexpressible", "what": kind}
            counts[answer["verdict"]] += 1
            if answer["verdict"] not in ("equal", "inexpressible"):
                key = (answer["verdict"], re.sub(r"\[[^\]]*\]|\d+", "#", answer["what"])[:100] if answer["verdict"] == "refused" else "")
                reasons.setdefault(key, [0, example(program, answer)])[0] += 1
        for program in error_programs(name, op, call, in_place):
            counts["errors"] += 1
            answer = engine.check(program)
            if answer["verdict"] not in ("equal", "refused"):
                counts["not refused"] += 1
                reasons.setdefault(("not refused", ""), [0, example(program, answer)])[0] += 1
        title = name + (f" ({op.variant_test_name})" if op.variant_test_name else "")
        rows.append(f"{title:45}" + "".join(f"{counts[c]:>14}" for c in columns))
        total.update(counts)
        notes += [f"{title}: {key[0]}, {n} times: {key[1]}\n      {text}" for key, (n, text) in reasons.items()]
    print("\n".join(notes))
    print(f"{'op':45}" + "".join(f"{c:>14}" for c in columns))
    print("\n".join(rows))
    print(f"{'total':45}" + "".join(f"{total[c]:>14}" for c in columns))
    return 1 if total["different"] + total["accepted"] + total["crashed"] + total["not refused"] else 0


if __name__ == "__main__":
    sys.exit(main())

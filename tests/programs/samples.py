#!/usr/bin/env python3
"""PyTorch's samples of every op that the engine has, run by the engine: samples.py RUN_PROGRAMS [OP...].

Prints a table: how many samples come out equal, are refused, are different, and of the inputs that must be refused, how many are not.
Of those that are different, the ones that are what PyTorch makes of the same numbers as float64 count as rounded (of halves PyTorch
rounds what is between; so do other choices among equal elements), and what PyTorch refuses for what it saved as lenient. Fails where one is different or one that must be refused
is not. Status 77 where there is no PyTorch (or expecttest, which its samples need).
"""
import collections
import re
import sys

try:
    import torch
    from differential import judge
    from op_samples import calls, error_programs, programs
except ImportError as e:
    print(f"samples: skipped, there is no {e.name}")
    sys.exit(77)
from torch_programs import Engine, want

TIES = {"topk", "kthvalue"}  # which of equal elements they show is not said


def example(program, answer):
    text = [f"{step[0]} = {step[1]}({step[2]}, {step[3:]})"[:300] for step in program["steps"]]
    return "\n      ".join(text + [f"-> {answer['what'][:400]}"])


def as_float64(program, call):
    """The program, and what PyTorch makes of it with float64 in place of other floats, under the dtypes that it has."""
    steps = [list(step) for step in program["steps"]]
    for step in steps:
        if step[1] == "tensor" and step[2][0] in ("float16", "bfloat16", "float32"):
            step[2] = ["float64", *step[2][1:]]
    wide = want(steps, overrides={program["op"]: call}, quirks=False)
    for name, x in program["want"]["tensors"].items():
        if wide["tensors"].get(name) not in (None, "unusable") and x not in (None, "unusable"):
            wide["tensors"][name][0] = x[0]
    return program | {"want": wide}


def without_ties(program):
    """The program, where it does not matter which of equal elements are shown and get a gradient."""
    tensors = {name: x if x in (None, "unusable") else [*x[:2], None if name == "y1" else x[2], x[3], x[4] and [None] * len(x[4]), x[5]]
               for name, x in program["want"]["tensors"].items()}
    return program | {"want": program["want"] | {"tensors": tensors}}


def compare(engine, program, call):
    """The engine's answer to a sample."""
    answer = engine.check(program)
    if answer["verdict"] == "accepted":
        return judge(engine, program["steps"], program["want"])
    if answer["verdict"] == "different":
        other = without_ties(program) if program["op"] in TIES else as_float64(program, call)
        if engine.check(other)["verdict"] == "equal":
            answer["verdict"] = "rounded"
    return answer


def main():
    torch.set_num_threads(1)
    engine = Engine(sys.argv[1])
    rows, notes, total = [], [], collections.Counter()
    columns = ("samples", "equal", "refused", "accepted", "different", "rounded", "lenient", "crashed", "inexpressible", "errors", "not refused")
    for name, op, call, in_place in calls(engine.operations(), sys.argv[2:]):
        counts, reasons = collections.Counter(), {}
        for kind, program in programs(name, op, call, in_place):
            counts["samples"] += 1
            answer = compare(engine, program, call) if program else {"verdict": "inexpressible", "what": kind}
            counts[answer["verdict"]] += 1
            if answer["verdict"] not in ("equal", "rounded", "lenient", "inexpressible"):
                key = (answer["verdict"], re.sub(r"\[[^\]]*\]|\d+", "#", answer["what"])[:100] if answer["verdict"] == "refused" else "")
                reasons.setdefault(key, [0, example(program, answer)])[0] += 1
        for program in error_programs(name, op, call, in_place):
            counts["errors"] += 1
            answer = engine.check(program)
            if answer["verdict"] not in ("equal", "refused"):
                counts["not refused"] += 1
                reasons.setdefault(("not refused", ""), [0, example(program, answer)])[0] += 1
        title = name + (f" ({op.variant_test_name})" if op.variant_test_name else "")
        rows.append(f"{title:45}" + "".join(f"{counts[c]:>13}" for c in columns))
        total.update(counts)
        notes += [f"{title}: {key[0]}, {n} times: {key[1]}\n      {text}" for key, (n, text) in reasons.items()]
    print("\n".join(notes))
    print(f"{'op':45}" + "".join(f"{c:>13}" for c in columns))
    print("\n".join(rows))
    print(f"{'total':45}" + "".join(f"{total[c]:>13}" for c in columns))
    return 1 if total["different"] + total["accepted"] + total["crashed"] + total["not refused"] else 0


if __name__ == "__main__":
    sys.exit(main())

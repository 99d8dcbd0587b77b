#!/usr/bin/env python3
"""Random programs on the engine and under PyTorch: differential.py RUN_PROGRAMS [N [SEED]].

Generates N programs (generate.py), runs both and prints how many agree. A program that does not is shrunk to its shortest form and
printed. Fails where one is silently different or runs although PyTorch refuses it, where more than 0.5 % are refused that PyTorch
runs, and where rounding decides more than 0.1 %. Status 77 where there is no PyTorch.
"""
import collections
import re
import sys

try:
    import torch
except ImportError:
    print("differential: skipped, there is no PyTorch")
    sys.exit(77)
from generate import program
from perturbed import decided
from torch_programs import Engine, Quirk, want

MOST_REFUSED = 0.005
MOST_ROUNDED = 0.001


def judge(engine, steps, expected=None):
    """The engine's answer. What PyTorch refuses because it saved what was changed, or for how it goes back through several views of one
    function or a write to an expanded tensor, the engine may run if it comes to the right result: "lenient". Where it agrees in all that
    rounding does not decide under PyTorch (perturbed.py): "rounded"."""
    expected = expected or want(steps)
    answer = engine.check({"steps": steps, "want": expected})
    if answer["verdict"] == "different" and engine.check({"steps": steps, "want": decided(steps, expected)})["verdict"] == "equal":
        answer["verdict"] = "rounded"
    if answer["verdict"] == "accepted":
        try:
            protected = want(steps, protect=True)
            protected["tensors"].update({name: x for name, x in expected["tensors"].items() if x == "unusable"})
            other = engine.check({"steps": steps, "want": protected})
        except Quirk:  # it has no result
            answer["verdict"] = "lenient"
            return answer
        if other["verdict"] in ("equal", "refused"):
            answer["verdict"] = "lenient"
        answer["what"] += f"; as if it had saved nothing: {other['verdict']} {other['what']}"
    return answer


def shrunk(engine, steps, verdict):
    """The program without the steps that it does not need to be judged the same."""
    first = judge(engine, steps)
    at = len(steps)
    while at > 0:
        at -= 1
        shorter = steps[:at] + steps[at + 1:]
        try:
            now = judge(engine, shorter)
        except Quirk:
            continue
        if now["verdict"] == verdict and (verdict == "different" or reason(now) == reason(first)):
            steps = shorter
    return steps, judge(engine, steps)


def reason(answer):
    """The error without its numbers."""
    if answer["verdict"] in ("accepted", "lenient"):
        return json_op(answer["what"])
    return re.sub(r"\[[^\]]*\]|\d+", "#", answer["what"])[:150]


def json_op(text):
    return re.sub(r'^\[(\[[^\]]*\]|"[^"]*"),"([^"]*)".*', r"\2", text)


def argument(a):
    if isinstance(a, str):
        return f"t{a[1:]}" if a.startswith("$") else a
    return "[" + ", ".join(map(argument, a)) + "]" if isinstance(a, list) else repr(a)


def line(step):
    """A step as one reads it."""
    names, op, args = step[:3]
    name = ", ".join(f"t{n}" for n in names) if isinstance(names, list) else f"t{names}"
    words = [argument(a) for a in args] + [f"{k}={argument(v)}" for k, v in (step[3] if len(step) > 3 else {}).items()]
    return f"{name} = {op}({', '.join(words)})"


def report(steps, answer):
    expected = want(steps)
    lines = [f"    {s} {line(step)}" for s, step in zip(expected["status"], steps)]
    return "\n".join(lines + [f"    -> {answer['verdict']} at step {answer['step']}: {answer['what']}"] + [f"    PyTorch: {expected['error']}"] * bool(expected["error"]))


def main():
    path, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    torch.set_num_threads(1)
    engine = Engine(path)
    operations = engine.operations()
    counts, reasons, examples, steps_run = collections.Counter(), collections.Counter(), {}, collections.Counter()
    for i in range(count):
        steps = program(seed * 1_000_003 + i, operations)
        try:
            expected = want(steps)
        except Quirk:
            continue
        steps_run.update(expected["status"])
        answer = judge(engine, steps, expected)
        counts[answer["verdict"]] += 1
        if answer["verdict"] in ("equal", "rounded"):
            continue
        steps, answer = shrunk(engine, steps, answer["verdict"])
        key = (answer["verdict"], reason(answer) if answer["verdict"] != "different" else re.sub(r"[^a-z ]", "", answer["what"])[:60])
        reasons[key] += 1
        if key not in examples or len(steps) < len(examples[key][0]):
            examples[key] = (steps, answer)
    for key, n in sorted(reasons.items(), key=lambda entry: (entry[0][0], -entry[1])):
        print(f"{key[0]}, {n} times: {key[1]}\n{report(*examples[key])}\n")
    print(f"{count} programs of {sum(steps_run.values())} steps, {steps_run['x']} of them refused by PyTorch: {counts['equal']} equal, "
          f"{counts['refused']} refused ({100 * counts['refused'] / count:.2f} %), {counts['lenient']} right that PyTorch refuses, {counts['rounded']} decided by rounding, {counts['accepted']} accepted that PyTorch refuses, "
          f"{counts['different']} silently different, {counts['crashed']} crashed")
    bad = counts["accepted"] + counts["different"] + counts["crashed"]
    return 1 if bad or counts["refused"] > MOST_REFUSED * count or counts["rounded"] > MOST_ROUNDED * count else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes tests/goldens/programs.json, op_samples.json and mended_programs.json: goldens.py RUN_PROGRAMS [programs|op_samples|
mended_programs [OP...]].

Random programs and PyTorch's samples with PyTorch's results, as many as show something new and fit the size. What the engine is known
to refuse is left out here and counted by `differential` and `samples`. Where ops are named, the samples of the others stay as they are.
"""
import collections
import json
import sys

import torch
from generate import program
from op_samples import calls, error_programs, programs
from differential import judge
from mended import PROGRAMS
from torch_programs import Engine, want

DIGITS = 6
PROGRAM_BYTES, SAMPLE_BYTES = 290_000, 905_000
LENGTH = 11  # of the random programs, without the passes at their end
SAMPLES_AN_OP, ELEMENTS_A_SAMPLE = 7, 60


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def lean(expected):
    """Without the tensors that are as they were made."""
    kept = {name: x for name, x in expected["tensors"].items() if x is None or x == "unusable" or x[2:5] != [None, "l", None]}
    return {"status": expected["status"], "tensors": kept}


def write(name, chosen):
    with open(f"{sys.path[0]}/../goldens/{name}.json", "w") as file:
        file.write('{"made_by": "tests/programs/goldens.py", "torch": "%s", "programs": [\n' % torch.__version__)
        file.write(",\n".join(map(compact, chosen)) + "\n]}\n")
    print(f"{name}: {len(chosen)}")


def novelties(steps, status):
    """What a program shows: each op after each op that gave or wrote its first operand, and whether it ran."""
    last, shown = {}, set()
    for step, s in zip(steps, status):
        operand = step[2][0] if step[2] and isinstance(step[2][0], str) and step[2][0].startswith("$") else ""
        shown.add((last.get(operand, ""), step[1], s))
        for name in step[0] if isinstance(step[0], list) else [step[0]]:
            last["$" + name] = step[1]
        if step[1].endswith("_"):
            last[operand] = step[1]
    return shown


def random_programs(engine):
    operations, chosen, shown, size, seed = engine.operations(), [], set(), 0, 0
    while size < PROGRAM_BYTES and seed < 40_000:
        seed += 1
        steps = program(seed, operations, LENGTH)
        expected = want(steps, DIGITS)
        new = novelties(steps, expected["status"]) - shown
        if len(new) < 4 or judge(engine, steps, expected)["verdict"] != "equal":
            continue
        shown |= new
        chosen.append({"steps": steps, "want": lean(expected)})
        size += len(compact(chosen[-1])) + 2
    return chosen


def signature(candidate):
    """What tells the samples of an op apart: dtype, ranks, arguments that are no tensors."""
    steps = candidate["steps"]
    at = [i for i, step in enumerate(steps) if step[1] == candidate["op"]][-1]
    tensors = [(s[2][0], len(s[2][1]), 0 in s[2][1], len(s) > 3) for s in steps if s[1] == "tensor"]
    return str(tensors), compact([a if not str(a).startswith("$") else "$" for a in steps[at][2]] + steps[at][3:])


def samples(engine, wanted):
    chosen = []
    if wanted:
        with open(f"{sys.path[0]}/../goldens/op_samples.json") as file:
            chosen = [p for p in json.load(file)["programs"] if p["op"] not in wanted]
    for name, op, call, in_place in calls(engine.operations(), wanted):
        candidates = [p for _, p in programs(name, op, call, in_place, DIGITS) if p and elements(p) <= ELEMENTS_A_SAMPLE]
        candidates.sort(key=lambda p: len(compact(p)) * (1 + (p["steps"][0][2][1] == [])))
        seen, dtypes, kept = set(), collections.Counter(), []
        for candidate in candidates + list(error_programs(name, op, call, in_place))[:2]:
            kind, arguments = signature(candidate)
            dtype = str(candidate["steps"][0][2][0])
            fresh = ("kind", kind) not in seen or ("arguments", arguments) not in seen
            limit = SAMPLES_AN_OP if dtype == "float32" else 2
            if not fresh or dtypes[dtype] >= limit or engine.check(candidate)["verdict"] != "equal":
                continue
            seen |= {("kind", kind), ("arguments", arguments)}
            dtypes[dtype] += 1
            kept.append(candidate | {"want": lean(candidate["want"])})
        chosen += kept
    while sum(len(compact(p)) + 2 for p in chosen) > SAMPLE_BYTES:
        chosen.remove(max((p for p in chosen if not wanted or p["op"] in wanted), key=lambda p: len(compact(p))))
    return chosen


def elements(candidate):
    return sum(len(step[2][2]) for step in candidate["steps"] if step[1] == "tensor")


if __name__ == "__main__":
    torch.set_num_threads(1)
    process = Engine(sys.argv[1])
    wanted = sys.argv[2:3] or ["programs", "op_samples", "mended_programs"]
    if "programs" in wanted:
        write("programs", random_programs(process))
    if "op_samples" in wanted:
        write("op_samples", samples(process, sys.argv[3:]))
    if "mended_programs" in wanted:
        write("mended_programs", [{"steps": steps, "want": lean(want(steps, DIGITS, quirks=False))} for steps in PROGRAMS])

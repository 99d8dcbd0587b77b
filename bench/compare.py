#!/usr/bin/env python3
"""Times onestep and its peers in turn (A B C A B C ...) and compares medians.

    bench/compare.py                      everything: about an hour
    bench/compare.py step attention       some of it
    bench/compare.py --svg FILE --json FILE
    bench/compare.py --draw JSON... --svg FILE     a picture of figures that --json saved

Peers that are not installed are left out of the table, and the last line names them. `limit` is what the products of the work
would take if every core did nothing but multiply and add (for generation: if the weights were read at the speed of memory).
"""
import argparse
import functools
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
from op_cases import CASES, WITHOUT_BACKWARD  # noqa: E402

PEERS = {"step": ["torch", "torch_compile", "jax", "llmc", "onestep_python"], "lora": ["torch"], "scaling": ["torch"],
         "attention": ["torch_sdpa", "torch_naive", "jax"], "matmul": ["onednn", "openblas", "torch"],
         "small": ["torch", "jax", "onestep_python"], "conv": ["torch"], "op": ["torch"], "generate": ["torch", "jax", "llama"],
         "call": ["torch"]}
MIXED = ("step", "scaling", "attention", "matmul")  # kinds that know --precision
MODEL_B = "--heads 6 --embd 384 --ctx 256"
GPT2 = "--layers 12 --heads 12 --embd 768 --vocab 50257"
SQUARES = [f"--m {n} --n {n} --k {n}" for n in (64, 128, 256, 512, 1024, 2048)]
SHAPES = [f"--m {m} --n {n} --k {k}" for m, n, k in
          ((768, 768, 384), (1024, 384, 1536), (1024, 1536, 384), (2048, 1152, 384), (256, 3072, 768), (256, 50304, 768),
           (256, 65, 384))]
CONVS = {"LeNet 1 to 6, 5 x 5": "--batch 64 --in 1 --size 28 --out 6 --kernel 5 --padding 2 --first 1",
         "LeNet 6 to 16, 5 x 5": "--batch 64 --in 6 --size 14 --out 16 --kernel 5 --padding 0",
         "ResNet 3 to 16, 32 x 32": "--in 3 --size 32 --out 16 --first 1", "ResNet 16 to 16, 32 x 32": "--in 16 --size 32 --out 16",
         "ResNet 16 to 32, stride 2": "--in 16 --size 32 --out 32 --stride 2",
         "ResNet 16 to 32, 1 x 1, stride 2": "--in 16 --size 32 --out 32 --kernel 1 --stride 2 --padding 0",
         "ResNet 32 to 32, 16 x 16": "--in 32 --size 16 --out 32", "ResNet 64 to 64, 8 x 8": "--in 64 --size 8 --out 64"}
WORK = {
    "step": {"(a) L4 H4 C128 T64 B12": "--layers 4 --heads 4 --embd 128 --ctx 64 --batch 12",
             "(b) L6 H6 C384 T256 B8": f"{MODEL_B} --layers 6 --batch 8",
             "(c) GPT-2 124M T256 B1": f"{GPT2} --ctx 256 --batch 1"},
    "lora": {"GPT-2 124M T256 B4, rank 8": f"{GPT2} --ctx 256 --batch 4 --bias 1 --lora 8"},
    "scaling": {f"(b), threads: {threads}": f"{MODEL_B} --layers 6 --batch 8 --threads {threads}" for threads in (1, 2)}
               | {f"(b), batch: {batch}": f"{MODEL_B} --layers 6 --batch {batch}" for batch in (1, 2, 4, 8)}
               | {f"(b), layers: {layers}": f"{MODEL_B} --layers {layers} --batch 8" for layers in (1, 2, 4, 6)},
    "attention": {f"{mode} B{b} T{t} C{c} H{h}": f"--B {b} --T {t} --C {c} --H {h} --mode {mode}"
                  for b, t, c, h in ((12, 64, 128, 4), (8, 256, 384, 6), (4, 1024, 768, 12), (1, 4096, 512, 8))
                  for mode in ("fwd", "fwdbwd")},
    "matmul": {f"{op} {flags.replace('--m ', '').replace(' --n ', 'x').replace(' --k ', 'x')}": f"{flags} --op {op}"
               for flags in SQUARES + SHAPES for op in ("NN", "NT", "TN")}
              | {"NN 48 x 256x64x256": "--m 256 --n 64 --k 256 --batch 48"}
              | {f"NT {m}x3072x768": f"--m {m} --n 3072 --k 768 --op NT" for m in (1, 8)}
              | {f"{op} {m}x1024x256": f"--m {m} --n 1024 --k 256 --op {op}" for m in (12, 32) for op in ("NN", "NT")},
    "conv": {f"{mode} {name}": f"{flags} --mode {mode}" for name, flags in CONVS.items() for mode in ("fwd", "fwdbwd")},
    "op": {f"{mode} {op}": f"--op {op} --mode {mode}" for op in CASES
           for mode in (("fwd",) if op in WITHOUT_BACKWARD else ("fwd", "fwdbwd"))},
    "small": {"MLP step": "--case mlp", "attention, book size": "--case mha", "100 scalar ops": "--case scalarops"},
    "call": {title: f"--case {case}" for title, case in
             (("x + x", "add"), ("x.exp()", "exp"), ("x[1:3, 0]", "index"), ("softmax(x, -1)", "softmax"), ("4 x 4 @ 4 x 4", "matmul"),
              ("x.shape", "shape"))},
    "generate": {"(b) L6 H6 C384": "--layers 6 --heads 6 --embd 384 --ctx 256 --bias 1 --tokens 128",
                 "(c) GPT-2 124M": f"{GPT2} --ctx 256 --bias 1 --tokens 32",
                 "(c), eight sequences": f"{GPT2} --ctx 256 --bias 1 --tokens 32 --batch 8"},
}


def cores_of(command):
    """As many as it has threads: everyone is bound to them."""
    return sorted(os.sched_getaffinity(0))[:int(command[command.index("--threads") + 1])]


def run(command):
    """The JSON that a command prints, or None if it cannot run here."""
    cores = cores_of(command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
    except OSError:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if done.returncode == 0 and lines else None


@functools.cache
def served(command):
    """A peer that takes lines and answers each with a line of JSON."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores_of(command)))


def ask(command):
    """What a peer says of a single op. It runs once for all of them, as starting PyTorch takes longer than they do, so that its
    memory and its first result say nothing of one."""
    op, mode = (command.index(flag) + 1 for flag in ("--op", "--mode"))
    peer = served((*command[:op], "-", *command[op + 1:mode], "fwd", *command[mode + 1:]))
    try:
        print(command[op], command[mode], file=peer.stdin, flush=True)
    except OSError:
        return None
    answer = json.loads(peer.stdout.readline() or "null")
    return answer and {key: answer[key] for key in answer if key not in ("peak_rss_mib", "process_s_at_first_result")}


def contestants(kind, flags, options):
    """Name -> command, ours first."""
    budget = ["--budget", str(options.budget / 10 if kind == "op" else options.budget)]  # there are hundreds of ops
    program = "step" if kind in ("scaling", "lora") else kind
    if "--threads" not in flags:
        flags += f" --threads {options.threads}"
    if options.precision != "float32":
        flags += f" --precision {options.precision}"
    if options.weights != "float32":
        flags += f" --weights {options.weights}"
    ours = [options.onestep, "bench", program, *flags.split(), *budget, "--json"]
    if kind == "call":  # 200 calls from Python
        ours = [sys.executable, str(HERE / "peers" / "call.py"), "--framework", "onestep_python", *flags.split(), *budget]
    peers = {name: [sys.executable, str(HERE / "peers" / f"{program}.py"), "--framework", name, *flags.split(), *budget]
             for name in PEERS[kind]}
    return {"onestep": ours, **peers}


def compare(kind, label, flags, options, limits):
    """All contestants in turn, `rounds` times: one row of the table."""
    results = {}
    for _ in range(options.rounds):
        for name, command in contestants(kind, flags, options).items():
            result = ask(command) if kind == "op" and name != "onestep" else run(command)
            if result:
                results.setdefault(name, []).append(result)
    if "onestep" not in results:
        raise SystemExit(f"compare.py: {options.onestep} bench {kind} {flags} failed (build it, or give --onestep)")
    ms = {name: statistics.median(r["median_ms"] for r in rs) for name, rs in results.items()}
    ours = results["onestep"][0]
    limit = 1e3 * ours["gflop"] / limits["gflops"] if "gflop" in ours else None
    if kind == "generate":
        limit = 1e-6 * ours["parameter_bytes"] * ours["tokens"] / limits["gb_per_s"]
    fastest = min((name for name in ms if not name.startswith("onestep")), key=ms.get, default=None)
    narrow = f", {options.precision}" if options.precision != "float32" else ""
    return {"kind": kind, "work": label + narrow, "ms": ms, "fastest_peer": fastest,
            "ratio": ms[fastest] / ms["onestep"] if fastest else None, "limit_ms": limit,
            "rss_mib": {name: max(r["peak_rss_mib"] for r in rs) for name, rs in results.items() if "peak_rss_mib" in rs[0]},
            "first_s": {name: min(r["process_s_at_first_result"] for r in rs) for name, rs in results.items()
                        if "process_s_at_first_result" in rs[0]}}


def number(x):
    return "-" if x is None else f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def table(kind, rows):
    """Markdown: milliseconds, ratio to the fastest peer, limit, peak memory."""
    names = ["onestep", *PEERS[kind]]
    lines = [f"| {kind} [ms] | " + " | ".join(names) + " | ratio | limit | MiB, ours / least |",
             "|---|" + "---:|" * (len(names) + 3)]
    for row in rows:
        peers = [v for k, v in row["rss_mib"].items() if not k.startswith("onestep")]
        memory = f"{number(row['rss_mib']['onestep'])} / {number(min(peers))}" if peers else "-"
        lines.append(f"| {row['work']} | " + " | ".join(number(row["ms"].get(name)) for name in names)
                     + f" | {number(row['ratio'])} | {number(row['limit_ms'])} | {memory} |")
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if len(ratios) > 1:
        lines.append(f"\nGeometric mean of the ratios: {math.exp(statistics.mean(map(math.log, ratios))):.2f}")
    return "\n".join(lines)


def picture(rows, title):
    """SVG: a bar for every ratio to the fastest peer, and a line at 1."""
    width, height, left, room, scale = 800, 24, 312, 150, 110
    bars = [row for row in rows if row["ratio"]]
    total = 60 + height * len(bars)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}" '
           'font-family="sans-serif" font-size="13">', f'<rect width="{width}" height="{total}" fill="#ffffff"/>',
           f'<text x="12" y="22" font-size="15" font-weight="bold">{title}</text>']
    for i, row in enumerate(bars):
        y = 38 + height * i
        length = min(scale * row["ratio"], width - left - room)
        colour = "#2a7f4f" if row["ratio"] >= 1 else "#b06a2a"
        out += [f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{row["kind"]} {row["work"]}</text>',
                f'<rect x="{left}" y="{y}" width="{length:.1f}" height="16" fill="{colour}"/>',
                f'<text x="{left + length + 6:.1f}" y="{y + 13}">{row["ratio"]:.2f} x {row["fastest_peer"]}</text>']
    out += [f'<line x1="{left + scale}" y1="32" x2="{left + scale}" y2="{total - 20}" stroke="#444444" stroke-dasharray="4 3"/>',
            "</svg>"]
    return "\n".join(out) + "\n"


def save_picture(file, rows, machine):
    Path(file).write_text(picture(rows, f"Speed beside the fastest peer ({machine})"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(WORK)} (default: all)")
    parser.add_argument("--onestep", default=str(HERE.parent / "build" / "release" / "onestep"), help="the program to time")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="how often everyone has a turn")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timing a turn, of a single op a tenth of it")
    parser.add_argument("--precision", default="float32", choices=("float32", "bf16", "bf16_amx"),
                        help="of the products of " + ", ".join(MIXED) + "; bf16 and bf16_amx are autocast in PyTorch")
    parser.add_argument("--weights", default="float32", choices=("float32", "bf16", "int8"),
                        help="of generate; for llama.cpp F16 beside bf16 and Q8_0 beside int8, the others are left out")
    parser.add_argument("--only", default="", help="only work whose label contains this")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--svg", help="file for the picture of the ratios")
    parser.add_argument("--draw", nargs="+", metavar="JSON", help="times nothing: files of --json for the picture")
    options = parser.parse_args()
    if options.draw:
        if not options.svg or options.kinds:
            parser.error("--draw needs --svg, and no kinds")
        saved = [json.loads(Path(file).read_text()) for file in options.draw]
        return save_picture(options.svg, [row for figures in saved for row in figures["rows"]], saved[0]["machine"])
    unknown = set(options.kinds) - set(WORK)
    if unknown:
        parser.error(f"unknown kind {', '.join(sorted(unknown))} (one of {', '.join(WORK)})")
    for flag, kinds in (("precision", MIXED), ("weights", ("generate",))):
        value, float32_only = getattr(options, flag), set(options.kinds or WORK) - set(kinds)
        if value != "float32" and float32_only:
            parser.error(f"--{flag} {value} is for {', '.join(kinds)}: got {', '.join(sorted(float32_only))}")
    built = str(Path(options.onestep).resolve().parent / "python")  # the Python package, where ./onestep test has built it
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [built, os.environ.get("PYTHONPATH")]))
    limits = run([options.onestep, "bench", "limits", "--json", "--budget", "2", "--threads", str(options.threads)])
    if not limits:
        raise SystemExit(f"compare.py: {options.onestep} bench limits failed (build it, or give --onestep)")
    machine = about = f"{limits['cpu']}, {limits['isa']}, {options.threads} thread{'s' * (options.threads > 1)}"
    for narrow in (options.precision, options.weights):
        about += f", {narrow}" if narrow != "float32" else ""
    print(f"{about}: {limits['gflops']:.0f} GFLOP/s of multiply-adds, {limits['gb_per_s']:.1f} GB/s read. "
          f"Medians of {options.rounds} turns; ratio = fastest peer / onestep.\n", flush=True)
    rows = []
    for kind in options.kinds or WORK:
        chosen = [compare(kind, label, flags, options, limits) for label, flags in WORK[kind].items() if options.only in label]
        rows += chosen
        if chosen:
            print(table(kind, chosen) + "\n", flush=True)
    missing = {f"{row['kind']}: {name}" for row in rows for name in PEERS[row["kind"]] if name not in row["ms"]}
    if missing:
        print("Not here or not able: " + ", ".join(sorted(missing)))
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": machine, "limits": limits, "rows": rows}, indent=1) + "\n")
    if options.svg:
        save_picture(options.svg, rows, machine)


if __name__ == "__main__":
    main()

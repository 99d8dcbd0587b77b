#!/usr/bin/env python3
"""Whether a long training slows down or grows: milliseconds a step and resident memory, a tenth of the run at a time.

    bench/steady.py                              5,000 steps of configs/next_token.json
    bench/steady.py --config FILE --steps N
"""
import argparse
import json
import subprocess
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def resident_mib(pid):
    """VmRSS of a process, or None when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    kib = [int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
    return kib[0] / 1024 if kib else None


def watch(process, metrics, samples, ended):
    """Appends (last logged step, resident MiB) ten times a second."""
    while not ended.wait(0.1):
        memory = resident_mib(process.pid)
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        if memory and len(lines) > 1:
            samples.append((json.loads(lines[-2])["step"], memory))  # the last line may be half written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onestep", default=str(ROOT / "build" / "release" / "onestep"), help="the program")
    parser.add_argument("--config", default=str(ROOT / "configs" / "next_token.json"))
    parser.add_argument("--steps", type=int, default=5000, help="at least 100")
    options = parser.parse_args()
    if options.steps < 100:
        parser.error(f"argument --steps: must be at least 100: got {options.steps}")
    log_every = max(options.steps // 500, 1)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [options.onestep, "train", options.config, "--out", str(run), "--quiet"]
        for setting in (f"train.steps={options.steps}", "train.eval_every=0", f"train.log_every={log_every}"):
            command += ["--set", setting]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        samples, ended = [], threading.Event()
        watcher = threading.Thread(target=watch, args=(process, run / "metrics.jsonl", samples, ended))
        watcher.start()
        status = process.wait()
        ended.set()
        watcher.join()
        if status != 0:
            raise SystemExit(f"steady.py: {' '.join(command)} ended with status {status}")
        log = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    log = [entry for entry in log if "loss" in entry]
    print("| steps | ms a step | resident MiB |\n|---|---:|---:|")
    for part in range(10):
        first, last = options.steps * part // 10, options.steps * (part + 1) // 10
        entries = [entry for entry in log if first <= entry["step"] < last]
        memory = [mib for step, mib in samples if first <= step < last]
        span = entries[-1]["step"] - entries[0]["step"]
        ms = 1e3 * (entries[-1]["seconds"] - entries[0]["seconds"]) / span
        print(f"| {first}-{last} | {ms:.3f} | {max(memory, default=float('nan')):.1f} |")


if __name__ == "__main__":
    main()

"""What every peer needs: threads bound before a framework is imported, calls timed one by one, one line of JSON."""
import argparse
import json
import os
import resource
import statistics
import time


# bf16_amx is a way of onestep to add up products of bfloat16, for others it is bf16.
PRECISION = ("precision", "float32", ["float32", "bf16", "bf16_amx"])


def arguments(description, frameworks, numbers, choices=()):
    """Flags of `onestep bench`: numbers are (name, default), choices (name, default, allowed)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--framework", default=frameworks[0], choices=frameworks)
    for name, default in (*numbers, ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default, allowed in choices:
        parser.add_argument(f"--{name}", default=default, choices=allowed)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds to spend on timing")
    args = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(args.threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])  # XLA makes as many threads as it may use cores
    if args.framework == "onestep_python":
        import onestep.as_torch  # noqa: F401 - `import torch` is the Python package from now on
    return args


def process_age():
    """Seconds since this process started, the interpreter's start included."""
    with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        started = int(stat.read().rsplit(")", 1)[1].split()[19])
        return float(uptime.read().split()[0]) - started / os.sysconf("SC_CLK_TCK")


def report(bench, args, call, warmup=3, min_reps=5, **more):
    """Times call() for the budget and prints the result with the keys of `onestep bench --json`."""
    call()
    first = process_age()
    for _ in range(warmup):
        call()
    times = []
    while len(times) < min_reps or sum(times) < args.budget:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    times.sort()
    median = 1e3 * statistics.median(times)
    result = {"bench": bench, **vars(args), "median_ms": median, "min_ms": 1e3 * times[0],
              "p90_ms": 1e3 * times[int(0.9 * (len(times) - 1))], "reps": len(times),
              "process_s_at_first_result": first,
              "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    result.update({key: value(median) for key, value in more.items()})
    print(json.dumps(result), flush=True)

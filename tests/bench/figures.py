"""Shared by the benches: where things are, wrk, medians, tables."""
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
sys.dont_write_bytecode = True
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "4"))
TO_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0}


def wrk(url, headers=(), connections=64):
    """(requests/s, p50 ms, p99 ms, answers that were no 2xx or broke)"""
    argv = ["wrk", "-t2", "-c%d" % connections, "-d%ds" % SECONDS, "--latency"]
    for h in headers:
        argv += ["-H", h]
    out = subprocess.run(argv + [url], capture_output=True, text=True, check=True).stdout

    def at(percent):
        number, unit = re.search(r"%s%%\s+([0-9.]+)(us|ms|s|m)\b" % percent, out).groups()
        return float(number) * TO_MS[unit]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    failures = int(bad.group(1)) if bad else 0
    failures += sum(int(n) for n in broken.groups()) if broken else 0
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", out).group(1)), at(50), at(99), failures


def cpu_seconds(pids):
    """User and system time of these processes so far."""
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid, "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(url, headers, pids):
    """What wrk saw, and the CPU time of a request in microseconds: the figure that a busy
    machine disturbs least."""
    before = cpu_seconds(pids)
    found = wrk(url, headers)
    return found + ((cpu_seconds(pids) - before) / (found[0] * SECONDS) * 1e6,)


def in_turn(subjects):
    """Every subject (name, url, headers, processes) once a round, so that a noisy minute hits
    all alike. Medians by name."""
    seen = {name: [] for name, *_ in subjects}
    for _ in range(ROUNDS):
        for name, *subject in subjects:
            seen[name].append(measure(*subject))
    return {name: tuple(statistics.median(r[i] for r in rows) for i in range(5))
            for name, rows in seen.items()}


def table(title, head, rows):
    rows = [tuple(str(c) for c in r) for r in [head] + rows]
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
    print("\n" + title)
    for n, row in enumerate(rows):
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                               for i, (c, w) in enumerate(zip(row, widths))).rstrip())
        if n == 0:
            print("  " + "  ".join("-" * w for w in widths))
    sys.stdout.flush()


def ratio(a, b):
    return "%.2f" % (a / b) if b else "-"

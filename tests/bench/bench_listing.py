#!/usr/bin/python3
"""Listing many finished runs, beside the command's own listing: bench_listing.py [N ...]"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from figures import ratio, table
from harness import STANDIN, TOKEN, Place, Server

LAB = os.path.join(os.environ.get("SSEBENCH_LAB", "/var/cache/ssebench-webui-lab"), "root")
TASK_TEXT = "A reader of length-prefixed records trusts the length. " * 40  # a whole config is 3 kB


def summary(number):
    return {"task": {"id": "task-%d" % (number % 55), "project": "p", "language": "c",
                     "source": "/src", "task_description": {"issue": TASK_TEXT},
                     "files": {"poc": ["poc/1.bin"]}},
            "config": {"agent": "codex", "model": "gpt-6.1-sol", "mode": "sandbox",
                       "timeout": 3600, "difficulty": 2, "tool_layer": "sandbox",
                       "egress": "restricted", "reference_run": False, "plugins": []},
            "patch_result": {"status": "passed", "build_success": True, "pov_passed": 1,
                             "pov_total": 1, "func_test_success": True, "intent_test_success": None},
            "runtime_result": {"agent_duration": 90, "agent_timeout": False,
                               "evaluator_timeout": False, "agent_exit_code": 0},
            "spend": 0.125, "run_id": "run-%06d" % number,
            "started_at": "2026-10-01T%02d:%02d:%02d.%06dZ" % (
                number // 3600 % 24, number // 60 % 60, number % 60, number)}


def folder_of(results, number):
    return os.path.join(results, "task-%d" % (number % 55), "gpt-6.1-sol", "codex",
                        "run-%06d" % number)


def write(results, number, **more):
    folder = folder_of(results, number)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "summary.json")
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump({**summary(number), **more}, f)
    os.replace(path + ".new", path)


def timed(call):
    begin = time.monotonic()
    value = call()
    return (time.monotonic() - begin) * 1000, value


def until(server, query, wanted):
    """ms until an answer is as `wanted` says."""
    begin = time.monotonic()
    while True:
        took, answer = timed(lambda: server.json("/api/containers" + query))
        if wanted(answer):
            return (time.monotonic() - begin) * 1000, took
        time.sleep(0.002)


def command(place, results):
    """(name, argument vector, cwd) of the command's own listing."""
    if results.startswith(LAB) and os.path.exists(LAB + "/opt/ssebench/bin/ssebench"):
        return ("ssebench 1.1.0", ["chroot", LAB, "/opt/ssebench/bin/ssebench", "runs", "results",
                                   "--json", "--dir", results[len(LAB):]])
    return "the stand-in", [STANDIN, "runs", "results", "--json", "--dir", results]


def ours(place, results, n):
    server = Server(place, {"SSEBENCH_WEBUI_TOKEN": TOKEN, "SSEBENCH_WEBUI_WORKERS": "1",
                            "SSEBENCH_WEBUI_RESULTS": results}, base_path="")
    rows, page = [], "?limit=200&sort=created&order=desc"
    try:
        cold, _ = until(server, page, lambda a: a["total"] >= n)
        rows.append(("cold: start to the first whole answer", cold))
        whole = [timed(lambda: server.get("/api/containers"))[0] for _ in range(7)]
        rows.append(("warm, every run in one answer", statistics.median(whole)))
        few = [timed(lambda: server.get("/api/containers" + page))[0] for _ in range(50)]
        rows.append(("warm, a page of 200", statistics.median(few)))
        looks = []
        for _ in range(3):
            time.sleep(3.2)  # the last look is too old: this one walks unchanged directories
            looks.append(timed(lambda: server.get("/api/containers" + page))[0])
        rows.append(("a new look, nothing changed", statistics.median(looks)))
        time.sleep(3.2)
        write(results, 7, started_at="2027-01-01T00:00:00Z")
        rows.append(("a new look, one run changed", until(
            server, page, lambda a: a["containers"][0]["id"] == "run-000007")[0]))
        rows.append(("memory of the worker, MiB RSS", resident(server.workers()[0])))
        rows.append(("memory of the broker, MiB RSS", resident(server.broker())))
    finally:
        server.stop()
    return rows


def resident(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096 / 2**20


def measure(n):
    top = LAB + "/var" if os.path.isdir(LAB + "/var") and os.getuid() == 0 else None
    folder = tempfile.mkdtemp(prefix="bench-", dir=top)
    os.chmod(folder, 0o755)
    place = Place(demo=False)
    try:
        for number in range(n):
            write(folder, number)
        name, argv = command(place, folder)
        env = place.env()
        peer = statistics.median(timed(lambda: subprocess.run(
            argv, env=env, cwd=place.checkout, check=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL))[0] for _ in range(3 if n <= 20000 else 1))
        rows = [(what, "%.1f" % ms, ratio(peer, ms) if "memory" not in what else "")
                for what, ms in ours(place, folder, n)]
        rows.append((name + " runs results --json", "%.1f" % peer, ""))
        table("%d finished runs, ms" % n, ("", "ours", "it / ours"), rows)
    finally:
        place.close()
        shutil.rmtree(folder)


for number in [int(a) for a in sys.argv[1:]] or [10000, 100000]:
    measure(number)

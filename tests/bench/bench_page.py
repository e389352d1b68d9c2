#!/usr/bin/python3
"""Figures of the page in a real Chromium, on the real server: first paint and layout shifts with
a cold cache; a dialog of 200,000 entries and 30 MiB; a log of 1,000 lines a second for ten
minutes; the newcomer's walk.

    SSEBENCH_BUILD=build tests/bench/bench_page.py [vitals dialog logs walk] [--seconds N]
"""
import glob
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness  # noqa: E402
import process  # noqa: E402
import test_browser  # noqa: E402

ENTRIES, SIZE = 200_000, 30 << 20
LINES_A_SECOND = 1000
TEN_MINUTES = 600


def show(what, figures):
    print("%-10s %s" % (what, "  ".join(
        "%s %s" % (k, json.dumps(v) if isinstance(v, dict) else v) for k, v in figures.items())),
        flush=True)


def chromium(server, *argv, script=os.path.join(HERE, "page_bench.mjs"), timeout=1200):
    """Run a script and yield the lines it prints."""
    env = {**os.environ, "SSEBENCH_URL": server.url, "SSEBENCH_TOKEN": server.token or "",
           "SSEBENCH_CHROMIUM": test_browser.browser(), "HOME": server.place.home}
    p = subprocess.run(["node", script, *argv], cwd=test_browser.HERE, env=env,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                       timeout=timeout)
    if p.returncode != 0:
        sys.exit("%s: status %d" % (script, p.returncode))
    return p.stdout.splitlines()


def a_run(server):
    return next(r["id"] for r in server.runs() if r["grade"] == "passed")


def vitals(place):
    server = harness.Server(place)
    for line in chromium(server, "vitals", "runs/" + a_run(server)):
        show("vitals", json.loads(line))
    server.stop()


def long_dialog(path):
    """Turns of a message and three tool calls, as agents have them, up to the full size."""
    pad = "x" * (SIZE // ENTRIES - 92)
    with open(path, "w", encoding="utf-8") as f:
        for seq in range(ENTRIES - 1):
            ts = "2026-11-29T%02d:%02d:%02d.000Z" % (seq // 3600 % 24, seq // 60 % 60, seq % 60)
            entry = {"seq": seq, "ts": ts, "type": "message", "role": "assistant",
                     "content": pad} if seq % 7 == 0 else {
                "seq": seq, "ts": ts, "type": "tool", "tool_id": "t%d" % ((seq - seq % 7) + (
                    seq % 7 - 1) // 2), "name": "Bash",
                "status": "running" if seq % 2 else "success", "result": pad[:40]}
            f.write(json.dumps(entry, separators=(",", ":")) + "\n")
        f.write(json.dumps({"seq": ENTRIES, "ts": ts, "type": "complete", "status": "success",
                            "turns": 1, "duration_ms": 1,
                            "total_tokens": {"in": 1, "out": 1}}) + "\n")
    return os.path.getsize(path)


def dialog(place):
    server = harness.Server(place)
    run = a_run(server)
    folder = next(os.path.dirname(f) for f in glob.glob(
        place.results + "/**/summary.json", recursive=True) if run in f)
    size = long_dialog(os.path.join(folder, "archive", "dialog.jsonl"))
    show("dialog", {"entries": ENTRIES, "MiB": round(size / (1 << 20), 1)})
    for line in chromium(server, "dialog", "runs/%s/dialog" % run):
        show("dialog", json.loads(line))
    server.stop()


def write_lines(path, stop):
    """Coloured lines and progress bars, a twentieth of a second's worth at a time."""
    n, start = 0, time.monotonic()
    with open(path, "ab") as f:
        while not stop.is_set():
            due = int((time.monotonic() - start) * LINES_A_SECOND)
            f.write(b"".join(
                b"\x1b[32mINFO\x1b[0m step %07d of the agent's work, with some words that fill "
                b"the line as logs do\n" % i if i % 10 else
                b"\x1b[33m %d%% [###   ]\r %d%% [####  ]\x1b[0m %07d\n" % (i % 100, i % 100, i)
                for i in range(n, due)))
            f.flush()
            n = due
            time.sleep(0.05)


def logs(place, seconds):
    place.start_run("noisy", agent_seconds=seconds + 300)
    server = harness.Server(place)
    path = process.wait_for(lambda: glob.glob(place.standin + "/runs/*/log"), what="the log")[0]
    stop = threading.Event()
    writer = threading.Thread(target=write_lines, args=(path, stop))
    writer.start()
    try:
        for line in chromium(server, "logs", "runs/noisy/logs", str(seconds),
                             timeout=seconds + 300):
            show("logs", {"seconds": seconds, **json.loads(line)})
    finally:
        stop.set()
        writer.join()
    server.stop()


def walk(place):
    begun = time.monotonic()
    installed = os.path.join(place.top, "installed")
    subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--destdir",
                    installed], check=True, stdout=subprocess.DEVNULL)
    show("walk", {"step": "meson install", "ms": round((time.monotonic() - begun) * 1000)})
    begun = time.monotonic()
    server = harness.Server(place, {"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    server.json("/api/health")
    show("walk", {"step": "the server starts and answers",
                  "ms": round((time.monotonic() - begun) * 1000)})
    for line in chromium(server, script=test_browser.WALK):
        step = json.loads(line.partition(" ")[2])
        show("walk", {"step": step["name"], "ms": step["ms"]})
    server.stop()


def main():
    argv = sys.argv[1:]
    seconds = TEN_MINUTES
    if "--seconds" in argv:
        at = argv.index("--seconds")
        seconds = int(argv[at + 1])
        del argv[at:at + 2]
    process.become_subreaper()
    print("load average %.1f on %d cores" % (os.getloadavg()[0], os.cpu_count()), flush=True)
    for what in argv or ["vitals", "dialog", "walk", "logs"]:
        place = harness.Place()
        try:
            logs(place, seconds) if what == "logs" else globals()[what](place)
        finally:
            place.close()


main()

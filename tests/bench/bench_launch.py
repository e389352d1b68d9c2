#!/usr/bin/python3
"""Figures of launches (issue 4): from request to execution, from line to browser, fifty at once,
and how soon a new broker knows them all. A peer stands beside each where there is one: the same
work without the server, in the same run, so that a busy machine shows.

    SSEBENCH_BUILD=build tests/bench/bench_launch.py [--quick]
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness  # noqa: E402
import launch_help as lh  # noqa: E402
import process  # noqa: E402

QUICK = "--quick" in sys.argv
WRITER = os.path.join(HERE, "launch_writer.c")


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def row(name, value, peer=""):
    print("%-58s %22s %26s" % (name, value, peer), flush=True)


def ms(values):
    return "p50 %.1f ms  p99 %.1f ms" % (percentile(values, 50) * 1e3,
                                         percentile(values, 99) * 1e3)


def build_writer(place):
    """A command that costs next to nothing, so that the figures are the server's."""
    path = os.path.join(place.top, "cli")
    subprocess.run(["cc", "-O2", "-o", path, WRITER], check=True)
    return path


def wait_file(path):
    while True:
        try:
            with open(path) as f:
                text = f.read()
            if text.endswith("\n"):
                return float(text)
        except (FileNotFoundError, ValueError):
            pass
        time.sleep(0.0005)


def request_to_execution(place, server, stage, n):
    """The command writes the time of its first instruction."""
    took, peer = [], []
    stage.task("t-0-0-0", lines=0)
    for i in range(n):
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        launch_id = lh.launch(server, "t-0-0-0")
        took.append(wait_file(os.path.join(stage.state, "at-" + launch_id)) - began)
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        name = "peer-%d" % i
        subprocess.run([os.path.join(place.top, "cli"), "run", "--task=t-0-0-0",
                        "--run-id=" + name], env={"SSEBENCH_STANDIN_STATE": stage.state},
                       stdout=subprocess.DEVNULL, check=True)
        peer.append(wait_file(os.path.join(stage.state, "at-" + name)) - began)
    row("launch request -> command executes (%d)" % n, ms(took), "bare spawn: " + ms(peer))
    lh.post(server, "/clear", {})


def line_to_browser(server, stage, n):
    """Each line holds the time at which it was written."""
    took = []
    stage.task("t-%d-1-20" % n, lines=0)
    with server.websocket("/api/launch/ws", timeout=60) as ws:
        lh.launch(server, "t-%d-1-20" % n)
        while len(took) < n:
            m = ws.receive_json()
            if m["type"] == "log" and m["data"].startswith("at "):
                took.append(time.clock_gettime(time.CLOCK_MONOTONIC) - float(m["data"].split()[1]))
    reader, writer = os.pipe()
    peer = []
    for _ in range(n):
        os.write(writer, b"at %.6f\n" % time.clock_gettime(time.CLOCK_MONOTONIC))
        text = os.read(reader, 100)
        peer.append(time.clock_gettime(time.CLOCK_MONOTONIC) - float(text.split()[1]))
        time.sleep(0.02)
    row("output line -> browser's socket (%d lines, 50/s)" % n, ms(took), "bare pipe: " + ms(peer))
    lh.post(server, "/clear", {})


def cpu(pids):
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for p in pids:
        fields = process.stat(p)
        if fields:
            found[p] = (int(fields[11]) + int(fields[12])) / tick
    return found


def fifty(place, server, stage, n, seconds):
    """n launches, 1,000 lines/s each, a viewer on all of them."""
    lines = 1000 * seconds
    task = stage.task("t-%d-10-10" % lines, lines=0)
    seen, done = {}, threading.Event()

    def view():
        with server.websocket("/api/launch/ws", timeout=120) as ws:
            while not done.is_set():
                m = ws.receive_json()
                if m["type"] == "log":
                    seen[m["launch_id"]] = seen.get(m["launch_id"], 0) + 1
                    if len(seen) == n and all(v == lines for v in seen.values()):
                        done.set()
    thread = threading.Thread(target=view, daemon=True)
    thread.start()
    time.sleep(0.3)
    roles = {"server": server.tree()}
    before = cpu(server.tree())
    began = time.monotonic()
    ids = [lh.launch(server, task) for _ in range(n)]
    time.sleep(seconds * 0.7)
    keepers = lh.keepers()
    keeper_cpu, keeper_kib = cpu(keepers), sum(process.rss_kib(p) for p in keepers)
    server_kib = sum(process.rss_kib(p) for p in server.tree() if p not in keepers)
    for i in ids:
        lh.wait_end(server, i, 300)
    done.wait(180)
    elapsed = time.monotonic() - began
    after = cpu(server.tree())
    lost = 0
    for i in ids:
        with open(os.path.join(lh.folder(place, i), "output"), "rb") as f:
            lost += lines - f.read().count(b"\n")
    used = sum(after[p] - before.get(p, 0) for p in after if p in roles["server"])
    row("%d launches, 1,000 lines/s each, %d s: lines lost on disk" % (n, seconds), lost)
    row("  lines that a viewer of all lacks", n * lines - sum(seen.values()))
    row("  CPU of the server's processes", "%.2f cores" % (used / elapsed))
    row("  CPU of all keepers", "%.2f cores" % (sum(keeper_cpu.values()) / (seconds * 0.7)))
    row("  memory: server, keepers (RSS, shared pages counted each)",
        "%d MiB, %d MiB" % (server_kib >> 10, keeper_kib >> 10))
    lh.post(server, "/clear", {})
    return ids


def broker_restart(server, stage, n):
    stage.task("t-0-0-0-stay", lines=0)
    ids = {lh.launch(server, "t-0-0-0-stay") for _ in range(n)}
    took = []
    for _ in range(3 if QUICK else 10):
        old = server.broker()
        os.kill(old, signal.SIGKILL)
        began = time.monotonic()
        while True:
            try:
                with server.websocket("/api/launch/ws"):
                    pass
                brokers = [p for p in server.role("broker") if p != old]
                if brokers and {x["launch_id"] for x in server.json("/api/launch/status")
                                ["launches"]} >= ids and server.get("/api/launch/models"
                                                                    ).status == 200:
                    break
            except Exception:  # still away
                pass
            time.sleep(0.002)
        took.append(time.monotonic() - began)
        time.sleep(4)  # the master's patience with restarts is bounded
    row("broker killed -> all %d launches known again" % n, ms(took))
    for i in ids:
        lh.post(server, "/cancel", {"launch_id": i})
    for i in ids:
        lh.wait_end(server, i)


def main():
    process.become_subreaper()
    place = harness.Place()
    stage = lh.Stage(place)
    server = None
    try:
        cli = build_writer(place)
        server = harness.Server(place, {"SSEBENCH_CLI": cli, "SSEBENCH_WEBUI_MAX_LAUNCHES": "60"})
        print("%d cores, load %.1f" % (os.cpu_count(), os.getloadavg()[0]))
        row("what", "here", "peer in the same run")
        request_to_execution(place, server, stage, 20 if QUICK else 100)
        line_to_browser(server, stage, 100 if QUICK else 500)
        fifty(place, server, stage, 10 if QUICK else 50, 3 if QUICK else 10)
        broker_restart(server, stage, 10 if QUICK else 50)
    finally:
        if server:
            server.stop()
        for pid in lh.keepers():
            process.wait_for(lambda: not process.alive(pid), 60, "the keepers' end")
        place.close()


main()

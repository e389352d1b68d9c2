#!/usr/bin/python3
"""The assistant: from OpenCode's event to the browser, 20 runs with a stream each, the start.

OpenCode itself takes half a gigabyte a run, so a small program stands in its place; the last
table starts the real one where it is installed (npm ci in tests/e2e/assistant)."""
import json
import os
import socket
import subprocess
import sys
import threading
import time

import figures
from figures import HERE, table

import harness
import process
from harness import Place, Server

RUNS = int(os.environ.get("BENCH_RUNS", "20"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
REAL = os.path.join(harness.TOP, "tests", "e2e", "assistant", "node_modules", "opencode-linux-x64",
                    "bin")


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def with_program(place, folder):
    """Environment in which `opencode` is the fake one (or what else lies there)."""
    bin_dir = os.path.join(place.top, "bin")
    os.makedirs(bin_dir, exist_ok=True)
    if folder is None:
        link = os.path.join(bin_dir, "opencode")
        if not os.path.lexists(link):
            os.symlink(os.path.join(HERE, "fake_opencode.py"), link)
        folder = bin_dir
    return {"PATH": folder + ":" + os.environ["PATH"]}


def run(place, name, rate):
    place.start_run(name, agent_seconds=3600, environment={"FAKE_RATE": str(rate)})
    process.wait_for(lambda: place.live_states().get(name) == "running", what=name)


def healthy(server, name, seconds=60):
    process.wait_for(lambda: server.json("/api/containers/%s/opencode/health" % name)["healthy"],
                     seconds, "the assistant of " + name)


def viewer(server, name, delays):
    ws = server.websocket("/api/containers/%s/opencode/events-ws?sessionId=ses_bench" % name)

    def collect():
        try:
            while True:
                frame = ws.receive_json()
                if frame["type"] == "message.part.delta":
                    delays.append((time.monotonic() - frame["data"]["properties"]["sent"]) * 1e3)
        except Exception:  # noqa: BLE001 - the socket's end
            pass
    threading.Thread(target=collect, daemon=True).start()
    return ws


def direct(port, delays):
    """The same stream without us: what Python and the kernel take."""
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"GET /event HTTP/1.1\r\nHost: x\r\n\r\n")

    def collect():
        try:
            for line in s.makefile("rb"):
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    delays.append((time.monotonic() - event["properties"]["sent"]) * 1e3)
        except OSError:
            pass
    threading.Thread(target=collect, daemon=True).start()
    return s


def port_of(place):
    for folder, _, files in os.walk(os.path.join(place.standin, "runs")):
        if "ports.json" in files:
            with open(os.path.join(folder, "ports.json"), encoding="utf-8") as f:
                return int(next(iter(json.load(f).values())))
    raise SystemExit("no port")


def delay(place, server):
    run(place, "delay-run", 100)
    healthy(server, "delay-run")
    ours, bare = [], []
    ws, s = viewer(server, "delay-run", ours), direct(port_of(place), bare)
    time.sleep(SECONDS)
    rows = [(n, len(d), "%.2f" % percentile(d, 50), "%.2f" % percentile(d, 99),
             "%.2f" % max(d)) for n, d in (("through us, WebSocket", ours), ("direct, SSE", bare))]
    s.close()
    ws.connection.close()
    place.cli("runs", "remove", "delay-run")
    table("OpenCode's event to a client, 100 a second", ("", "events", "p50 ms", "p99 ms",
                                                         "max ms"), rows)


def cpu_ms(pids):
    tick = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            fields = f.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total * 1000 / tick


def many(place, server):
    names = ["many-%d" % i for i in range(RUNS)]
    workers, broker = server.workers(), [server.broker()]
    before = [sum(map(process.rss_kib, pids)) for pids in (workers, broker)]
    for name in names:
        run(place, name, 10)
        healthy(server, name)
    delays = []
    sockets = [viewer(server, name, delays) for name in names]
    time.sleep(2)
    del delays[:]
    used = [cpu_ms(p) for p in (workers, broker)]
    time.sleep(SECONDS)
    used = [(cpu_ms(p) - u) / SECONDS / 10 for p, u in zip((workers, broker), used)]
    after = [sum(map(process.rss_kib, pids)) for pids in (workers, broker)]
    rows = [(n, "%.1f" % (a / 1024), "%.1f" % (b / 1024), "%.2f" % u) for n, b, a, u in
            zip(("workers (2)", "broker"), before, after, used)]
    table("%d runs, a stream each, 10 events a second each: %d events/s, p50 %.2f ms, "
          "p99 %.2f ms" % (RUNS, len(delays) / SECONDS, percentile(delays, 50),
                           percentile(delays, 99)),
          ("", "RSS MB", "before", "CPU %"), rows)
    for s in sockets:
        s.connection.close()


def start_time(place, env, name):
    server = Server(place, env, base_path="")
    try:
        took = []
        for i in range(3):
            run_id = "%s-%d" % (name, i)
            run(place, run_id, 1)
            began = time.monotonic()
            healthy(server, run_id)
            took.append((time.monotonic() - began) * 1e3)
            place.cli("runs", "remove", run_id)
        return "%.0f" % sorted(took)[1]
    finally:
        server.stop()


def bare_start(folder):
    """The real one by hand, to its first answer."""
    home = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    began = time.monotonic()
    p = subprocess.Popen([os.path.join(folder, "opencode"), "serve", "--port", str(port)], cwd=home,
                         env={"HOME": home, "PATH": os.environ["PATH"],
                              "OPENCODE_DISABLE_MODELS_FETCH": "1"},
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def answers():
            import urllib.request
            try:
                return urllib.request.urlopen("http://127.0.0.1:%d/session" % port, timeout=2)
            except OSError:
                return None
        process.wait_for(answers, 60, "OpenCode")
        return "%.0f" % ((time.monotonic() - began) * 1e3)
    finally:
        p.terminate()
        p.wait(20)
        subprocess.run(["rm", "-rf", home], check=False)


def main():
    place = Place()
    try:
        env = with_program(place, None)
        server = Server(place, env, base_path="")
        try:
            delay(place, server)
            many(place, server)
        finally:
            server.stop()
            place.cli("standin-reset")
        rows = [("small stand-in", start_time(place, env, "small"))]
        if os.access(os.path.join(REAL, "opencode"), os.X_OK):
            rows.append(("real OpenCode", start_time(place, with_program(place, REAL), "real")))
            rows.append(("real OpenCode by hand", bare_start(REAL)))
        table("First health to `healthy`, ms", ("", "ms"), rows)
    finally:
        place.close()


if __name__ == "__main__":
    sys.exit(main())

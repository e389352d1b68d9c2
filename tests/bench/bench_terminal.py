#!/usr/bin/python3
"""What a terminal costs: echo, a flood, an interrupt in it, and many that idle; beside node-pty
with ws, and beside a bare pseudo-terminal.

    cd tests/bench && npm ci; SSEBENCH_BUILD=build tests/bench/bench_terminal.py [part ...]
    parts: echo flood interrupt idle
"""
import os
import pty
import socket
import statistics
import struct
import subprocess
import sys
import time

from figures import HERE, table

import harness
import process
from http_client import head
from ws_client import handshake_headers

FLOOD = 100 * 1000 * 1000
ECHOES = 2000
IDLE = int(os.environ.get("BENCH_IDLE", "200"))


class Client:
    """A WebSocket that takes bytes as fast as Python can: frames' heads are all it looks at."""

    def __init__(self, address, path, host):
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(60)
        headers, _ = handshake_headers(host)
        self.sock.sendall(head("GET", path, headers, b""))
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.sock.recv(65536)
        assert b" 101 " in self.buffer[:20], self.buffer
        self.buffer = self.buffer.partition(b"\r\n\r\n")[2]

    def frame(self):
        """One frame's payload, or None at the end."""
        need = 2
        while True:
            if len(self.buffer) >= 2:
                short = self.buffer[1] & 127
                start = 4 if short == 126 else 10 if short == 127 else 2
                if len(self.buffer) >= start:
                    size = short if short < 126 else int.from_bytes(self.buffer[2:start], "big")
                    need = start + size
                    if len(self.buffer) >= need:
                        opcode = self.buffer[0] & 15
                        payload = self.buffer[start:need]
                        self.buffer = self.buffer[need:]
                        return None if opcode == 8 else payload if opcode < 8 else b""
            more = self.sock.recv(max(65536, need - len(self.buffer)))
            if not more:
                return None
            self.buffer += more

    def send(self, data):
        mask = b"\0\0\0\0"
        size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else \
            struct.pack("!BH", 0xfe, len(data))
        self.sock.sendall(b"\x82" + size + mask + data)

    def pong(self):
        """A sign of life, for who does not read and so sees no ping."""
        self.sock.sendall(b"\x8a\x80\0\0\0\0")

    def until(self, mark):
        seen = b""
        while mark not in seen:
            seen = seen[-64:] + self.frame()

    def ready(self):
        """A quiet terminal that echoes nothing but what is asked for."""
        self.send(b"stty -echo; PS1=; echo ready-$((1+1))\n")
        self.until(b"ready-2")

    def close(self):
        self.sock.close()


class Ours:
    name = "ours"

    def __init__(self):
        self.place = harness.Place()
        self.server = harness.Server(self.place)
        self.add_run("bench-0")

    def add_run(self, run_id):
        self.place.start_run(run_id, agent_seconds=600)
        process.wait_for(lambda: [r for r in self.server.runs() if r["id"] == run_id])

    def client(self, run_id="bench-0"):
        return Client(self.server.address, "/api/pty/%s?mode=binary" % run_id, self.server.host)

    def pids(self):
        return [self.server.broker()] + list(self.server.workers())

    def shells(self):
        listed = self.server.json("/api/pty/sessions")["processes"]
        return [entry["pid"] for entry in listed if not entry["ended"]]

    def close(self):
        self.server.stop()
        self.place.close()


class Peer:
    name = "node-pty + ws"

    def __init__(self):
        self.process = subprocess.Popen(["node", os.path.join(HERE, "terminal_peer.mjs")],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def client(self, _=None):
        return Client(("127.0.0.1", self.port), "/", "127.0.0.1:%d" % self.port)

    def pids(self):
        return [self.process.pid]

    def shells(self):
        return process.children(self.process.pid)

    def close(self):
        self.process.terminate()
        self.process.wait()


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def echo_times(send, receive):
    times = []
    for _ in range(ECHOES):
        begun = time.perf_counter()
        send(b"x")
        receive()
        times.append((time.perf_counter() - begun) * 1e6)
    return "%.0f" % percentile(times, 0.5), "%.0f" % percentile(times, 0.99)


def raw_echo():
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", "stty raw -echo; echo ready; exec cat"])
    seen = b""
    while b"ready" not in seen:
        seen += os.read(fd, 4096)
    time.sleep(0.3)
    found = echo_times(lambda b: os.write(fd, b), lambda: os.read(fd, 4096))
    os.close(fd)
    os.waitpid(pid, 0)
    return found


def bench_echo(subjects):
    rows = [("a bare pair, no network",) + raw_echo()]
    for s in subjects:
        c = s.client()
        c.ready()
        c.send(b"stty raw; echo go-$((1+1)); exec cat\n")
        c.until(b"go-2")
        time.sleep(0.3)
        rows.append((s.name,) + echo_times(c.send, c.frame))
        c.close()
    table("echo of a key through raw cat, microseconds", ("", "p50", "p99"), rows)


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            ticks += sum(int(n) for n in f.read().rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def flood(s):
    """MB/s, the server's seconds of processor, bytes of a frame on the average."""
    c = s.client()
    c.ready()
    before, frames = cpu_seconds(s.pids()), 0
    begun, got = time.perf_counter(), 0
    c.send(b"cat %s\n" % FILE.encode())
    while got < FLOOD:
        got += len(c.frame())
        frames += 1
    seconds = time.perf_counter() - begun
    c.close()
    return got / 1e6 / seconds, cpu_seconds(s.pids()) - before, got / frames


def bench_flood(subjects):
    seen = {s.name: [] for s in subjects}
    for _ in range(3):
        for s in subjects:
            seen[s.name].append(flood(s))
    table("cat of 100 MB", ("", "MB/s median", "best", "server's CPU s", "KiB a frame", "RSS MB after"),
          [(s.name, "%.0f" % statistics.median(r[0] for r in seen[s.name]),
            "%.0f" % max(r[0] for r in seen[s.name]), "%.2f" % min(r[1] for r in seen[s.name]),
            "%.1f" % (statistics.median(r[2] for r in seen[s.name]) / 1024),
            "%.1f" % (sum(process.rss_kib(p) for p in s.pids()) / 1024)) for s in subjects])


def bench_interrupt(subjects):
    rows = []
    for s in subjects:
        times, after = [], []
        for _ in range(10):
            c = s.client()
            c.ready()
            c.send(b"yes flooding\n")
            got = 0
            while got < 20_000_000:
                got += len(c.frame())
            begun, got, seen = time.perf_counter(), 0, b""
            c.send(b"\x03")
            c.send(b"echo stopped-$((1+1))\n")
            while b"stopped-2" not in seen:
                part = c.frame()
                got += len(part)
                seen = seen[-32:] + part
            times.append((time.perf_counter() - begun) * 1000)
            after.append(got / 1024)
            c.close()
        rows.append((s.name, "%.1f" % statistics.median(times), "%.1f" % max(times),
                     "%.0f" % statistics.median(after)))
    table("Ctrl-C while yes floods", ("", "median ms", "worst ms", "KiB still shown"), rows)


def pss_kib(pid):
    """Memory of a process, what it shares divided among those that share it."""
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def rings_kib(pid):
    """What the broker keeps of terminals' output, which is in no process's memory."""
    folder, total = "/proc/%d/fd" % pid, 0
    for fd in os.listdir(folder):
        try:
            if "tty-ring" in os.readlink(os.path.join(folder, fd)):
                total += os.stat(os.path.join(folder, fd)).st_blocks // 2
        except FileNotFoundError:
            pass  # closed meanwhile
    return total


def bench_idle(subjects):
    rows = []
    for s in subjects:
        if isinstance(s, Ours):
            for n in range(1, (IDLE + 11) // 12):
                s.add_run("bench-%d" % n)
        before = [process.rss_kib(p) for p in s.pids()]
        clients, told = [], time.monotonic()
        for n in range(IDLE):
            clients.append(s.client("bench-%d" % (n // 12)))
            clients[-1].send(b"echo up-$((1+1))\n")
            clients[-1].until(b"up-2")
            if time.monotonic() - told > 10:
                for c in clients:
                    c.pong()
                told = time.monotonic()
        time.sleep(1)
        grown = [(process.rss_kib(p) - b) / IDLE for p, b in zip(s.pids(), before)]
        shells = [pss_kib(p) for p in s.shells()]
        assert len(shells) == IDLE, len(shells)
        rows.append((s.name, "%.1f" % grown[0], "%.1f" % sum(grown[1:]) if grown[1:] else "-",
                     "%.1f" % (rings_kib(s.pids()[0]) / IDLE), "%.0f" % (sum(shells) / IDLE)))
        for c in clients:
            c.close()
    table("%d idle terminals, KiB each" % IDLE,
          ("", "broker, or the one process", "workers", "kept output", "shell (PSS)"), rows)


PARTS = {"echo": bench_echo, "flood": bench_flood, "interrupt": bench_interrupt,
         "idle": bench_idle}
FILE = "/tmp/ssebench-bench-flood"


def main():
    process.become_subreaper()
    with open(FILE, "wb") as f:
        f.write((b"x" * 79 + b"\n") * (FLOOD // 80))
    subjects = [Ours(), Peer()]
    try:
        for part in sys.argv[1:] or PARTS:
            PARTS[part](subjects)
    finally:
        for s in subjects:
            s.close()
        os.unlink(FILE)


if __name__ == "__main__":
    main()

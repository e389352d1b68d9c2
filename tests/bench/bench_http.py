#!/usr/bin/python3
"""Small answers, page assets, memory and start, beside nginx and Bun."""
import os
import re
import time

import figures
from figures import in_turn, ratio, table
from harness import TOKEN, Place, Server
from peers import Peers

ASSET = 60 * 1000  # bytes, about what the aim speaks of
HEAD = ("", "requests/s", "p50 ms", "p99 ms", "failed", "CPU us each", "ours / it", "CPU: it / ours")
DROP = ("content-length", "content-type", "connection", "date", "server", "transfer-encoding")


def start(place):
    place.knobs(delay=0.3)
    return Server(place, {"SSEBENCH_WEBUI_TOKEN": TOKEN}, base_path="")


def rows_of(found, order):
    best = {n: found[n] for n in order if n in found}
    ours = found["ours"]
    return [(n, "%.0f" % r[0], "%.2f" % r[1], "%.2f" % r[2], "%.0f" % r[3], "%.1f" % r[4],
             ratio(ours[0], r[0]) if n != "ours" else "",
             ratio(r[4], ours[4]) if n != "ours" else "") for n, r in best.items()]


def small_answers(server, bare):
    answer = server.get("/api/health")
    headers = {k: v for k, v in answer.headers if k.lower() not in DROP}
    peers = Peers(answer.text, headers)
    given = ["Authorization: Bearer " + TOKEN]
    subjects = [("ours", server.url + "api/health", given, server.workers()),
                ("ours, no token set", bare.url + "api/health", [], bare.workers())]
    if peers.nginx:
        subjects.append(("nginx return 200", "http://127.0.0.1:%d/health" % peers.nginx, given,
                         peers.nginx_pids()))
    if peers.bun:
        subjects.append(("Bun x2", "http://127.0.0.1:%d/health" % peers.bun, given,
                         peers.bun_pids))
    try:
        found = in_turn(subjects)
    finally:
        peers.close()
    table("GET /api/health, 64 connections, a CLI of 0.3 s (medians of %d)" % figures.ROUNDS,
          HEAD,
          rows_of(found, [s[0] for s in subjects]))


def asset_of(server):
    """The asset of the page that is nearest to 60 kB, as sent without compression."""
    names = set(re.findall(r'(?:src|href)="[./]*(assets/[^"]+)"', server.get("/").text))
    assets = [(n, server.get("/" + n).body) for n in names]
    return min(assets, key=lambda a: abs(len(a[1]) - ASSET))


def assets(server):
    name, body = asset_of(server)
    packed = server.get("/" + name, {"Accept-Encoding": "gzip"})
    peers = Peers("x", {"X-Peer": "1"})
    if not peers.nginx:
        return
    with open(os.path.join(peers.place, "asset.js"), "wb") as f:
        f.write(body)
    with open(os.path.join(peers.place, "asset.js.gz"), "wb") as f:
        f.write(packed.body)
    url = "http://127.0.0.1:%d/asset.js" % peers.nginx
    try:
        for how, given, size in (("plain", [], len(body)),
                                 ("gzip", ["Accept-Encoding: gzip"], len(packed.body))):
            found = in_turn([("ours", server.url + name, given, server.workers()),
                             ("nginx static", url, given, peers.nginx_pids())])
            table("%s, %s, %d bytes" % (name.rpartition("/")[2], how, size),
                  HEAD,
                  rows_of(found, ["ours", "nginx static"]))
    finally:
        peers.close()


def memory_of(pid):
    found = {}
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        for line in f:
            m = re.match(r"(Rss|Pss|Private_Dirty|Private_Clean):\s+(\d+) kB", line)
            if m:
                found[m.group(1)] = int(m.group(2))
    return (found["Rss"], found["Pss"], found["Private_Dirty"] + found["Private_Clean"])


def memory(server, when):
    rows, sums = [], [0, 0, 0]
    tree = {server.pid: "master", server.broker(): "broker"}
    tree.update({w: "worker" for w in server.workers()})
    for pid, name in tree.items():
        sizes = memory_of(pid)
        sums = [a + b for a, b in zip(sums, sizes)]
        rows.append((name,) + tuple("%.1f" % (s / 1024) for s in sizes))
    rows.append(("sum",) + tuple("%.1f" % (s / 1024) for s in sums))
    table("Memory %s, MiB" % when, ("", "RSS", "PSS", "private"), rows)


def start_time(place):
    import socket
    import subprocess
    from harness import SERVER
    from peers import free_port
    seen = []
    for _ in range(10):
        port = free_port()
        env = {**place.env(), "PORT": str(port), "SSEBENCH_WEBUI_TOKEN": TOKEN,
               "SSEBENCH_WEBUI_WORKERS": "2"}
        begin = time.monotonic()
        p = subprocess.Popen([SERVER], env=env, cwd=place.checkout, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as s:
                    s.sendall(b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: "
                              b"Bearer %s\r\n\r\n" % (port, TOKEN.encode()))
                    assert s.recv(4096).startswith(b"HTTP/1.1 200")
                break
            except OSError:
                time.sleep(0.0003)
        seen.append((time.monotonic() - begin) * 1000)
        p.terminate()
        p.wait()
    seen.sort()
    table("From exec to the first answer, ms (10 starts)", ("", "least", "median", "most"),
          [("ours", "%.1f" % seen[0], "%.1f" % seen[5], "%.1f" % seen[-1])])


def main():
    place = Place()
    server = start(place)
    bare = Server(place, base_path="")
    try:
        time.sleep(1)
        server.get("/api/health")
        time.sleep(7)  # nobody looks: the listing rests
        memory(server, "idle")
        small_answers(server, bare)
        assets(server)
        memory(server, "after the load")
        start_time(place)
    finally:
        server.stop()
        bare.stop()
        place.close()


main()

"""The server compiles on Debian 13 with its libraries, and its unit tests pass there."""
import json
import os

import report
from report import case, must, same


def configure(build):
    if not os.path.exists(os.path.join(build, "build.ninja")):
        must(["meson", "setup", build, "/src", "-Dpage=/opt/page"])


def compiles(build):
    configure(build)
    must(["ninja", "-C", build], timeout=900)


def units(build):
    out = os.path.join(build, "meson-logs", "testlog.json")
    try:
        must(["meson", "test", "-C", build, "--no-rebuild"], timeout=900)
    except AssertionError:
        with open(out, encoding="utf-8") as f:
            bad = [json.loads(line) for line in f]
        bad = [t for t in bad if t["result"] not in ("OK", "SKIP")]
        raise AssertionError("; ".join("%s: %s" % (
            t["name"], (t.get("stdout", "") + t.get("stderr", ""))[-500:]) for t in bad)) from None


def serves():
    from harness import Place, Server
    place = Place()
    server = Server(place)
    try:
        page = server.get("/")
        same((page.status, "<base href" in page.text), (200, True), "the page")
        same(server.json("/api/health")["runner"], True, "runner")
        assert len(server.runs()) > 3
        # Every document of a finished run: every call a worker makes to serve them is allowed.
        run = [r for r in server.runs() if r["source"] == "results"][0]["id"]
        for what in ("project", "diff", "files", "agent/dialog", "result"):
            same(server.get("/api/containers/%s/%s" % (run, what)).status, 200, what)
        with server.websocket("/api/containers/%s/logs-ws" % run) as ws:
            assert ws.receive_json()["type"] in ("log", "end")
        same([line for line in server.err if "SIGSYS" in line or "died" in line], [], "log")
        same(server.stop(), 0, "status at the end")
    finally:
        if server.process.poll() is None:
            server.kill()
        place.close()


def cases(build):
    """False: there is no server to go on with."""
    case("debian13: it compiles", compiles, build)
    there = report.failed == 0
    if there:
        case("debian13: unit tests", units, build)
        case("debian13: it serves the page and runs", serves)
    return there

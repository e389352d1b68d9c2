"""Watching a run: real containers, through the real command, as messages and documents."""
import json
import os
import subprocess
import tempfile

from containers import DAEMON, IMAGE
from harness import Place, Server
from process import wait_for
from report import REAL, case, must, real_json, same, skip_all

LIVE = "/api/containers/%s/"
# What a log may hold; what is told to stderr begins with "err". The pauses keep the engine from
# recording the two streams in another order than they were written in.
NOISE = ("printf 'plain\\n\\033[31mred\\033[0m\\n50%%\\r100%%\\nwith CRLF\\r\\n"
         "\\342\\202\\254uro \\360\\237\\230\\200\\n\\n  \\n'; sleep 0.3; echo err one >&2; sleep 0.3; "
         "x=0123456789; while [ ${#x} -lt 100000 ]; do x=$x$x; done; echo $x; "
         "printf 'bad \\377 byte\\n'; "
         "sleep 0.3; echo err two >&2; sleep 0.3; printf 'last, without an end'; exit 4")
PIECE = 16 * 1024


def entry(seq):
    return {"seq": seq, "ts": "2026-01-01T00:00:00Z", "type": "message", "content": "e%d" % seq}


class World:
    def __init__(self, docker):
        self.docker = docker
        self.place = Place(demo=False)
        self.server = Server(self.place, {"SSEBENCH_CLI": REAL})

    def run(self, run_id, *command):
        self.docker.run(run_id, run_id, *command)
        wait_for(lambda: self.state(run_id) == "running", seconds=60, what=run_id)

    def state(self, run_id):
        return {r["id"]: r["status"] for r in self.server.runs()}.get(run_id)

    def says(self, run_id, path, value):
        """The run's daemon answers this from now on."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as f:
            json.dump(value, f)
            f.flush()
            os.chmod(f.name, 0o644)
            must(["docker", "cp", f.name, "%s:/www/%s" % (run_id, path)])

    def leaves(self, run_id, **files):
        """What the run's directory on this host holds."""
        folder = os.path.join(self.place.results, "task-1", "gpt-6.1-sol", "codex", run_id)
        os.makedirs(os.path.join(folder, "archive"))
        for name, text in files.items():
            name = {"dialog": "archive/dialog.jsonl", "patch": "final.patch",
                    "result": "result.json"}[name]
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)

    def stop(self, run_id):
        same(self.server.post(LIVE % run_id + "stop").json(), {"stopped": True}, "stop")

    def close(self):
        self.server.stop()
        self.place.close()


class Viewer:
    def __init__(self, world, run_id, query=""):
        self.ws = world.server.websocket(LIVE % run_id + "sdk-ws" + query, timeout=60)
        self.seqs, self.messages = [], []

    def read(self):
        m = self.ws.receive_json()
        self.messages.append(m)
        if m["type"] == "dialog":
            self.seqs += [e["seq"] for e in m["entries"]]
        return m

    def until(self, kind):
        while self.read()["type"] != kind:
            pass
        return self.messages[-1]

    def until_seq(self, seq):
        while not self.seqs or self.seqs[-1] < seq:
            self.read()
        return self.seqs

    def is_quiet(self, seconds):
        """Nothing comes any more, and the socket is open: it answers a ping."""
        self.ws.connection.sock.settimeout(seconds)
        try:
            raise AssertionError("%r came" % (self.read(),))
        except TimeoutError:
            pass
        self.ws.connection.sock.settimeout(20)
        self.ws.send_frame(9, b"there?")
        same(self.ws.read_frame()[1], 10, "a pong")


def feed(world):
    """From the daemon; then it stops, and the directory has what it did not tell any more."""
    world.run("lab-feed")
    world.says("lab-feed", "agent/dialog", {"entries": [entry(i) for i in range(3)]})
    v = Viewer(world, "lab-feed")
    v.until_seq(2)
    v.until("result")
    kinds = [m["type"] for m in v.messages if m.get("status") != "connecting"]
    same([k for k in kinds if k != "dialog"], ["status", "project", "files", "diff", "result"])
    found = {m["type"]: m for m in v.messages}
    same(found["status"], {"type": "status", "status": "ready", "sdkVersion": "1.1.0"})
    same(found["project"]["data"], DAEMON["project"], "project")
    same((found["files"]["files"], found["diff"]["diff"]), ([], DAEMON["diff"]["diff"]), "changes")
    world.says("lab-feed", "agent/dialog", {"entries": [entry(i) for i in range(5)]})
    same(v.until_seq(4), [0, 1, 2, 3, 4], "each entry once")
    back, late = Viewer(world, "lab-feed", "?since=2"), Viewer(world, "lab-feed")
    same((back.until_seq(4), late.until_seq(4)), ([3, 4], [0, 1, 2, 3, 4]), "who comes later")
    world.leaves("lab-feed", patch="diff --git a/x b/x\n", dialog="".join(
        json.dumps(entry(i)) + "\n" for i in range(7)),
        result='{"patch_result":{"status":"passed"},"runtime_result":{}}')
    must([REAL, "runs", "stop", "lab-feed"])
    for viewer, want in ((v, range(7)), (back, range(3, 7)), (late, range(7))):
        same(viewer.until_seq(6), list(want), "what the files add")
        while not viewer.messages[-1].get("result", {}).get("available"):
            viewer.read()
        same(viewer.messages[-1]["result"]["patch_result"], {"status": "passed"}, "the grade")
        same(viewer.seqs, list(want), "nothing twice")
        viewer.is_quiet(4 if viewer is v else 0.2)
        viewer.ws.__exit__()


def pushed(world):
    """The directory is on this host: what is written there comes from there."""
    world.run("lab-push")
    world.leaves("lab-push", dialog=json.dumps(entry(0)) + "\n")
    path = os.path.join(world.place.results, "task-1/gpt-6.1-sol/codex/lab-push/archive/dialog.jsonl")
    v = Viewer(world, "lab-push")
    v.until_seq(0)
    for seq in range(1, 20):
        with open(path, "a", encoding="utf-8") as f:
            f.write(json.dumps(entry(seq)) + "\n")
        same(v.until_seq(seq), list(range(seq + 1)), "pushed")
    v.ws.__exit__()


def raw_logs(run_id):
    """What the command itself gives, as lines of stdout; stderr's; its status."""
    p = subprocess.run([REAL, "runs", "logs", run_id, "--follow"], capture_output=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    lines = [[w for w in stream.decode("utf-8", "replace").split("\n") if w.strip(" \t\r\v\f")]
             for stream in (p.stdout, p.stderr)]
    return lines[0], lines[1], p.returncode


def logs(world):
    """The command's own output is the measure: whether it keeps a carriage return before a
    newline is its affair, and ours is the same."""
    world.docker.run("lab-noise", "lab-noise", NOISE)
    wait_for(lambda: world.state("lab-noise") == "exited", seconds=60, what="it is over")
    out, err, status = raw_logs("lab-noise")
    got = []
    with world.server.websocket(LIVE % "lab-noise" + "logs-ws") as ws:
        while not got or got[-1]["type"] == "log":
            got.append(ws.receive_json())
    same(got.pop(), {"type": "end", "data": {"exitCode": status}}, "the end")
    lines = [m["data"] for m in got]
    same(sorted(w for w in lines if w.startswith("err")),
         sorted(w for w in out + err if w.startswith("err")), "stderr")
    lines = [w for w in lines if not w.startswith("err")]
    want = [w for w in out + err if not w.startswith("err")]
    same(max(len(w.encode()) for w in lines) <= PIECE, True, "pieces are bounded")
    same("".join(lines), "".join(want), "all of it, in order")
    same([w for w in want if len(w.encode()) <= PIECE and w not in lines], [], "whole lines")
    assert any("\033[31mred\033[0m" in w for w in want), want
    assert any("\u20acuro \U0001f600" in w for w in want), want
    print("     the command gives %r for CRLF, %r for a carriage return inside a line" % (
        [w for w in want if "CRLF" in w], [w for w in want if "100%" in w]), flush=True)


def followed(world):
    """While it goes on: lines as they come, and the end with its container."""
    world.run("lab-follow", "echo one; while [ ! -e /tmp/go ]; do sleep 0.1; done; "
                            "printf half; sleep 0.3; echo ' and half'; exit 3")
    with world.server.websocket(LIVE % "lab-follow" + "logs-ws", timeout=60) as ws:
        same(ws.receive_json(), {"type": "log", "data": "one"})
        must(["docker", "exec", "lab-follow", "sh", "-c", "echo > /tmp/go"])
        same(ws.receive_json(), {"type": "log", "data": "half and half"})
        same(ws.receive_json(), {"type": "end", "data": {"exitCode": raw_logs("lab-follow")[2]}})


def documents(world):
    world.run("lab-docs")
    base = LIVE % "lab-docs"
    url = real_json("runs", "endpoint", "lab-docs", "4263", "--json")["url"]
    wait_for(lambda: world.server.json(base + "sdk/health")["healthy"], what="httpd")
    same(world.server.json(base + "sdk/health"), {"healthy": True, "sdkUrl": url}, "health")
    same(world.server.json(base + "sdk/version"), DAEMON["version"], "version")
    for what in ("project", "diff", "files", "agent/dialog", "agent/dialog?since=1", "result"):
        same(world.server.json(base + what), DAEMON[what.partition("?")[0]], what)
    world.says("lab-docs", "diff", "no object")
    same(world.server.get(base + "diff").status, 500, "rubbish")


def moved(world):
    """Stopped and started again it has another address: the one before is forgotten."""
    world.run("lab-moved")
    base = LIVE % "lab-moved"
    before = real_json("runs", "endpoint", "lab-moved", "4263", "--json")["url"]
    wait_for(lambda: world.server.json(base + "sdk/health")["healthy"], what="httpd")
    same(world.server.json(base + "sdk/health")["sdkUrl"], before, "health")
    world.stop("lab-moved")
    wait_for(lambda: world.state("lab-moved") == "exited", what="it is over")
    same(world.server.get(base + "project").status, 404, "over")
    same(world.server.json(base + "sdk/health").get("healthy"), False, "health of one that is over")
    must(["docker", "run", "--detach", IMAGE, "sleep", "300"])  # it takes the address
    must(["docker", "start", "lab-moved"])
    wait_for(lambda: world.state("lab-moved") == "running", what="it goes on")
    after = real_json("runs", "endpoint", "lab-moved", "4263", "--json")["url"]
    assert after != before, after
    wait_for(lambda: world.server.json(base + "sdk/health")["healthy"], seconds=20, what="httpd")
    same(world.server.json(base + "sdk/health")["sdkUrl"], after, "the new address")
    same(world.server.json(base + "project"), DAEMON["project"], "project")


def cases(docker):
    names = {"live: the feed, from the daemon to the files": feed,
             "live: the feed of a directory on this host": pushed,
             "live: a log as the command gives it": logs,
             "live: a log that is followed": followed,
             "live: the documents": documents,
             "live: another address after a stop": moved}
    if docker.why:
        skip_all(names, docker.why)
        return
    docker.clear()
    world = World(docker)
    try:
        for name, check in names.items():
            case(name, check, world)
    finally:
        world.close()

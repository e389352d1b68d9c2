"""Live runs: containers with the command's labels, seen by the real command and by our server."""
import json
import os
import shutil
import subprocess
import time

from harness import Place, Server
from report import REAL, Skip, call, case, must, real, real_json, same, skip_all

IMAGE = "lab/run:1"
DAEMON = {"version": {"version": "1.1.0"}, "project": {"id": "task-1", "project": "p", "language": "c",
          "source": "/src", "task_description": {"issue": "x"}, "poc": []},
          "diff": {"diff": "diff --git a/x b/x\n"}, "files": {"files": []},
          "agent/dialog": {"entries": []}, "result": {"available": False}}
ENTRY = ("trap 'echo bye; exit 3' TERM; echo out; echo err >&2; "
         "printf 'a line without end and \\303\\274\\n'; httpd -p 4263 -h /www; "
         "while :; do sleep 0.2; done")


class Docker:
    """A dockerd of our own, with images from scratch. `why` says why there is none."""

    def __init__(self):
        self.process, self.why = None, None

    def __enter__(self):
        self.start()
        if self.why is None:
            self.clear()
            self.make_image()
        return self

    def start(self):
        with open("/var/lab/dockerd.log", "wb") as log:
            self.process = subprocess.Popen(
                ["dockerd", "--data-root", "/var/lab/docker", "--exec-root", "/run/docker",
                 "--pidfile", "/run/docker.pid"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until = time.monotonic() + 40
        while call(["docker", "version"])[0] != 0:
            if self.process.poll() is not None or time.monotonic() > until:
                with open("/var/lab/dockerd.log", encoding="utf-8", errors="replace") as log:
                    self.why = "dockerd does not start here: " + log.read()[-300:]
                return
            time.sleep(0.2)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def clear(self):
        ids = must(["docker", "ps", "--all", "--quiet"]).split()
        if ids:
            must(["docker", "rm", "--force", *ids])

    def make_image(self):
        """FROM scratch: a static busybox, and a daemon that answers from files."""
        place = "/tmp/image"
        shutil.rmtree(place, ignore_errors=True) # of an engine before this one
        for folder in ("bin", "tmp", "www", "etc"):
            os.makedirs(os.path.join(place, folder))
        must(["cp", "/usr/bin/busybox", place + "/bin/busybox"])
        for name in ("sh", "httpd", "sleep", "printf", "echo", "env", "cat", "id", "pwd"):
            os.symlink("busybox", os.path.join(place, "bin", name))
        with open(place + "/etc/passwd", "w", encoding="utf-8") as f:
            f.write("root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/tmp:/bin/sh\n")
        for name, value in DAEMON.items():
            path = os.path.join(place, "www", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(value, f)
        tar = subprocess.Popen(["tar", "-C", place, "-c", "."], stdout=subprocess.PIPE)
        p = subprocess.run(["docker", "import", "--change", "ENV PATH=/bin", "-", IMAGE],
                           stdin=tar.stdout, capture_output=True, timeout=60)
        tar.wait()
        if p.returncode != 0:
            self.why = "docker import: " + p.stderr.decode("utf-8", "replace")

    def run(self, run_id, name, command=ENTRY, **labels):
        """Contract 1.5: what `ssebench run --keep-container` puts on a container."""
        given = {"ssebench.webui": "true", "ssebench.run-id": run_id,
                 "ssebench.task-id": "task-1", "ssebench.model": "gpt-6.1-sol",
                 "ssebench.agent": "codex", "ssebench.results": "/srv/results/" + run_id,
                 "unrelated": "x", **{"ssebench." + k.replace("_", "-"): v for k, v in labels.items()}}
        options = [o for k, v in given.items() if v is not None for o in ("--label", k + "=" + v)]
        must(["docker", "run", "--detach", "--name", name, "--env", "SSE_API_KEY=sk-never",
              *options, IMAGE, "sh", "-c", command])

    def __exit__(self, *_):
        if self.process is not None and self.why is None:
            self.clear()
        self.stop()


class World:
    def __init__(self, docker):
        self.docker = docker
        self.place = Place(demo=False)
        docker.run("lab-run", "first")
        docker.run("lab-done", "second", "echo over; exit 4", model="openrouter/meta/llama-4")
        docker.run("lab-ref", "third", model="none", agent="reference", reference_run="true")
        docker.run("lab-bare", "fourth", task_id=None, model=None, agent=None, results=None)
        docker.run("lab-twice", "twin-1")
        docker.run("lab-twice", "twin-2")
        docker.run("lab-hidden", "fifth", webui=None)
        must(["docker", "create", "--name", "sixth", "--label", "ssebench.webui=true",
              "--label", "ssebench.run-id=lab-created", IMAGE, "sh"])
        must(["docker", "run", "--detach", "--label", "ssebench.webui=true", IMAGE, "sleep", "99"])
        docker.run("lab-paused", "seventh")
        must(["docker", "pause", "seventh"])
        time.sleep(1)
        self.server = Server(self.place, {"SSEBENCH_CLI": REAL})

    def close(self):
        call(["docker", "unpause", "seventh"])
        self.server.stop()
        self.place.close()

    def real_runs(self):
        return real_json("runs", "list", "--json")["runs"]

    def ours(self):
        # Until the answer is as new as what we compare with.
        self.server.runs()
        time.sleep(2.5)
        return self.server.runs()


def unknown(text):
    return "unknown" if text is None else text


def as_ours(run):
    return {"id": run["run_id"], "runId": run["run_id"], "name": run["name"],
            "taskId": unknown(run["task"]), "model": unknown(run["model"]),
            "agent": unknown(run["agent"]), "referenceRun": run["reference_run"],
            "status": run["state"], "image": run["image"],
            "createdAt": run["created_at"] or "", "source": "container"}


def lists(world):
    want, seen = [], set()
    for run in world.real_runs():
        if run["run_id"] not in seen:
            want.append(as_ours(run))
        seen.add(run["run_id"])
    got = [{k: r[k] for k in want[0]} for r in world.ours()]
    same(got, want, "live runs")
    assert {"lab-done", "lab-created", "lab-paused"} <= seen, seen
    for run in want:
        one = world.server.json("/api/containers/" + run["id"])["container"]
        same({k: one[k] for k in run}, run, run["id"])


def no_secret(world):
    assert "sk-never" not in must([REAL, "runs", "list", "--json"])
    assert "sk-never" not in world.server.get("/api/containers").text


def logs(world):
    for run_id in ("lab-run", "lab-done"):
        want = must([REAL, "runs", "logs", run_id]).splitlines()
        got = []
        with world.server.websocket("/api/containers/%s/logs-ws" % run_id) as ws:
            while len(got) < len(want):
                frame = ws.receive_json()
                if frame["type"] != "log":
                    break
                got += [frame["data"]]
            if run_id == "lab-done":
                same(ws.receive_json(), {"type": "end", "data": {"exitCode": 0}}, "the end")
        same(got, want, run_id)


def daemon(world):
    """Through `runs endpoint` to the container's own address."""
    url = real_json("runs", "endpoint", "lab-run", "4263", "--json")["url"]
    same(url.startswith("http://172."), True, url)
    answer = world.server.get("/api/containers/lab-run/project")
    if answer.status == 404 or answer.status == 503:
        raise Skip("live documents answer %d: %s" % (answer.status, answer.text[:200]))
    same((answer.status, answer.json()), (200, DAEMON["project"]), "project")
    for what in ("diff", "files", "agent/dialog", "result"):
        same(world.server.json("/api/containers/lab-run/" + what), DAEMON[what], what)


def stop_and_remove(world):
    server = world.server
    same(server.post("/api/containers/lab-run/stop").json(), {"stopped": True}, "stop")
    states = {r["run_id"]: (r["state"], r["exit_code"]) for r in world.real_runs()}
    same(states["lab-run"], ("exited", 3), "after stop")
    same(server.post("/api/containers/lab-run/stop").json(), {"stopped": True}, "stop again")
    same(server.post("/api/containers/lab-run/remove").json(), {"removed": True}, "remove")
    assert "lab-run" not in [r["run_id"] for r in world.real_runs()]
    same(server.post("/api/containers/lab-run/remove").json(), {"removed": True}, "again")
    same(server.post("/api/containers/lab-run/stop").json(), {"stopped": True}, "stop, gone")


def ambiguous(world):
    same(real("runs", "stop", "lab-twice")[0], 4, "the command")
    for verb in ("stop", "remove"):
        answer = world.server.post("/api/containers/lab-twice/" + verb)
        same((answer.status, answer.json()["error"]),
             (409, "More than one run has this ID"), verb)
    same([r["state"] for r in world.real_runs() if r["run_id"] == "lab-twice"], ["running"] * 2)


def daemon_away(world):
    """Docker stops: the last known runs and what is wrong; then it is back."""
    world.docker.stop()
    status, out, err = real("runs", "list", "--json")
    same((status, out), (1, ""), "the command")
    world.server.runs()
    time.sleep(3)
    answer = world.server.json("/api/containers")
    assert answer.get("runnerError"), answer
    for _ in range(20):  # every worker has looked within its 1.5 s
        health = world.server.json("/api/health")
        if not health["runner"]:
            break
        time.sleep(0.2)
    same((health["runner"], health["docker"]), (False, False), "health")


def back_again(world):
    world.docker.start()
    if world.docker.why:
        raise AssertionError(world.docker.why)
    for _ in range(20):
        if "runnerError" not in world.server.json("/api/containers"):
            break
        time.sleep(0.5)
    lists(world)


def cases(docker):
    names = {"docker: our list and the real command, field by field": lists,
             "docker: no environment in any list": no_secret, "docker: logs": logs,
             "docker: a live run's daemon": daemon, "docker: two runs with one ID": ambiguous,
             "docker: stop and remove": stop_and_remove,
             "docker: the daemon is away": daemon_away,
             "docker: the daemon is back": back_again}
    if docker.why:
        skip_all(names, docker.why)
        return
    world = World(docker)
    try:
        for name, check in names.items():
            case(name, check, world)
    finally:
        world.close()

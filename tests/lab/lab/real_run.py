"""The real `ssebench run --agent reference`, launched through our server, to its recorded grade.

Offline: `docker compose` and the proxy's health are stubs, and the two images are ours, under the
names that the command asks for. What each lacks is tried first: there the command says no."""
import http.server
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import harness
import launch_help as lh
import process
from report import REAL, call, case, must, real_json, same

TASK = "tinyjson-overflow-12"
REGISTRY = "ghcr.io/42-b3yond-6ug/ssebench"
AGENT = "%s/agent-reference/%s:1.1.0" % (REGISTRY, TASK)
SIDECAR = [REGISTRY + "/agent-reference/sidecar:1.1.0",
           "%s/tool-sidecar/%s:1.1.0" % (REGISTRY, TASK)]
PROXY = REGISTRY + "/litellm:1.1.0"
SECRETS = {"LITELLM_MASTER_KEY": "sk-lab", "POSTGRES_PASSWORD": "lab"}
LABEL = "from ssebench import stack; print(stack.config_hash())"
GRADE = {"patch_result": {"build_success": True, "pov_passed": 2, "pov_total": 2,
                          "func_test_success": True, "intent_test_success": True},
         "runtime_result": {"agent_duration": 1, "agent_timeout": False,
                            "evaluator_timeout": False, "agent_exit_code": 0}}
# What the images' own entrypoints do, as far as anybody outside sees it. Of a pair only the task's
# container has SSE_KEEP_ALIVE, only the agent's has SSE_MODEL_NAME.
ENTRY = """#!/bin/sh
trap 'echo stopped; exit 143' TERM
if [ -n "$SSE_MODEL_NAME" ]; then
    echo "reference run of $SSE_MODEL_NAME, keep $SSE_KEEP_ALIVE, timeout $TIMEOUT"
    cat /reference/patch.diff >"$SSE_ARCHIVE/applied.diff" && echo "[reference] Applied"
    cat /grade.json >/var/lib/ssebench/results/result.json
    [ -n "$SSE_KEEP_ALIVE" ] || { sleep 4; exit 0; }
fi
httpd -p 4263 -h /www
while :; do sleep 0.2; done
"""
# `docker compose up` makes the networks; all else of it is the proxy, which the stub answers for.
COMPOSE = """#!/bin/sh
if [ "$1" = docker-cli-plugin-metadata ]; then
    echo '{"SchemaVersion":"0.1.0","Vendor":"lab","Version":"0"}'
    exit 0
fi
echo "compose: $*" >&2
for name in ssebench_default ssebench_agents; do
    docker network inspect "$name" >/dev/null 2>&1 || docker network create "$name" >/dev/null
done
"""
# The command, but for a listing that never shows a run.
BLIND = """#!/bin/sh
[ "$1 $2" = "runs list" ] && echo '{"runs": []}' && exit 0
exec %s "$@"
""" % REAL


class Proxy:
    """The proxy's health at its port: 503 until it is well."""

    def __init__(self):
        self.well, self.asked = True, 0
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                proxy.asked += 1
                self.send_response(200 if proxy.well else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 4000), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def make_image(folder, name, *changes):
    options = [o for c in changes for o in ("--change", c)]
    tar = subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE)
    must(["docker", "import", *options, "-", name], stdin=tar.stdout)
    same(tar.wait(), 0, "tar")


class World:
    def __init__(self, docker):
        self.docker = docker
        self.place = harness.Place()
        self.plugin = os.path.join(self.place.home, ".docker", "cli-plugins", "docker-compose")
        self.proxy, self.server = Proxy(), None
        for image in (AGENT, PROXY, *SIDECAR):
            call(["docker", "image", "rm", "--force", image])
        call(["docker", "volume", "prune", "--all", "--force"])

    def start(self, **env):
        self.stop()
        self.server = harness.Server(self.place, {"SSEBENCH_CLI": REAL, "SSEBENCH_PREBUILT": "1",
                                                  **env})
        return self.server

    def stop(self):
        if self.server is not None:
            self.server.stop()
            self.server = None

    def close(self):
        self.stop()
        self.proxy.close()
        self.docker.clear()
        for name in ("ssebench_default", "ssebench_agents"):
            call(["docker", "network", "rm", name])
        self.place.close()

    def launch(self, mode="sandbox"):
        body = {"task": TASK, "agent": "reference", "mode": mode, "source": "local"}
        r = lh.post(self.server, "", body)
        same(r.status, 200, "launch: " + r.text)
        return r.json()["launch_id"]

    def refused(self, why):
        """A launch that ends with the command's own words."""
        launch_id = self.launch()
        ended = lh.wait_end(self.server, launch_id, 120)
        lines = lh.logs(self.server, launch_id)
        same(ended["exitCode"], 1, "status: %r" % lines[-4:])
        assert [line for line in lines if why in line], lines
        lh.wait_status(self.server, launch_id, "failed", 60)

    def proxy_image(self):
        label = must(["/opt/ssebench/bin/python", "-c", LABEL], cwd=self.place.checkout).strip()
        folder = os.path.join(self.place.top, "proxy")
        write(os.path.join(folder, "empty"), "")
        make_image(folder, PROXY, "LABEL ssebench.litellm-config=" + label)

    def agent_image(self):
        folder = os.path.join(self.place.top, "agent")
        shutil.copytree("/tmp/image", folder, symlinks=True)
        task = os.path.join(self.place.checkout, "datasets", "pilot", TASK, "sse")
        shutil.copytree(task, os.path.join(folder, "ssebench"))
        write(os.path.join(folder, "grade.json"), json.dumps(GRADE))
        write(os.path.join(folder, "entrypoint"), ENTRY, 0o755)
        for image in (AGENT, *SIDECAR):
            make_image(folder, image, "ENV PATH=/bin", 'ENTRYPOINT ["/entrypoint"]')


def no_secrets(world):
    world.start()
    world.refused("LITELLM_MASTER_KEY is not set. Run `ssebench init`")


def no_proxy_image(world):
    world.start(**SECRETS)
    world.refused("Could not start the LiteLLM proxy: Command '['docker', 'buildx', 'build'")


def no_compose(world):
    world.proxy_image()
    world.refused("Could not start the LiteLLM proxy: Command '['docker', 'compose'")


def no_agent_image(world):
    write(world.plugin, COMPOSE, 0o755)
    world.refused("The prebuilt image %s is not in the registry or on this machine: " % AGENT)


def results_of(world, launch_id):
    return os.path.join(world.place.results, TASK, "none", "reference", launch_id)


def whole_run(world):
    world.agent_image()
    world.proxy.well = False
    launch_id = world.launch()
    # The command waits for its proxy: nothing is listed yet.
    process.wait_for(lambda: world.proxy.asked or None, 60, "the proxy is asked")
    same(lh.status(world.server, launch_id)["status"], "launching", "status")
    world.proxy.well = True
    running = lh.wait_status(world.server, launch_id, "running", 120)
    same(running["containerId"], launch_id, "the run's ID")
    labels = real_json("runs", "inspect", launch_id, "--json")["labels"]
    same({k: v for k, v in labels.items() if k.startswith("ssebench.")}, {
        "ssebench.agent": "reference", "ssebench.model": "none",
        "ssebench.reference-run": "true", "ssebench.results": results_of(world, launch_id),
        "ssebench.run-id": launch_id, "ssebench.task-id": TASK, "ssebench.webui": "true"}, "labels")
    same(world.server.json("/api/containers/%s/project" % launch_id)["id"], "task-1", "its daemon")
    same([r["status"] for r in world.server.runs() if r["id"] == launch_id], ["running"], "list")
    same(world.server.post("/api/containers/%s/stop" % launch_id).status, 200, "stop")
    ended = lh.wait_end(world.server, launch_id, 60)
    lines = lh.logs(world.server, launch_id)
    same((ended["status"], ended["exitCode"]), ("running", 0), "the end: %r" % lines[-5:])
    for wanted in ("reference run of none, keep 1, timeout 3600", "[reference] Applied", "stopped",
                   "Grade: passed", "Run directory: " + results_of(world, launch_id)):
        assert wanted in lines, (wanted, lines)
    with open(os.path.join(results_of(world, launch_id), "summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    same((summary["run_id"], summary["patch_result"]["status"], summary["config"]["reference_run"]),
         (launch_id, "passed", True), "summary.json")
    result = world.server.json("/api/containers/%s/result" % launch_id)
    assert result["available"], result
    same(world.server.post("/api/containers/%s/remove" % launch_id).status, 200, "remove")
    process.wait_for(lambda: [r["source"] for r in world.server.runs() if r["id"] == launch_id] ==
                     ["results"] or None, 20, "its results alone are left")


def pair(world):
    """Sidecar mode: the command ends with the agent, the task's container stays and is the run."""
    launch_id = world.launch("sidecar")
    ended = lh.wait_end(world.server, launch_id, 120)
    lines = lh.logs(world.server, launch_id)
    same(ended["exitCode"], 0, "the end: %r" % lines[-6:])
    same(lh.wait_status(world.server, launch_id, "running", 60)["containerId"], launch_id, "ID")
    for wanted in ("reference run of none, keep , timeout 3600", "[reference] Applied",
                   "Grade: passed"):
        assert wanted in lines, (wanted, lines)
    same(listed(launch_id), ["running"], "the command's list")
    for verb, left in (("stop", ["exited"]), ("remove", [])):
        same(world.server.post("/api/containers/%s/%s" % (launch_id, verb)).status, 200, verb)
        same(listed(launch_id), left, verb)
    # The command's own leavings: its `runs remove` knows the labelled container alone.
    same(must(["docker", "ps", "--all", "--format", "{{.Image}} {{.State}}"]),
         SIDECAR[0] + " exited\n", "the agent's container")
    volumes = must(["docker", "volume", "ls", "--quiet"]).split()
    same(sorted(v.rpartition("-")[2] for v in volumes), ["sockets", "source"], "volumes")
    world.docker.clear()
    must(["docker", "volume", "rm", *volumes])


def listed(launch_id):
    return [r["state"] for r in real_json("runs", "list", "--json")["runs"]
            if r["run_id"] == launch_id]


def cancel(world, launch_id, code):
    before = time.monotonic()
    r = lh.post(world.server, "/cancel", {"launch_id": launch_id})
    same(r.json(), {"cancelled": True}, "cancel")
    ended = lh.wait_end(world.server, launch_id, 60)
    assert time.monotonic() - before < 10, time.monotonic() - before
    same((ended["status"], ended["error"], ended["exitCode"]),
         ("failed", "Cancelled by user", code), "the end")
    process.wait_for(lambda: lh.keepers() == [] or None, 20, "no keeper is left")


def cancel_waiting(world):
    """While the command waits for its proxy it takes SIGTERM as any program: no word, no run."""
    world.proxy.well, world.proxy.asked = False, 0
    launch_id = world.launch()
    process.wait_for(lambda: world.proxy.asked or None, 60, "the proxy is asked")
    cancel(world, launch_id, 143)
    world.proxy.well = True
    same((listed(launch_id), os.path.exists(results_of(world, launch_id))), ([], False), "a run")


def pulling():
    return [p for p in process.descendants(os.getpid()) if process.alive(p) and
            process.command(p)[:2] == ["docker", "pull"]]


def cancel_pulling(world):
    """While it pulls: the command dies at once and leaves `docker pull` to its group's SIGTERM."""
    mute = socket.create_server(("127.0.0.1", 5009))
    try:
        world.start(**SECRETS, SSEBENCH_REGISTRY="127.0.0.1:5009/lab")
        must(["docker", "tag", PROXY, "127.0.0.1:5009/lab/litellm:1.1.0"])
        launch_id = world.launch()
        process.wait_for(lambda: pulling() or None, 60, "docker pull")
        cancel(world, launch_id, 143)
        same((pulling(), listed(launch_id)), ([], []), "docker pull, runs")
    finally:
        mute.close()


def cancel_started(world):
    """Its container runs, but no listing says so yet: the command stops the container and records
    what there is. It was told to keep it."""
    blind = os.path.join(world.place.top, "blind")
    write(blind, BLIND, 0o755)
    world.start(**SECRETS, SSEBENCH_CLI=blind)
    launch_id = world.launch()
    result = os.path.join(results_of(world, launch_id), "result.json")
    process.wait_for(lambda: os.path.exists(result) and os.path.getsize(result) or None, 60,
                     "the grade")
    same(lh.status(world.server, launch_id)["status"], "launching", "status")
    cancel(world, launch_id, 0)
    lines = lh.logs(world.server, launch_id)
    for wanted in ("WARNING:ssebench.runner.lifecycle:Received SIGTERM; stopping the container, "
                   "then recording the run", "stopped", "Grade: passed"):
        assert lines.count(wanted) == 1, (wanted, lines)
    same(listed(launch_id), ["exited"], "the kept container")


CASES = [("without the proxy's keys", no_secrets), ("without the proxy's image", no_proxy_image),
         ("without docker compose", no_compose), ("without the task's image", no_agent_image),
         ("launching, running, stopped, graded", whole_run),
         ("sidecar, graded, stopped, removed", pair),
         ("cancel while it waits for the proxy", cancel_waiting),
         ("cancel while it pulls", cancel_pulling),
         ("cancel while its container runs, unlisted", cancel_started)]


def cases(docker):
    if docker.why:
        for name, _ in CASES:
            print("SKIP real run: %s: %s" % (name, " ".join(docker.why.split())), flush=True)
        return
    docker.clear()
    world = World(docker)
    try:
        for name, check in CASES:
            case("real run: " + name, check, world)
    finally:
        world.close()

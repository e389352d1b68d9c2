"""The container image: built by its Containerfile from the release's tarball on a base made of the
lab's own folder, then run as documented: ordinary user, read-only root, host network, the socket."""
import hashlib
import os
import signal
import subprocess
import tarfile

import harness
import process
import report
from http_client import Closed
from package_cases import RELEASE, release_file
from report import REAL, Skip, call, case, must, real, real_json, same
from screen import Screen

BASE, IMAGE, NAME = "lab/debian:13", "lab/webui", "webui"
PORT = 3998
# Not needed in it, or not small.
LEAVE_OUT = ("var/lab/*", "var/lib/apt/lists/*", "var/cache/*", "usr/share/doc/*", "usr/share/man/*",
             "usr/share/locale/*", "usr/sbin/dockerd", "usr/bin/containerd*", "usr/bin/ctr",
             "usr/lib/x86_64-linux-gnu/perl*", "usr/share/perl*", "usr/lib/git-core/*")
BASH = "#!/bin/sh\nexec /bin/sh -i\n"


class Container(harness.Server):
    """The server in its container, asked like any other."""

    def __init__(self):  # nothing is started by the harness
        self.base, self.token, self.host = "", None, "127.0.0.1:%d" % PORT
        self.address = ("127.0.0.1", PORT)

    def main(self):
        return int(must(["docker", "inspect", "-f", "{{.State.Pid}}", NAME]))


def make_base():
    """The lab's folder as an image; once for each state of its packages."""
    with open("/var/lib/dpkg/status", "rb") as f:
        of = hashlib.sha256(f.read()).hexdigest()[:20]
    if call(["docker", "inspect", "-f", "{{.Config.Labels.of}}", BASE])[1].strip() == of:
        return
    tar = subprocess.Popen(["tar", "-C", "/", "--one-file-system", "-c", "--anchored",
                            *["--exclude=./" + name for name in LEAVE_OUT], "."],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    must(["docker", "import", "--change", "LABEL of=" + of, "--change",
          "ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin", "-", BASE], stdin=tar.stdout, timeout=300)
    tar.stdout.close()
    tar.wait()


def builds(_):
    if not os.path.exists(RELEASE):
        raise Skip("no tarball: this tree is no git repository")
    make_base()
    with tarfile.open(RELEASE) as tar:
        tar.extractall("/tmp/context", filter="data")
    context = "/tmp/context/" + os.listdir("/tmp/context")[0]
    # There is no network: what the base has already needs none.
    must(["docker", "build", "--network", "none", "-f", context + "/deploy/container/Containerfile",
          "--build-arg", "BASE=" + BASE, "--build-arg", "NODE=", "-t", IMAGE, context],
         timeout=900, env={"DOCKER_BUILDKIT": "0"})


def runs(_):
    """Another command than in the tree: the one that the image's own base holds."""
    must(["docker", "run", "--detach", "--name", NAME, "--network", "host", "--read-only",
          "--tmpfs", "/tmp", "--group-add", str(os.stat("/var/run/docker.sock").st_gid),
          "-v", "/var/run/docker.sock:/var/run/docker.sock", "--health-interval", "1s",
          "-e", "PORT=%d" % PORT, "-e", "SSEBENCH_CLI=" + REAL,
          # Its client comes from outside, from another account than 10001: root, who is always let in.
          IMAGE])
    server = Container()
    try:
        process.wait_for(lambda: must(["docker", "inspect", "-f", "{{.State.Health.Status}}", NAME])
                         .strip() == "healthy", 60, "the health check")
    except AssertionError as wrong:
        raise AssertionError("%s: %s" % (wrong, call(["docker", "logs", NAME]))) from None
    page = server.get("/").body
    same(page.split(b"<script")[-1],
         release_file("worker/web/page/index.html").split(b"<script")[-1], "the page")
    family = [server.main()] + process.descendants(server.main())
    assert len(family) >= 4, family
    for pid in family:
        s = process.status(pid)
        if "ssebench-webui" in " ".join(process.command(pid)):
            same((s["Uid"].split()[0] != "0", s["CapEff"].strip("0")), (True, ""), s["Name"])
    assert call(["docker", "exec", NAME, "touch", "/usr/x"])[0] != 0, "the root can be written"
    try:
        process.wait_for(lambda: server.json("/api/health")["runner"], 60, "the command works")
    except AssertionError:
        raise AssertionError(server.json("/api/health")) from None
    same(server.json("/api/health")["terminal"], True, "terminal")


def lists(_):
    server = Container()
    want = {r["run_id"]: r["state"] for r in real_json("runs", "list", "--json")["runs"]}
    process.wait_for(lambda: {r["id"]: r["status"] for r in server.runs()} == want,
                     what="the command's own list")
    assert want["lab-run"] == "running"


def logs(_):
    want = must([REAL, "runs", "logs", "lab-run"]).splitlines()
    assert "out" in want, want
    with Container().websocket("/api/containers/lab-run/logs-ws") as ws:
        got = [ws.receive_json()["data"] for _ in want]
    same(got, want, "logs")


def terminal(_):
    path = "/tmp/bash"
    with open(path, "w", encoding="ascii") as f:
        f.write(BASH)
    os.chmod(path, 0o755)
    must(["docker", "cp", path, "first:/bin/bash"])
    server = Container()
    s = Screen(server, "/api/pty/lab-run?cols=90&rows=20")
    s.type("echo in-$((6*7))\r")
    s.shows("in-42")
    s.type("exit 5\r")
    s.to_end()
    same(s.closed[0], 1000, "closed")
    process.wait_for(lambda: not server.json("/api/pty/sessions")["processes"], what="no terminal left")


def stop_and_remove(_):
    server = Container()
    same(server.post("/api/containers/lab-run/stop").json(), {"stopped": True}, "stop")
    same([(r["state"], r["exit_code"]) for r in real_json("runs", "list", "--json")["runs"]
          if r["run_id"] == "lab-run"], [("exited", 3)], "after stop")
    same(server.post("/api/containers/lab-run/remove").json(), {"removed": True}, "remove")
    same(real("runs", "inspect", "lab-run", "--json")[0] != 0, True, "after remove")


def reaps(_):
    """Orphans of whoever become children of process 1, which is our master."""
    main = Container().main()
    same(process.command(main)[0], "/usr/bin/ssebench-webui", "process 1")
    must(["docker", "exec", NAME, "sh", "-c",
          "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 900 >/dev/null 2>&1 & done"])
    adopted = process.wait_for(lambda: (lambda found: found if len(found) == 10 else None)(
        [p for p in process.children(main) if process.command(p)[:1] == ["sleep"]]),
        what="the orphans come to the master")
    for pid in adopted:
        os.kill(pid, signal.SIGKILL)
    process.wait_for(lambda: not [p for p in adopted if os.path.exists("/proc/%d" % p)],
                     what="the orphans are reaped")
    same([p for p in process.children(main) if process.stat(p)[:1] == [b"Z"]], [], "zombies")


def rootless(_):
    """The options of the rootless way, here with root's own daemon: user 0, a published port."""
    must(["docker", "run", "--detach", "--name", "webui-0", "--user", "0", "--read-only",
          "--tmpfs", "/tmp",
          "-v", "/var/run/docker.sock:/var/run/docker.sock", "-p", "127.0.0.1:3997:3001",
          "-e", "SSEBENCH_WEBUI_HOST=0.0.0.0", "-e", "SSEBENCH_WEBUI_TOKEN=" + harness.TOKEN,
          "-e", "SSEBENCH_CLI=" + REAL, IMAGE])
    server = Container()
    server.address, server.host, server.token = ("127.0.0.1", 3997), "127.0.0.1:3997", harness.TOKEN

    def works():
        try:
            return server.json("/api/health")["runner"]
        except (OSError, Closed):
            return False
    try:
        process.wait_for(works, 60, "the command works")
    except AssertionError:
        raise AssertionError(call(["docker", "logs", "webui-0"])) from None
    same(server.get("/api/health", {"Authorization": None}).status, 401, "without a token")
    main = int(must(["docker", "inspect", "-f", "{{.State.Pid}}", "webui-0"]))
    uids = {process.status(p)["Uid"].split()[0] for p in process.children(main)
            if "webui-worker" in process.command(p)[0]}
    same(uids, {"10001"}, "workers")


def ends(_):
    must(["docker", "stop", "--time", "30", NAME])
    same(must(["docker", "inspect", "-f", "{{.State.ExitCode}}", NAME]).strip(), "0", "exit status")


def cases(docker):
    names = {"built from the tarball on a named base": builds,
             "ordinary user, read-only root, healthy": runs, "the command's list": lists,
             "logs": logs, "a terminal": terminal, "stop and remove": stop_and_remove,
             "process 1 reaps orphans": reaps, "as root, with a published port": rootless,
             "ends with status 0": ends}
    if docker.why:
        for name in names:
            print("SKIP image: %s: %s" % (name, " ".join(docker.why.split())), flush=True)
        return
    docker.clear()
    docker.run("lab-run", "first")
    docker.run("lab-done", "second", "echo over; exit 4", model="openrouter/meta/llama-4")
    failed = report.failed
    for name, check in names.items():
        case("image: " + name, check, docker)
        if report.failed > failed and check in (builds, runs):
            break
    docker.clear()

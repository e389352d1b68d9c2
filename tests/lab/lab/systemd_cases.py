"""The installed units under a real systemd: a folder with the package, booted by systemd-nspawn with
namespaces of its own for everything, users included, so that nothing outside can be touched."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading

import harness
import launch_help as lh
import process
from folder import Folder
from http_client import Closed, Connection
from report import Skip, call, case, must, same

UNIT = "ssebench-webui.service"
# What the units need of `ssebench`: listings, and a run that goes on.
COMMAND = """#!/bin/sh
case "$1 $2" in
"runs list") echo '{"backend": "docker", "supports_exec": false, "runs": []}' ;;
"runs results") echo '{"runs": []}' ;;
"run "*) echo begun; while :; do sleep 0.3; echo "still there"; done ;;
*) exit 2 ;;
esac
"""
DROP_IN = "[Service]\nWatchdogSec=4\nTimeoutStopSec=3\nTimeoutAbortSec=1\nRestartSec=100ms\n"
# A control group and a view of processes where whatever boots is at the root.
ENTER = """mkdir -p /tmp/cgroup && mount -t cgroup2 cgroup2 /tmp/cgroup && mkdir -p /tmp/cgroup/$1 &&
echo $$ >/tmp/cgroup/$1/cgroup.procs && umount /tmp/cgroup && shift &&
exec unshare --cgroup --mount --pid --fork --kill-child --mount-proc sh -c '
mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"' sh "$@"
"""


class Booted(harness.Server):
    """A booted folder, and the server in it."""

    def __init__(self, deb):
        self.folder, self.nspawn, self.init = Folder("fresh13"), None, None
        self.group = "lab-%d" % os.getpid()
        self.base, self.host, self.address = "", "127.0.0.1:3001", ("127.0.0.1", 3001)
        try:
            self.furnish(deb)
            self.boot()
        except BaseException:
            self.close()
            raise

    def write(self, path, text, mode=0o644):
        path = self.folder.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def furnish(self, deb):
        must(["cp", deb, self.folder.path("/tmp/new.deb")])
        self.folder.run("dpkg", "--install", "/tmp/new.deb")
        self.folder.run("groupadd", "--system", "docker")
        must(["/usr/bin/python3", harness.MAKE_DEMO, self.folder.path("/srv/ssebench")])
        self.folder.run("chown", "-R", "ssebench-webui:", "/srv/ssebench")
        self.write("/usr/local/bin/command", COMMAND, 0o755)
        self.write("/etc/ssebench-webui/ssebench-webui.conf",
                   "SSEBENCH_CLI=/usr/local/bin/command\n")
        with open(self.folder.path("/etc/ssebench-webui/token"), encoding="ascii") as f:
            self.token = f.read().strip()

    def boot(self):
        self.folder.unmount_below()
        with open("/tmp/boot.log", "wb") as log:
            self.nspawn = subprocess.Popen(
                ["sh", "-c", ENTER, "sh", self.group, "systemd-nspawn", "--directory", self.folder.top,
                 "--boot", "--register=no", "--keep-unit", "--private-users=identity",
                 "--private-network", "--link-journal=no", "--hostname=booted"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        found = process.wait_for(lambda: self.nspawn.poll() is not None or [
            p for p in process.descendants(self.nspawn.pid)
            if process.command(p)[:1] == ["/usr/lib/systemd/systemd"]], 60, "an init")
        if found is True:
            with open("/tmp/boot.log", encoding="utf-8", errors="replace") as log:
                raise Skip("nothing boots here: " + " ".join(log.read()[-300:].split()))
        self.init = found[0]
        process.wait_for(lambda: self.ask("systemctl", "is-system-running")[1].strip() in (
            "running", "degraded"), 120, "the system is up")

    def ask(self, *argv):
        return call(["nsenter", "--target", str(self.init), "--all", "--", *argv])

    def run(self, *argv):
        return must(["nsenter", "--target", str(self.init), "--all", "--", *argv])

    def connect(self, timeout=20):
        """A connection from inside: the socket is made in the booted network."""
        made = []

        def inside():
            with open("/proc/%d/ns/net" % self.init, "rb") as f:
                os.setns(f.fileno(), os.CLONE_NEWNET)
            with contextlib.suppress(OSError):
                made.append(Connection(self.address, timeout))
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if not made:
            raise ConnectionRefusedError("nobody listens inside")
        return made[0]

    def answers(self):
        try:
            return self.get("/healthz").status == 200
        except (OSError, Closed):
            return False

    def shown(self, *names):
        text = self.run("systemctl", "show", UNIT, *["--property=" + n for n in names])
        return dict(line.partition("=")[::2] for line in text.splitlines())

    def main_pid(self):
        """As seen from outside: the process whose pid inside is the unit's."""
        def found():
            inside = self.shown("MainPID")["MainPID"]
            return [p for p in process.descendants(self.init)
                    if process.status(p).get("NSpid", "").split()[-1:] == [inside]]
        return process.wait_for(found, 30, "a main process")[0]

    def why(self):
        said = self.ask("journalctl", "--no-pager", "-n", "25", "-o", "cat")[1]
        return " ".join(said.split())[-900:]

    def wait_new_main(self, old):
        def found():
            if self.ask("systemctl", "is-active", UNIT)[1].strip() != "active":
                return None
            pid = self.main_pid()
            return pid if pid != old and self.answers() else None
        return process.wait_for(found, 60, "another main process that answers")

    def close(self):
        if self.nspawn is not None:
            if self.init is not None:
                self.ask("systemctl", "--no-block", "poweroff")
            try:
                self.nspawn.wait(30)
            except subprocess.TimeoutExpired:
                self.nspawn.kill()
                self.nspawn.wait()
            call(["sh", "-c", "mount -t cgroup2 cgroup2 /tmp/cgroup; find /tmp/cgroup/%s -depth -type d "
                  "-exec rmdir {} +; umount /tmp/cgroup" % self.group])
        self.folder.close()


def starts(s):
    """`systemctl start` returns when READY=1 has come: nothing is waited for here."""
    status, _, err = s.ask("systemctl", "enable", "--now", UNIT)
    same(status, 0, err + s.why())
    same((s.get("/healthz").status, s.get("/api/health", {"Authorization": None}).status), (200, 401),
         "health and the credential")
    same(s.json("/api/health")["status"], "ok", "token")


def is_hardened(s):
    status = process.status(s.main_pid())
    same((status["NoNewPrivs"], status["Seccomp"], status["CapBnd"].strip("0")), ("1", "2", ""),
         "main")
    same(s.ask("nsenter", "--target", s.shown("MainPID")["MainPID"], "--mount", "touch",
               "/usr/x")[0] != 0, True, "/usr can be written")
    assert not [line for line in s.why().splitlines() if "SIGSYS" in line], s.why()


def restarts(s):
    """Launched runs go on, and are found again."""
    task = "tinyjson-overflow-12"
    first = lh.launch(s, task)
    command = ["/bin/sh", "/usr/local/bin/command", "run"]
    worker = process.wait_for(lambda: [p for p in process.descendants(s.init)
                                       if process.command(p)[:3] == command],
                              what="the run")[0]
    old = s.main_pid()
    s.run("systemctl", "restart", UNIT)
    assert s.wait_new_main(old) != old
    same(process.alive(worker), True, "the run")
    told = lh.status(s, first)
    assert told["status"] != "failed" and "endTime" not in told, told
    same(lh.post(s, "/cancel", {"launch_id": first}).status, 200, "cancel")
    process.wait_for(lambda: not process.alive(worker), 60, "the run is cancelled")


def reloads(s):
    old = s.main_pid()
    s.run("systemctl", "reload", UNIT)
    same((s.main_pid(), s.answers()), (old, True), "main process and an answer")


def is_exchanged(s):
    """As the README says it is upgraded: the same main process, other children."""
    main, children = s.main_pid(), set(process.children(s.main_pid()))
    s.run("systemctl", "kill", "--kill-whom=main", "-s", "USR2", UNIT)
    process.wait_for(lambda: not children & set(process.children(main)) and s.answers(), 60,
                     "new children")
    same((s.main_pid(), s.ask("systemctl", "is-active", UNIT)[1].strip()), (main, "active"), "main")


def is_killed(s):
    old = s.main_pid()
    os.kill(old, signal.SIGKILL)
    s.wait_new_main(old)


def hangs(s):
    """One that stands still is noticed by the watchdog."""
    s.write("/etc/systemd/system/%s.d/short.conf" % UNIT, DROP_IN)
    s.run("systemctl", "daemon-reload")
    s.run("systemctl", "restart", UNIT)
    old = s.main_pid()
    os.kill(old, signal.SIGSTOP)
    s.wait_new_main(old)
    assert "watchdog" in s.ask("journalctl", "--no-pager", "-u", UNIT)[1].lower(), s.why()


def is_activated(s):
    s.run("systemctl", "disable", "--now", UNIT)
    same(s.answers(), False, "stopped")
    s.run("systemctl", "enable", "--now", "ssebench-webui.socket")
    same(s.ask("systemctl", "is-active", UNIT)[1].strip(), "inactive", "before the first connection")
    same(s.get("/healthz").status, 200, "the first connection")
    process.wait_for(lambda: s.ask("systemctl", "is-active", UNIT)[1].strip() == "active",
                     what="it is active")
    old = s.main_pid()
    s.run("systemctl", "restart", UNIT)
    same((s.get("/healthz").status, s.main_pid() != old), (200, True), "over a restart")


def several(s):
    """The template: another name, token, state and port."""
    s.write("/etc/ssebench-webui/two.token", "x" * 40 + "\n", 0o600)
    s.write("/etc/ssebench-webui/two.conf", "SSEBENCH_CLI=/usr/local/bin/command\nPORT=3002\n")
    status, _, err = s.ask("systemctl", "start", "ssebench-webui@two")
    same(status, 0, err + s.why())
    with contextlib.ExitStack() as back:
        back.callback(setattr, s, "address", s.address)
        back.callback(setattr, s, "host", s.host)
        s.address, s.host = ("127.0.0.1", 3002), "127.0.0.1:3002"
        same(s.get("/api/health", {"Authorization": "Bearer " + "x" * 40}).status, 200, "its token")
        same(s.get("/api/health").status, 401, "the other's token")
    states = s.run("sh", "-c", "ls -d /var/lib/ssebench-webui-*")
    assert re.search("ssebench-webui-two", states), states


def cases(deb):
    names = {"starts when it is ready, with its credential": starts,
             "hardening is in force": is_hardened, "a run outlives a restart": restarts,
             "reload": reloads, "exchanged in place": is_exchanged, "killed, it is back": is_killed,
             "hanging, it is restarted": hangs, "several instances": several,
             "socket activation": is_activated}
    name, booted = "systemd: a folder with the package boots", []
    case(name, lambda: booted.append(Booted(deb)))
    if not booted:
        return
    try:
        for name, check in names.items():
            case("systemd: " + name, check, booted[0])
    finally:
        booted[0].close()

"""The command taken over, in every place where the broker starts it: called, followed, at a
terminal, below a keeper. It is trusted with the account's rights, and with nothing beyond them."""
import json
import os
import shutil
import subprocess

import pytest

import harness
import process
from conftest import built_with_sanitizer
from harness import TOKEN
from launch_help import launch
from screen import Screen

TOP = os.path.dirname(os.path.abspath(__file__))
UID = 65534
REFUSED = {"EPERM", "ENOSYS"}
# Which process it is, by its words.
PLACES = {"called": ["runs", "list"], "followed": ["runs", "logs"], "at a terminal": ["runs", "exec"],
          "below a keeper": ["run"]}


@pytest.fixture(scope="module")
def captives():
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another account")
    place = harness.Place()
    report = os.path.join(place.top, "captives")
    os.mkdir(report)
    captive = shutil.copy2(os.path.join(TOP, "captive"), place.top)
    place.give_to(UID, UID)
    _, standin = harness.programs_for(place, UID)
    server = harness.Server(place, {
        "SSEBENCH_WEBUI_TOKEN": TOKEN, "SSEBENCH_CLI": captive, "CAPTIVE_STANDIN": standin,
        "CAPTIVE_REPORT": report}, uid=UID)
    server.token = TOKEN

    def found():
        reports = {}
        for name in os.listdir(report):
            if name.endswith(".json"):
                with open(os.path.join(report, name), encoding="utf-8") as f:
                    r = json.load(f)
                for kind, words in PLACES.items():
                    if r["argv"][:len(words)] == words and (kind != "at a terminal" or "--tty" in r["argv"]):
                        reports[kind] = r
        return reports if len(reports) == len(PLACES) else None
    try:
        run_id = launch(server, "tinyjson-overflow-12", keepContainer=True)
        process.wait_for(lambda: [r for r in server.runs() if r["id"] == run_id and
                                  r["status"] == "running"], 60, "the launched run")
        with server.websocket("/api/containers/%s/logs-ws" % run_id) as ws:
            ws.receive()
            screen = Screen(server, "/api/pty/" + run_id)
            screen.type("echo shell-$((20+3))\r")
            screen.shows("shell-23")
            screen.close()
            reports = process.wait_for(found, 30, "a report from each place")
        assert server.post("/api/containers/%s/remove" % run_id).status == 200
    finally:
        ended = server.stop()
        place.close()
    assert ended == 0, server.log[-2000:]
    yield reports


@pytest.mark.parametrize("kind", list(PLACES))
def test_nothing_is_inherited(captives, kind):
    r = captives[kind]
    assert r["fds"] == [0, 1, 2], "a descriptor of the broker's"
    text = json.dumps([r["env"], r["argv"]])
    assert TOKEN not in text
    for name in ("SSEBENCH_WEBUI_TOKEN", "SSEBENCH_WEBUI_TOKEN_FILE", "NOTIFY_SOCKET", "WATCHDOG_USEC",
                 "LISTEN_FDS", "LISTEN_PID"):
        assert name not in r["env"]


@pytest.mark.parametrize("kind", list(PLACES))
def test_no_rights_are_to_be_had(captives, kind):
    status = captives[kind]["status"]
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert status[name] == "0" * 16
    assert set(status["Uid"].split()) == {str(UID)}
    calls = captives[kind]["calls"]
    assert not {name: r for name, r in calls.items() if r not in REFUSED}


@pytest.mark.parametrize("kind", list(PLACES))
def test_the_server_is_closed_to_it(captives, kind):
    """Same account, but no role's memory, environment or descriptors: so no token either."""
    reads = captives[kind]["reads"]
    assert {name.split()[0] for name in reads} == {
        "ssebench-webui", "ssebench-webui-worker", "ssebench-webui-broker"}
    assert not {name: r for name, r in reads.items() if r not in ("EACCES", "EPERM")}


# Asks for new processes, and tries all of them from their first moment on.
HASTY = """
import os, signal, sys, time
master, old, seen, got = int(sys.argv[1]), set(sys.argv[2:]), set(), []
end = time.monotonic() + 30
os.kill(master, signal.SIGUSR2)
while time.monotonic() < end:
    try:
        with open("/proc/%d/task/%d/children" % (master, master)) as f:
            found = [p for p in f.read().split() if p not in old]
    except OSError:
        found = []
    for pid in [str(master)] + found:
        for what in ("mem", "environ", "fd/4"):
            try:
                os.close(os.open("/proc/%s/%s" % (pid, what), os.O_RDONLY))
                got.append((pid, what))
            except OSError:
                pass
    if not seen.issuperset(found):
        seen.update(found)
        end = min(end, time.monotonic() + 5)
    if len(seen) >= 3:
        end = min(end, time.monotonic() + 0.5)
print(len(seen) >= 3, got)
"""


def test_no_moment_in_which_it_is_open():
    """Nor one that has only just begun, if the programs have the mode that they are installed with:
    a descriptor of its memory would serve for as long as it lives."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another account")
    if built_with_sanitizer():
        pytest.skip("its leak check opens a process to its own tracer")
    place = harness.Place()
    place.give_to(UID, UID)
    program, _ = harness.programs_for(place, UID)
    top = os.path.dirname(program)
    for role in (".", "worker", "broker"):
        for name in os.listdir(os.path.join(top, role)):
            if name.startswith("ssebench-webui"):
                os.chmod(os.path.join(top, role, name), 0o711)
    server = harness.Server(place, uid=UID)
    try:
        old = [str(p) for p in process.children(server.pid)]
        p = subprocess.run(["/usr/bin/python3", "-c", HASTY, str(server.pid), *old], user=UID,
                           group=UID, extra_groups=[], capture_output=True, text=True, timeout=60)
        assert p.stdout == "True []\n", p
    finally:
        ended = server.stop()
        place.close()
    assert ended == 0, server.log[-2000:]

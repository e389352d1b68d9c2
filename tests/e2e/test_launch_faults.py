"""Launches survive the death of everything else, and the state of the state directory."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

import launch_help as lh
import process
from http_client import Closed

pytestmark = pytest.mark.once

N_LINES = 3000
STREAM = {"lines": N_LINES, "block": 5, "pause": 0.005, "list_at": 1200, "exit": 7}


@pytest.fixture
def stage(place):
    return lh.Stage(place)


def settled(server, seconds=60):
    """The whole way works again."""
    def works():
        try:
            return server.get("/api/launch/status").status == 200 and \
                server.get("/api/launch/models").status == 200
        except (Closed, OSError):
            return False
    process.wait_for(works, seconds, "the server to work again")


def victims(server, names):
    pids = {"worker": server.workers, "broker": lambda: [server.broker()],
            "keeper": lh.keepers, "master": lambda: [server.pid]}
    return [p for n in names for p in pids[n]()]


@pytest.mark.parametrize("names", [
    ["worker"], ["broker"], ["keeper"], ["worker", "broker"], ["broker", "keeper"],
    ["worker", "keeper"], ["keeper", "broker"]], ids="+".join)
def test_kill(stage, start, place, names):
    """kill -9 twice, while numbered lines come: on disk, by HTTP and on a page none is missing."""
    server = start(stage.env())
    stage.task("stream", **STREAM)
    viewer = lh.Viewer(server)
    launch_id = lh.launch(server, "stream")
    process.wait_for(lambda: len(viewer.lines.get(launch_id, [])) > 200, what="lines")
    for _ in range(2):
        for pid in victims(server, names):
            os.kill(pid, signal.SIGKILL)
        settled(server)
        process.wait_for(lh.keepers, what="a keeper")
    ended = lh.wait_end(server, launch_id)
    lh.check_numbered(lh.kept_output(place, launch_id), N_LINES)
    assert lh.logs(server, launch_id) == lh.kept_output(place, launch_id).decode().splitlines()
    process.wait_for(lambda: len(viewer.lines[launch_id]) >= N_LINES, what="all lines shown")
    assert viewer.lines[launch_id] == lh.logs(server, launch_id)
    viewer.close()
    # Whose keeper was killed: nobody is told how the command ended.
    assert ended["exitCode"] == (None if "keeper" in names else 7)
    assert ended["status"] == "running"


@pytest.mark.parametrize("with_keeper", [False, True])
def test_kill_master(stage, start, place, with_keeper):
    """All of the server dies; the run goes on; the next server finds it."""
    server = start(stage.env())
    stage.task("stream", **STREAM)
    launch_id = lh.launch(server, "stream")
    process.wait_for(lambda: len(lh.logs(server, launch_id)) > 200, what="lines")
    dying = victims(server, ["master"] + (["keeper"] if with_keeper else []))
    for pid in dying:
        os.kill(pid, signal.SIGKILL)
    server.process.wait(20)
    assert process.alive(stage.started(launch_id)["pid"])
    again = start(stage.env())
    ended = lh.wait_end(again, launch_id)
    assert ended["exitCode"] == (None if with_keeper else 7)
    lh.check_numbered(lh.kept_output(place, launch_id), N_LINES)
    server.process.wait()
    server.stop = lambda *_: 0  # it was killed by this test


def test_sigterm_while_launching(stage, start, place):
    server = start(stage.env())
    stage.task("stream", **STREAM)
    launch_id = lh.launch(server, "stream")
    process.wait_for(lambda: len(lh.logs(server, launch_id)) > 100, what="lines")
    assert lh.status(server, launch_id)["status"] == "launching"
    assert server.stop() == 0
    pid = stage.started(launch_id)["pid"]
    assert process.alive(pid)
    again = start(stage.env())
    assert lh.wait_status(again, launch_id, "running")["containerId"] == launch_id
    assert lh.wait_end(again, launch_id)["exitCode"] == 7
    lh.check_numbered(lh.kept_output(place, launch_id), N_LINES)


def test_ended_while_no_server_ran(stage, start, place):
    server = start(stage.env())
    stage.task("stays", lines=5, stay=True, exit=9)
    launch_id = lh.launch(server, "stays")
    process.wait_for(lambda: len(lh.logs(server, launch_id)) == 5, what="lines")
    assert server.stop() == 0
    stage.end("stays")
    process.wait_for(lambda: not lh.keepers(), what="its keeper is done")
    again = start(stage.env())
    s = lh.wait_status(again, launch_id, "failed")
    assert (s["error"], s["exitCode"]) == ("Process exited with code 9", 9)
    assert len(lh.logs(again, launch_id)) == 5


def edit(path, old, new):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    assert old in text
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))


def restarted(server, start, stage):
    assert server.stop() == 0
    return start(stage.env())


def test_machine_was_restarted(stage, start, place):
    server = start(stage.env())
    stage.task("stays", lines=2, stay=True)
    launch_id = lh.launch(server, "stays")
    process.wait_for(lambda: stage.started(launch_id), what="it executes")
    process.wait_for(lambda: len(lh.logs(server, launch_id)) == 2, what="lines")
    assert server.stop() == 0
    for pid in lh.keepers() + [stage.started(launch_id)["pid"]]:
        os.kill(pid, signal.SIGKILL)
    process.wait_for(lambda: not lh.keepers(), what="no keeper")
    with open("/proc/sys/kernel/random/boot_id") as f:
        edit(os.path.join(lh.folder(place, launch_id), "keeper.json"), f.read().strip(),
             "00000000-0000-0000-0000-000000000000")
    again = start(stage.env())
    s = lh.status(again, launch_id)
    assert s["status"] == "failed" and s["interrupted"] is True
    assert s["error"] == "Interrupted: the machine was restarted while the launch went on"
    assert len(lh.logs(again, launch_id)) == 2


def test_launch_and_keeper_were_killed(stage, start, place):
    server = start(stage.env())
    stage.task("stays", lines=2, stay=True)
    launch_id = lh.launch(server, "stays")
    process.wait_for(lambda: len(lh.logs(server, launch_id)) == 2, what="lines")
    pids = lh.keepers() + [stage.started(launch_id)["pid"]]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    s = lh.wait_status(server, launch_id, "failed")
    assert s["interrupted"] is True and s["error"].startswith("Interrupted: ")


@pytest.mark.parametrize("damage", ["torn", "empty", "old", "foreign", "gone"])
def test_damaged_record(stage, start, place, damage):
    """The run behind a damaged meta.json goes on, is shown, and its output is complete."""
    server = start(stage.env())
    stage.task("stream", **{**STREAM, "list_at": 10})
    launch_id = lh.launch(server, "stream")
    lh.wait_status(server, launch_id, "running")
    path = os.path.join(lh.folder(place, launch_id), "meta.json")
    with open(path) as f:
        text = f.read()
    assert server.stop() == 0
    if damage == "gone":
        os.unlink(path)
    else:
        with open(path, "w") as f:
            f.write({"torn": text[:len(text) // 2], "empty": "",
                     "old": text.replace('"version": 1', '"version": 0'),
                     "foreign": json.dumps(json.loads(text))}[damage])
    again = start(stage.env())
    s = lh.wait_status(again, launch_id, "running")
    assert s["taskId"] == "unknown"
    assert lh.wait_end(again, launch_id)["exitCode"] == 7
    lh.check_numbered(lh.kept_output(place, launch_id), N_LINES)
    assert lh.post(again, "/clear", {"launch_id": launch_id}).status == 200
    process.wait_for(lambda: not lh.folder(place, launch_id), what="cleared")


def test_fifty_at_once(stage, start, place):
    server = start(stage.env(SSEBENCH_WEBUI_MAX_LAUNCHES="50"))
    names = [stage.task("f%02d" % i, lines=200, block=20, pause=0.02, list_at=100, exit=i)
             for i in range(50)]
    viewer = lh.Viewer(server)
    ids = [lh.launch(server, n) for n in names]
    os.kill(server.broker(), signal.SIGKILL)
    for i, launch_id in enumerate(ids):
        assert lh.wait_end(server, launch_id)["exitCode"] == i
        lh.check_numbered(lh.kept_output(place, launch_id), 200)
    process.wait_for(lambda: all(len(viewer.lines.get(i, [])) == 200 for i in ids),
                     what="all lines shown")
    viewer.close()


# --- the state directory ------------------------------------------------------------------------

def test_state_directory_deleted(stage, start, place):
    server = start(stage.env())
    stage.task("stream", **STREAM)
    stage.task("second", lines=3, exit=1)
    viewer = lh.Viewer(server)
    launch_id = lh.launch(server, "stream")
    process.wait_for(lambda: len(viewer.lines.get(launch_id, [])) > 100, what="lines")
    shutil.rmtree(place.state)
    assert lh.wait_end(server, launch_id)["exitCode"] == 7
    process.wait_for(lambda: len(viewer.lines[launch_id]) == N_LINES, what="all lines shown")
    second = lh.launch(server, "second")  # the directory is made anew
    assert lh.wait_status(server, second, "failed")["error"] == "Process exited with code 1"
    viewer.close()


def test_state_directory_unusable(stage, start, place):
    server = start(stage.env())
    shutil.rmtree(place.state)
    with open(place.state, "w"):
        pass
    stage.task("short", lines=1)
    r = lh.post(server, "", lh.body("short"))
    assert r.status == 500 and "Cannot use the state directory" in r.json()["error"], r
    assert server.get("/api/containers").status == 200
    os.unlink(place.state)
    lh.wait_end(server, lh.launch(server, "short"))


def mounted(path, options):
    """A file system of its own there, or skip."""
    os.makedirs(path, 0o700, exist_ok=True)
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path],
                       capture_output=True, text=True)
    if r.returncode != 0:
        pytest.skip("cannot mount here: " + r.stderr.strip())


def test_read_only(stage, start, place):
    mounted(place.state, "mode=700,size=1m")
    try:
        assert start(stage.env()).stop() == 0
        subprocess.run(["mount", "-o", "remount,ro", place.state], check=True)
        server = start(stage.env())
        stage.task("short", lines=1)
        r = lh.post(server, "", lh.body("short"))
        assert r.status == 500 and "Read-only file system" in r.json()["error"], r
        assert server.get("/api/launch/models").status == 200
        subprocess.run(["mount", "-o", "remount,rw", place.state], check=True)
        lh.wait_end(server, lh.launch(server, "short"))
        assert server.stop() == 0
    finally:
        subprocess.run(["umount", "-l", place.state], check=True)


def test_full_disk(stage, start, place):
    """The run goes on, the fault is told, and when there is room again the file says what is
    missing and what comes is complete."""
    mounted(place.state, "mode=700,size=2m")
    filler = os.path.join(place.state, "filler")
    try:
        server = start(stage.env())
        stage.task("stream", lines=6000, block=20, pause=0.01, width=1000, list_at=3, exit=7)
        launch_id = lh.launch(server, "stream")
        s = process.wait_for(lambda: (lambda s: s if s.get("outputError") else None)(
            lh.status(server, launch_id)), 60, "the full disk is told")
        assert s["outputError"] == "No space left on device"
        r = lh.post(server, "", lh.body("stream"))
        assert r.status == 500 and "No space left" in r.json()["error"], r
        time.sleep(1)
        assert process.alive(stage.started(launch_id)["pid"])
        subprocess.run(["mount", "-o", "remount,size=64m", place.state], check=True)
        ended = lh.wait_end(server, launch_id)
        assert ended["exitCode"] == 7 and "outputError" not in ended
        lines = lh.kept_output(place, launch_id).split(b"\n")
        numbers = [int(x[5:14]) for x in lines if x.startswith(b"line ") and len(x) == 1015]
        assert numbers == sorted(set(numbers)) and numbers[-1] == 5999
        if len(numbers) < 6000:
            assert [x for x in lines if b"bytes of output were lost here" in x]
        assert server.stop() == 0
    finally:
        if os.path.exists(filler):
            os.unlink(filler)
        subprocess.run(["umount", "-l", place.state], check=True)


def test_two_servers_on_one_checkout(stage, start, place):
    first, second = start(stage.env()), start(stage.env())
    stage.task("short", lines=1)
    r = lh.post(second, "", lh.body("short"))
    assert r.status == 500 and "Another server launches from this checkout" in r.json()["error"]
    launch_id = lh.launch(first, "short")
    lh.wait_end(first, launch_id)
    assert first.stop() == 0
    process.wait_for(lambda: lh.try_status(second, launch_id).get("endTime"),
                     what="the other one takes over")
    lh.wait_end(second, lh.launch(second, "short"))

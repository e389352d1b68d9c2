"""`ssebench-webui status`: what it tells of a server on its host, and of one that is gone."""
import json
import os
import signal
import subprocess

import pytest

import harness
import launch_help
import process
from harness import TOKEN


def ask(place, *argv, **more):
    return subprocess.run([harness.SERVER, "status", *argv], env=place.env(), timeout=60,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)


def told(place):
    p = ask(place, "--json")
    return p.returncode, json.loads(p.stdout)


def test_nothing_runs(place):
    p = ask(place)
    assert p.returncode == 3 and p.stdout.startswith("No ssebench-webui runs here. ")
    assert place.env()["XDG_STATE_HOME"] in p.stdout, "and where it looked"
    assert told(place) == (3, {"servers": [], "running": False, "ended": 0})
    assert ask(place, "--yaml").returncode == 2


def test_a_running_server(start, place):
    server = start({"SSEBENCH_WEBUI_TOKEN": TOKEN})
    run = place.start_run("r1", agent_seconds=60)
    try:
        process.wait_for(lambda: [c for c in server.runs() if c["status"] == "running"],
                         what="the run")
        server.get("/api/health", {"Authorization": "Bearer wrong-wrong-wrong-wrong"})
        with server.websocket("/api/pty/r1"):
            status, answer = process.wait_for(
                lambda: (lambda t: t if t[1]["servers"][0]["terminals"] == 1 else None)(
                    told(place)), what="a terminal")
        assert status == 0 and answer["running"] is True
        one = answer["servers"][0]
        assert one["pid"] == server.pid and one["answers"] is True
        assert one["address"] == server.url and one["workers"] == 2 and one["tokens"] == 1
        assert 0 <= one["uptimeSeconds"] < 600 and one["hosted"] is False
        assert one["connections"] >= 0 and one["websockets"] == 1 and one["requests"] >= 2
        assert (one["refused"], one["bad_tokens"], one["limited"], one["launches"]) == (1, 1, 0, 0)
        p = ask(place)
        assert p.returncode == 0 and "runs: pid %d, up 0 d" % server.pid in p.stdout
        assert "refused 1" in p.stdout and TOKEN not in p.stdout
        metrics = server.get("/api/metrics").body.decode()
        assert "ssebench_webui_launches 0" in metrics
    finally:
        run.terminate()
        run.wait(20)
    assert server.stop() == 0
    assert told(place)[0] == 3, "a stop leaves nothing"


def test_launches_are_counted(start, place):
    stage = launch_help.Stage(place)
    server = start(stage.env())
    task = stage.task("t1", stay=True)
    launch_help.launch(server, task)

    def count():
        return told(place)[1]["servers"][0]["launches"]
    process.wait_for(lambda: count() == 1, what="one launch")
    os.kill(server.broker(), signal.SIGKILL)
    process.wait_for(lambda: server.get("/healthz").status == 200 and count() == 1,
                     what="it is counted by the next broker")
    stage.end(task)
    process.wait_for(lambda: count() == 0, what="its end")


def test_two_and_a_killed_one(start, place):
    one, two = start(), start()
    status, answer = told(place)
    assert status == 0
    assert {s["pid"] for s in answer["servers"]} == {one.pid, two.pid}
    one.kill()
    process.wait_for(lambda: told(place)[1] == {**told(place)[1], "ended": 1}, what="its end seen")
    assert told(place)[0] == 0
    assert two.stop() == 0
    p = ask(place)
    assert p.returncode == 1 and "pid %d ended without a word" % one.pid in p.stdout
    third = start()
    status, answer = told(place)
    assert (status, answer["ended"], len(answer["servers"])) == (0, 0, 1)
    assert answer["servers"][0]["pid"] == third.pid


def test_one_that_hangs(start, place):
    server = start()
    os.kill(server.pid, signal.SIGSTOP)
    try:
        status, answer = told(place)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert status == 0 and answer["servers"][0]["answers"] is False
    assert "connections" not in answer["servers"][0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_account_is_told_nothing(start, place):
    start()
    p = ask(place, user=4242, group=4242, extra_groups=[])
    assert p.returncode == 4 and "as root" in p.stderr, p


def test_a_file_names_nobody(start, place):
    """Whose process is asked is the kernel's word: a planted file is sent no signal."""
    server = start()
    victim = subprocess.Popen(["sleep", "60"])
    try:
        folder = os.path.join(place.state, "servers")
        with open(os.path.join(folder, str(victim.pid)), "w") as f:
            f.write("asked=1\nversion=x\nend=1\n")
        os.symlink("/etc/passwd", os.path.join(folder, "1"))
        status, answer = told(place)
        assert (status, answer["ended"], len(answer["servers"])) == (0, 1, 1)
        assert answer["servers"][0]["pid"] == server.pid
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait(20)


def test_no_link_leads_to_other_processes(place):
    """Who owns the state directory must not have root signal what it names."""
    elsewhere = os.path.join(place.top, "elsewhere")
    os.mkdir(elsewhere)
    os.makedirs(place.state, 0o700)
    os.symlink(elsewhere, os.path.join(place.state, "servers"))
    hold = ("import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); "
            "print('held', flush=True); time.sleep(60)")
    holder = subprocess.Popen(["/usr/bin/python3", "-c", hold, os.path.join(elsewhere, "1")],
                              stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        assert ask(place).returncode == 4
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait(20)
        holder.stdout.close()

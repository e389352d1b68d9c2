"""A prisoner in the worker's place tries one thing per server; the others must not notice."""
import os
import re
import shutil
import subprocess
import time

import pytest

import harness
import process

BUILD = os.environ.get("SSEBENCH_PRISONER_BUILD", harness.BUILD + "-prisoner")
NARROW = os.path.join(harness.BUILD, "tests", "attack", "narrow")
FORBIDDEN = "forbidden-call syscall="

# attempt -> what the log must say of it. One word: the call it died of.
VERDICTS = {
    "proc_master": "openat", "proc_self": "openat", "kill_master": "kill",
    "kill_everybody": "kill", "kill_sibling": "kill", "pidfd": "pidfd_open",
    "ptrace": "ptrace", "vm_read": "process_vm_readv", "type_in": "ioctl",
    "exec_memory": "execveat", "timers": "timerfd_create", "alarm": "timer_create",
    "raise_limit": "prlimit64", "deaf_listener": "shutdown", "blocking_listener": "fcntl",
    "connect_out": "sendto",
    # at a limit of its own
    "memory": "attempt name=memory result=-12", "epolls": "attempt name=epolls result=-24",
    # nobody is harmed
    "descriptors_from_broker": "worker-malformed worker=1 message=RUNS_LIST",
    "log_flood": "log-dropped",
    "stderr_flood": "worker.1 yyyyyyyy",
    "forged_line": "attempt name=forged_line", "ready_again": "attempt name=ready_again",
    "scribble": "attempt name=scribble result=0",
    "take_every_connection": "attempt name=take_every_connection result=",
    # words that a worker does not say
    "long_line": "control-malformed child=worker.1", "control_kill": "worker.1",
    "control_stop": "control-malformed child=worker.1",
    "control_channel": "control-malformed child=worker.1",
    "control_config": "control-malformed child=worker.1",
    "control_unknown": "control-malformed child=worker.1",
    "smuggle_to_master": "control-malformed child=worker.1",
    "smuggle_to_broker": "worker-malformed worker=1 message=HELLO",
    # saying nothing
    "nothing_to_master": "control-malformed child=worker.1",
    "nothing_to_broker": "worker-malformed worker=1 message=\\?",
    "shut_to_master": "control-malformed child=worker.1",
    "shut_to_broker": "worker-malformed worker=1 message=\\?",
    "close_channels": "worker-gone worker=1",
    # what a namespace would keep it from; the filter does too
    "socket": "socket", "abstract": "socket", "fork": "clone", "namespace": "unshare",
    "become_root": "setuid",
    "spin": "", "ignore": "",
}
# Who starts the server, and under what. The third is a container that allows no namespaces: no
# machine and no container is changed for it (tests/attack/narrow.c).
STARTS = {"as-started": (None, False), "as-nobody": (65534, False),
          "no-namespaces": (65534, True)}


def said(server, wanted):
    if re.fullmatch(r"[a-z0-9_]+", wanted):
        wanted = FORBIDDEN + wanted
    return re.search(wanted, server.log)


def rss(pids):
    return {p: process.rss_kib(p) for p in pids}


@pytest.fixture(scope="module", autouse=True)
def build():
    if not os.access(os.path.join(BUILD, "worker", "ssebench-webui-worker"), os.X_OK):
        pytest.skip("no build with -Dprisoner=true at " + BUILD)


@pytest.fixture
def prisoners(monkeypatch):
    """Servers are of the build with prisoners."""
    monkeypatch.setattr(harness, "SERVER", os.path.join(BUILD, "ssebench-webui"))
    monkeypatch.setattr(harness, "BUILD", BUILD)


@pytest.mark.parametrize("started", list(STARTS))
@pytest.mark.parametrize("name", list(VERDICTS))
def test_attempt(name, started, prisoners):
    uid, narrow = STARTS[started]
    if uid is not None and os.geteuid() != 0:
        pytest.skip("needs root, to act as another account")
    place = harness.Place(demo=False)
    under = []
    if narrow:
        under = [shutil.copy2(NARROW, place.top), "-"]
    if uid is not None:
        place.give_to(uid, uid)
    server = harness.Server(place, {"SSEBENCH_PRISONER": "1"}, "/" + name, uid=uid, under=under)
    try:
        if narrow:
            fences = [line for line in server.out if line.startswith("[Server] Fences: ")][0]
            missing = fences.partition("; missing: ")[2].partition("; broker")[0]
            for fence in ("account", "empty-root", "namespaces", "capabilities"):
                assert re.search(r"\b%s \(" % fence, missing), fences
            assert "seccomp" in fences.partition("; missing: ")[0]
        others = [server.pid, server.broker()]
        before = rss(others)
        sibling = [p for p in server.workers() if process.command(p)[1:2] == ["2"]]
        process.wait_for(lambda: said(server, VERDICTS[name]), 20, "the verdict on " + name)
        if not VERDICTS[name]:
            time.sleep(0.5)
        assert server.process.poll() is None and process.alive(others[1])
        assert sibling and process.alive(sibling[0]), "the sibling was ended"
        for pid, kib in rss(others).items():
            assert kib < before[pid] + 32768, "grown"
        assert len(server.log) < 8 << 20
        for line in server.err:
            assert not re.search(r"^\S+ \w+ master forged-line", line)
            assert all(c.isprintable() for c in line), repr(line)
    finally:
        code = server.stop()
        place.close()
    assert code == 0, server.log[-2000:]
    process.wait_for(lambda: not harness.leftovers(), 10, "no process left")


def test_a_worker_that_hangs_is_replaced(prisoners):
    place = harness.Place(demo=False)
    server = harness.Server(place, {"SSEBENCH_PRISONER": "1"}, "/spin")
    others = [server.broker()] + [p for p in server.workers() if process.command(p)[1:2] == ["2"]]
    try:
        process.wait_for(lambda: "child-hung child=worker.1 " in server.log, 60, "the word on it")
        process.wait_for(lambda: re.search("child-ended child=worker.1 .*SIGKILL", server.log),
                         20, "its end")
        assert len(others) == 2 and all(process.alive(p) for p in others)
        assert server.log.count("child-hung") == 1
    finally:
        server.stop()
        place.close()


@pytest.mark.parametrize("wrong", ["prisoner as worker", "prisoner as master"])
def test_builds_do_not_mix(wrong, tmp_path):
    """The server refuses to run with a prisoner; a prisoner's master with our worker."""
    ours, theirs = (harness.BUILD, BUILD) if wrong.endswith("worker") else (BUILD, harness.BUILD)
    os.chmod(tmp_path, 0o755)
    for name in ("worker", "broker"):
        os.mkdir(tmp_path / name)
    shutil.copy(os.path.join(ours, "ssebench-webui"), tmp_path)
    for name in os.listdir(os.path.join(ours, "broker")):
        if name.startswith("ssebench-webui-") and not name.endswith(".p"):
            shutil.copy(os.path.join(ours, "broker", name), tmp_path / "broker")
    shutil.copy(os.path.join(theirs, "worker", "ssebench-webui-worker"), tmp_path / "worker")
    place = harness.Place(demo=False)
    done = subprocess.run([str(tmp_path / "ssebench-webui")], capture_output=True, text=True,
                          env={**place.env(), "PORT": "0", "SSEBENCH_PRISONER": "1"},
                          timeout=60)
    place.close()
    assert done.returncode != 0 and "Listening on" not in done.stdout, done


def test_a_prisoner_build_does_not_start_by_itself():
    place = harness.Place(demo=False)
    done = subprocess.run([os.path.join(BUILD, "ssebench-webui")], capture_output=True, text=True,
                          env={**place.env(), "PORT": "0"}, timeout=60)
    place.close()
    assert done.returncode == 1 and "-Dprisoner=true" in done.stderr

"""What a worker may do, read from /proc: nothing but talk on what it was given."""
import os
import re

import pytest

import process
from harness import TOKEN

pytestmark = [pytest.mark.root, pytest.mark.once]

NO_CAPABILITY = "0" * 16


def test_status(guarded):
    for pid in guarded.workers():
        s = process.status(pid)
        assert s["Seccomp"] == "2" and s["NoNewPrivs"] == "1"
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert s[name] == NO_CAPABILITY, name
        assert s["Threads"] == "1"
        assert set(s["Uid"].split()) & {"0"} == set() and set(s["Gid"].split()) & {"0"} == set()
        assert s["Groups"] == ""


def test_broker_and_master_gain_nothing_new(guarded):
    assert process.status(guarded.broker())["NoNewPrivs"] in ("0", "1")
    assert process.status(guarded.pid)["Threads"] == "1"


def test_descriptors_are_sockets_and_memory(guarded):
    """/dev/urandom is libwebsockets' own: it opens it with its context."""
    for pid in guarded.workers():
        for number, what in process.descriptors(pid).items():
            assert re.match(r"socket:|pipe:|anon_inode:|/memfd:|/dev/(null|urandom)$", what), (number, what)


def test_no_descriptor_leaks_with_use(guarded):
    for _ in range(5):
        guarded.get("/api/containers")
    before = {p: len(process.descriptors(p)) for p in guarded.workers() + [guarded.broker()]}
    for _ in range(60):
        for what in ("diff", "agent/dialog", "result", "review", "files"):
            guarded.get("/api/containers/hostile-output.1/" + what)
        with guarded.websocket("/api/containers/hostile-output.1/logs-ws") as ws:
            ws.receive_json()

    def settled():
        return all(len(process.descriptors(p)) <= n + 3 for p, n in before.items())
    process.wait_for(settled, what="descriptors to settle")


def test_environment_is_empty(guarded):
    for pid in guarded.workers():
        assert process.read(pid, "environ").strip(b"\0") == b""


def test_no_writable_code(guarded):
    for pid in guarded.workers():
        for line in process.read(pid, "maps").decode().splitlines():
            rights = line.split()[1]
            assert not ("w" in rights and "x" in rights), line


@pytest.mark.plain
def test_token_is_not_in_a_workers_memory(guarded):
    """A worker holds a keyed hash; the token passes through its buffers only with a request."""
    import harness
    import signal
    server = harness.Server(guarded.place, {"SSEBENCH_WEBUI_TOKEN": TOKEN + "-fresh"})
    try:
        for pid in server.workers():
            assert (TOKEN + "-fresh").encode() not in memory(pid)
    finally:
        assert server.stop(signal.SIGTERM) == 0


def memory(pid):
    found = []
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as mem:
        for line in process.read(pid, "maps").decode().splitlines():
            span, rights = line.split()[:2]
            if "r" not in rights or line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            low, high = (int(x, 16) for x in span.split("-"))
            try:
                mem.seek(low)
                found.append(mem.read(high - low))
            except OSError:
                continue
    return b"".join(found)


@pytest.mark.plain
def test_the_memory_search_finds_things(guarded):
    assert b"ssebench" in memory(guarded.workers()[0])


def test_fences_are_said_once(guarded):
    said = [x for x in guarded.out + guarded.err if x.startswith("[Server] Fences: ")]
    assert len(said) == 1 and "seccomp" in said[0].lower()


def test_namespaces(guarded):
    line = [x for x in guarded.out + guarded.err if "Fences" in x][0]
    for pid in guarded.workers():
        apart = [n for n in ("net", "ipc", "uts", "mnt", "pid", "user")
                 if process.namespace(pid, n) != process.namespace(os.getpid(), n)]
        if not apart:
            assert "namespace" in line, "what is missing is said, with the reason: " + line
            pytest.skip("this kernel or container gives no namespaces: " + line)
        if "net" in apart:
            devices = process.read(pid, "net/dev").decode().splitlines()[2:]
            assert [d.split(":")[0].strip() for d in devices] in ([], ["lo"])


def test_root_directory_is_empty(guarded):
    for pid in guarded.workers():
        try:
            names = os.listdir("/proc/%d/root" % pid)
        except PermissionError:
            pytest.skip("not even root may look")
        assert names == []


def test_limits(guarded):
    for pid in guarded.workers():
        limits = process.read(pid, "limits").decode()
        core = [x for x in limits.splitlines() if x.startswith("Max core file size")][0]
        assert core.split()[4:6] == ["0", "0"]
        processes = [x for x in limits.splitlines() if x.startswith("Max processes")][0]
        assert processes.split()[2:4] == ["0", "0"]


def test_listeners_are_the_only_ones(guarded):
    """Nothing listens but the one address: no port of the broker, none of a worker."""
    mine = set()
    for pid in guarded.tree():
        mine |= {w[8:-1] for w in process.descriptors(pid).values() if w.startswith("socket:[")}
    listening = []
    for table in ("tcp", "tcp6"):
        for line in process.read(os.getpid(), "net/" + table).decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in mine:
                listening.append(fields[1])
    assert listening == ["0100007F:%04X" % guarded.address[1]]

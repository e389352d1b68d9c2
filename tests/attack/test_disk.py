"""A hostile or exhausted disk: huge directories and files, odd names, no descriptors, no space."""
import json
import os
import shutil
import subprocess
import threading
import time

import pytest

import harness
import process

MANY = 100_000


def summary(run_id, **more):
    return json.dumps({"run_id": run_id, "task": {"id": "t"}, "config": {"model": "m", "agent": "a"},
                       "started_at": "2026-01-01T00:00:00.000000Z", **more})


def make_run(place, run_id, text=None):
    folder = os.path.join(place.results, "t", "m", "a", run_id)
    os.makedirs(os.path.join(folder, "archive"), exist_ok=True)
    with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as f:
        f.write(text or summary(run_id))
    return folder


def shown(server, run_id):
    return any(r["runId"] == run_id if "runId" in r else run_id in json.dumps(r)
               for r in server.runs())


def sees(server, run_id, seconds=60):
    process.wait_for(lambda: shown(server, run_id), seconds, run_id)


def test_a_hundred_thousand_entries(start, place):
    """Files in one directory, and directories in another: the list comes, and so do new runs."""
    folder = make_run(place, "crowded")
    for i in range(MANY):
        os.close(os.open(os.path.join(folder, "archive", "f%06d" % i), os.O_CREAT | os.O_WRONLY))
    task = os.path.join(place.results, "empty-task")
    for i in range(MANY // 10):
        os.makedirs(os.path.join(task, "d%06d" % i))
    server = start()
    sees(server, "crowded")
    make_run(place, "later")
    sees(server, "later")
    assert process.rss_kib(server.broker()) < 262144


def test_sparse_files(start, place):
    """4 GiB that take no room: over the limit, told as such, memory stays."""
    folder = make_run(place, "sparse")
    for name in ("final.patch", "result.json", "post-review.txt", "archive/dialog.jsonl"):
        with open(os.path.join(folder, name), "wb") as f:
            f.truncate(4 << 30)
    make_run(place, "sparse-summary")
    with open(os.path.join(place.results, "t/m/a/sparse-summary/summary.json"), "r+b") as f:
        f.truncate(4 << 30)
    server = start()
    sees(server, "sparse")
    before = {p: process.rss_kib(p) for p in server.workers() + [server.broker()]}
    for what in ("diff", "result", "review", "agent/dialog", "files"):
        r = server.get("/api/containers/sparse/" + what)
        assert r.status in (200, 404, 413, 500, 502) and len(r.body) < 1 << 20, (what, r)
    assert not shown(server, "sparse-summary")
    for pid, kib in before.items():
        assert process.rss_kib(pid) < kib + 65536


def test_odd_names(start, place):
    """255 bytes, no UTF-8, line feeds, quotes: none hides a good run or breaks the list."""
    make_run(place, "good")
    base = os.fsencode(os.path.join(place.results, "t", "m", "a"))
    for name in (b"n" * 255, b"\xff\xfe", b"a\nb", b'"quoted"', b"<img src=x onerror=alert(1)>",
                 b"\x1b[2J", b"%s%n", b" ", b"-rf", b"..."):
        os.makedirs(os.path.join(base, name))
        with open(os.path.join(base, name, b"summary.json"), "w", encoding="utf-8") as f:
            f.write(summary("x").replace('"run_id": "x", ', ""))
    deep = base
    for _ in range(60):
        deep = os.path.join(deep, b"d" * 40)
        os.makedirs(deep)
    server = start()
    sees(server, "good")
    for run in server.runs():
        json.dumps(run).encode("utf-8")
    assert server.stop() == 0
    assert all(c.isprintable() for line in server.err for c in line)


@pytest.mark.root
def test_permissions_removed(start):
    """Folders that the server's account may not enter hide what is in them and nothing else."""
    place = harness.Place()
    make_run(place, "closed-file")
    make_run(place, "closed-folder")
    make_run(place, "open")
    place.give_to(65534, 65534)
    os.chmod(os.path.join(place.results, "t/m/a/closed-file/summary.json"), 0)
    os.chmod(os.path.join(place.results, "t/m/a/closed-folder"), 0)
    server = start(at=place, uid=65534)
    sees(server, "open")
    assert not shown(server, "closed-folder") and not shown(server, "closed-file")
    os.chmod(os.path.join(place.results, "t/m/a/open"), 0)
    assert server.get("/api/containers/open/diff").status in (404, 500, 502, 403)
    os.chmod(os.path.join(place.results, "t/m/a/closed-folder"), 0o755)
    sees(server, "closed-folder")
    assert server.stop() == 0
    place.close()


def test_disappearing_while_read(start, place):
    """Runs are made, changed and removed in a loop; links are put in their place."""
    make_run(place, "stays")
    server, over = start(), threading.Event()

    def churn():
        i = 0
        while not over.is_set():
            i += 1
            folder = make_run(place, "churn%d" % (i % 5))
            with open(os.path.join(folder, "final.patch"), "w", encoding="utf-8") as f:
                f.write("diff --git a/x b/x\n" * 2000)
            shutil.rmtree(folder, ignore_errors=True)
            try:
                os.symlink("/etc", folder)
                os.unlink(folder)
            except OSError:
                pass
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        sees(server, "stays")
        until = time.monotonic() + 5
        while time.monotonic() < until:
            for i in range(5):
                r = server.get("/api/containers/churn%d/diff" % i)
                assert r.status in (200, 404, 502, 503), r
                assert b"root:" not in r.body
            assert server.get("/api/containers").status == 200
    finally:
        over.set()
        thread.join()
    sees(server, "stays")


@pytest.mark.parametrize("limit", [48, 64, 96])
def test_no_descriptors(place, limit):
    """With so few descriptors the server says so at the start, or serves what it can and lives."""
    make_run(place, "stays")
    env = {**place.env(), "PORT": "0", "SSEBENCH_WEBUI_WORKERS": "2"}
    done = subprocess.Popen(["/bin/sh", "-c", "ulimit -n %d; exec %s" % (limit, harness.SERVER)],
                            env=env, cwd=place.checkout, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = next((x for x in map(bytes.decode, done.stdout) if "Listening" in x), "")
    if not line:
        assert done.wait(40) != 0 and b"[Server]" in done.stderr.read()
        return
    port = int(line.rsplit(":", 1)[1].strip().strip("/"))
    held = []
    try:
        from http_client import Connection, head
        for _ in range(limit * 3):
            held.append(Connection(("127.0.0.1", port), 5))
        time.sleep(0.5)
        for c in held:
            c.close()

        def serves():
            try:
                with Connection(("127.0.0.1", port), 5) as c:
                    c.send(head("GET", "/api/health", [("Host", "localhost"),
                                                       ("Connection", "close")]))
                    return c.response().status == 200
            except Exception:
                return False
        process.wait_for(serves, 40, "service after the rush")
    finally:
        done.terminate()
        assert done.wait(40) == 0
        done.stdout.close()
        done.stderr.close()


@pytest.mark.root
def test_a_full_state_directory(start, place):
    """No room for launches' records: refused with a reason, everything else goes on."""
    os.makedirs(place.state, mode=0o700)
    os.chmod(os.path.dirname(place.state), 0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=200,mode=0700", "none", place.state],
                      capture_output=True).returncode != 0:
        pytest.skip("no mounting here")
    try:
        server = start()
        with open(os.path.join(place.state, "filler"), "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        r = server.post("/api/launch", {"Content-Type": "application/json"}, json.dumps(
            {"task": "tinyjson-overflow-12", "agent": "codex", "model": "gpt-6.1-sol",
             "mode": "sandbox", "source": "local"}).encode())
        assert r.status >= 500 and r.json()["error"], r
        assert server.get("/api/containers").status == 200
        assert server.get("/api/health").status == 200
        assert place.vectors("run ") == []
        assert server.stop() == 0
    finally:
        subprocess.run(["umount", "-l", place.state], check=True)


SECRET = "the secret that no link leads to"
DOCUMENTS = ("summary.json", "final.patch", "result.json", "post-review.txt", "archive/dialog.jsonl")
ROUTES = ("diff", "files", "result", "review", "project", "agent/dialog", "agent/dialog?since=0")


def fill(folder, text):
    os.makedirs(os.path.join(folder, "archive"), exist_ok=True)
    for name in DOCUMENTS[1:]:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


def asked(server, run_id):
    """Every document of a run; the answers."""
    got = [server.get("/api/containers/%s/%s" % (run_id, what)) for what in ROUTES]
    for r in got:
        assert r.status in (200, 400, 404, 413, 500, 502, 503), r
        assert SECRET.encode() not in r.body and b"root:" not in r.body, r
    return got


def test_links_at_every_level(start, place):
    """To files, folders, themselves and away, in place of each folder and each document."""
    outside = os.path.join(place.top, "outside")
    fill(outside, SECRET)
    make_run(place, "good")
    base = os.path.join(place.results, "t", "m", "a")
    for n, name in enumerate(DOCUMENTS[1:]):
        for kind, target in (("abs", os.path.join(outside, name)), ("loop", os.path.basename(name)),
                             ("proc", "/proc/self/environ"), ("up", "../" * 12 + "etc/passwd"),
                             ("sibling", os.path.join(base, "good", "summary.json")),
                             ("fifo-fd", "/dev/fd/0"), ("dir", "/"), ("dangling", "/no/where")):
            folder = make_run(place, "link-%d-%s" % (n, kind))
            os.symlink(target, os.path.join(folder, name))
    with open(os.path.join(outside, "summary.json"), "w", encoding="utf-8") as f:
        f.write(summary("run-outside").replace('"id": "t"', '"id": "%s"' % SECRET))
    os.symlink(outside, os.path.join(base, "run-linked"))
    folder = make_run(place, "archive-linked")
    os.rmdir(os.path.join(folder, "archive"))
    os.symlink(os.path.join(outside, "archive"), os.path.join(folder, "archive"))
    for level in ("", "t", "t/m"):
        os.symlink(outside, os.path.join(place.results, level, "linked"))
        os.symlink("..", os.path.join(place.results, level, "round"))
        os.symlink("round-itself", os.path.join(place.results, level, "round-itself"))
    server = start()
    sees(server, "good")
    text = json.dumps(server.runs())
    assert SECRET not in text and "run-outside" not in text and "run-linked" not in text
    for n in range(len(DOCUMENTS) - 1):
        for kind in ("abs", "loop", "proc", "up", "fifo-fd", "dir", "dangling"):
            asked(server, "link-%d-%s" % (n, kind))
    asked(server, "archive-linked")


def test_links_swapped_in_a_loop(start, place):
    """Each folder above a document, and the document, is a folder and a link by turns."""
    outside = os.path.join(place.top, "outside")
    fill(outside, SECRET)
    fill(make_run(place, "swapped"), "good\n")
    server, over, turns = start(), threading.Event(), [0]
    sees(server, "swapped")
    levels = [os.path.join(place.results, p) for p in (
        "t", "t/m", "t/m/a", "t/m/a/swapped", "t/m/a/swapped/archive", "t/m/a/swapped/final.patch",
        "t/m/a/swapped/archive/dialog.jsonl")]

    def swap():
        while not over.is_set():
            for path in levels:
                os.rename(path, path + ".away")
                os.symlink(outside if os.path.isdir(path + ".away") else
                           os.path.join(outside, "final.patch"), path)
                time.sleep(0.001)
                os.unlink(path)
                os.rename(path + ".away", path)
            turns[0] += 1
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        until, n = time.monotonic() + 6, 0
        while time.monotonic() < until:
            n += sum(r.status == 200 for r in asked(server, "swapped"))
            assert SECRET not in json.dumps(server.runs())
    finally:
        over.set()
        thread.join()
    assert turns[0] > 20 and n > 0
    sees(server, "swapped")


def test_what_is_no_regular_file(start, place):
    """FIFOs, sockets, folders and hard links in place of documents: nobody waits, nobody reads."""
    import socket
    make_run(place, "good")
    kept = []
    for n, name in enumerate(DOCUMENTS):
        for kind in ("fifo", "socket", "folder", "hard"):
            run_id = "odd-%d-%s" % (n, kind)
            folder = make_run(place, run_id)
            path = os.path.join(folder, name)
            if name == "summary.json":
                os.unlink(path)
            if kind == "fifo":
                os.mkfifo(path)
            elif kind == "socket":
                here, s = os.getcwd(), socket.socket(socket.AF_UNIX)
                os.chdir(os.path.dirname(path))  # the path may be longer than an address
                s.bind(os.path.basename(path))
                os.chdir(here)
                kept.append(s)
            elif kind == "folder":
                os.mkdir(path)
            else:  # a name of a file that is nobody else's secret: it is in the run's folder
                with open(os.path.join(place.top, "hard"), "w", encoding="utf-8") as f:
                    f.write("hard\n")
                os.link(os.path.join(place.top, "hard"), path)
    server = start()
    sees(server, "good")
    begun = time.monotonic()
    for n in range(1, len(DOCUMENTS)):
        for kind in ("fifo", "socket", "folder", "hard"):
            for r in asked(server, "odd-%d-%s" % (n, kind)):
                if kind != "hard":
                    assert b"hard" not in r.body
    assert time.monotonic() - begun < 60, "nobody waits for a FIFO"
    assert len(process.descriptors(server.broker())) < 64
    for s in kept:
        s.close()


def test_depth(start, place):
    """2,000 folders in each other, at each level where a run may lie; names of 255 bytes."""
    make_run(place, "good")
    for level in ("", "t", "t/m", "t/m/a", "t/m/a/good", "t/m/a/good/archive"):
        here = os.open(os.path.join(place.results, level), os.O_RDONLY)
        for n in range(2000):
            name = "d" * (255 if n < 10 else 1)
            os.mkdir(name, dir_fd=here)
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
    server = start()
    sees(server, "good")
    make_run(place, "later")
    sees(server, "later")
    asked(server, "good")
    assert process.rss_kib(server.broker()) < 131072
    assert server.stop() == 0
    # rmtree gives up at that depth
    subprocess.run(["rm", "-rf", place.results], check=True)


MOUNTED = """
set -e
mount --make-rprivate /
base=$1/t/m/a
mkdir -p $base/mounted/archive $base/covered $1/t/m/other $1/t/m/a/proc
mount -t tmpfs none $base/mounted/archive
echo '{"seq":1,"type":"message","data":{"text":"mounted"}}' > $base/mounted/archive/dialog.jsonl
mount -t tmpfs none $1/t/m/other
mkdir -p $1/t/m/other/elsewhere
cp $base/covered/summary.json $1/t/m/other/elsewhere/summary.json
mount -t proc none $1/t/m/a/proc || mount --bind /proc $1/t/m/a/proc
touch $base/covered/final.patch
echo 'bound here' > $1/bound
mount --bind $1/bound $base/covered/final.patch
shift
exec "$@"
"""


@pytest.mark.root
def test_other_file_systems_inside(place, monkeypatch):
    """Only root mounts, so what is mounted below the results is served as what lies there; a file
    system of processes among the runs is no run and holds nobody up."""
    make_run(place, "mounted")
    make_run(place, "covered")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespace here")
    wrapper = os.path.join(place.top, "wrapper")
    with open(wrapper, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec unshare -m /bin/sh -c '%s' sh %s %s\n" % (
            MOUNTED.replace("'", "'\\''"), place.results, harness.SERVER))
    os.chmod(wrapper, 0o755)
    monkeypatch.setattr(harness, "SERVER", wrapper)
    server = harness.Server(place)
    try:
        sees(server, "covered")
        sees(server, "mounted")
        assert b"bound here" in asked(server, "covered")[0].body
        assert b"mounted" in asked(server, "mounted")[5].body
        assert not shown(server, "proc") and not shown(server, "self")
        assert server.get("/api/containers").status == 200
    finally:
        assert server.stop() == 0

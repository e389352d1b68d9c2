"""Run directories full of traps: what is no plain file beneath the root reads as missing."""
import json
import os
import shutil
import socket
import threading

import pytest

pytestmark = pytest.mark.once  # behind the route, no path of a request is left


SECRET = "the-secret-outside-of-every-run"
FILES = {  # file in the run directory -> document that shows it
    "archive/dialog.jsonl": "agent/dialog", "final.patch": "diff", "result.json": "result",
    "post-review.txt": "review", "reference.patch": "reference/patch",
}


class Traps:
    """A checkout with one run per trap."""

    def __init__(self, place):
        self.place = place
        self.outside = os.path.join(place.top, "outside")
        os.makedirs(os.path.join(self.outside, "archive"))
        line = json.dumps({"seq": 0, "type": "message", "content": SECRET})
        for name in FILES:
            text = SECRET
            if name.endswith(".jsonl"):
                text = line + "\n"
            elif name == "result.json":
                text = json.dumps({"patch_result": {"status": SECRET}, "runtime_result": {}})
            with open(os.path.join(self.outside, name), "w", encoding="utf-8") as f:
                f.write(text)

    def run(self, run_id):
        folder = os.path.join(self.place.results, "traps", "m", "a", run_id)
        os.makedirs(os.path.join(folder, "archive"))
        with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as f:
            json.dump({"run_id": run_id, "task": {"id": "traps"},
                       "config": {"model": "m", "agent": "a"},
                       "started_at": "2026-01-01T00:00:00.000000Z"}, f)
        return folder


@pytest.fixture
def traps(place):
    return Traps(place)


def plant(kind, path, outside):
    """Put a trap at `path`; None when this account cannot."""
    if kind == "link":
        os.symlink(outside, path)
    elif kind == "relative link":
        os.symlink(os.path.relpath(outside, os.path.dirname(path)), path)
    elif kind == "link to nothing":
        os.symlink("/nowhere/at/all", path)
    elif kind == "link to itself":
        os.symlink(os.path.basename(path), path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(os.path.basename(path))
        os.chdir(here)
    elif kind == "device":
        os.mknod(path, 0o20666, os.makedev(1, 5))  # /dev/zero
    elif kind == "proc link":
        os.symlink("/proc/self/environ", path)
    elif kind == "too large":
        with open(path, "wb") as f:
            f.write(SECRET.encode())
            f.truncate(32 * 1024 * 1024 + 1)
    elif kind == "4 GB of nothing":
        with open(path, "wb") as f:
            f.truncate(4 * 1024**3)


KINDS = ["link", "relative link", "link to nothing", "link to itself", "directory", "fifo",
         "socket", "device", "proc link", "too large", "4 GB of nothing"]


def documents(server, run_id):
    return {name: server.get("/api/containers/%s/%s" % (run_id, what))
            for name, what in FILES.items()}


def check_missing(name, r):
    assert SECRET.encode() not in r.body and b"PATH=" not in r.body, (name, r)
    missing = {"archive/dialog.jsonl": (200, {"entries": []}),
               "result.json": (200, {"available": False}),
               "post-review.txt": (200, {"available": False}),
               "reference.patch": (200, {"diff": ""})}
    if name not in missing and "limit for one file" not in r.text:
        assert r.status == 404, (name, r)
        assert r.json()["error"] == "The run is over and left nothing to show for this"
        return
    status, body = missing.get(name, (404, {}))
    if r.json() == {**body, "truncated": True} or r.status == 404 and "limit for one file" in r.text:
        return  # too large to be shown, and says so
    # A grade that a run never left: the contract has both answers for it.
    assert (r.status, r.json()) == (status, body) or (name == "result.json" and r.status == 404)


@pytest.mark.parametrize("kind", KINDS)
def test_trap_reads_as_missing(traps, start, kind):
    if kind == "device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    folder = traps.run("trap")
    for name in FILES:
        plant(kind, os.path.join(folder, name), os.path.join(traps.outside, name))
    server = start()
    for name, r in documents(server, "trap").items():
        check_missing(name, r)
    assert server.json("/api/health")["status"] == "ok"


@pytest.mark.parametrize("level", ["archive", "run", "agent", "model", "task"])
def test_links_at_every_level(traps, start, level):
    """The directory itself is a link: files behind it are not shown."""
    folder = traps.run("trap")
    for name in FILES:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write("{}\n")
    server = start()
    before = documents(server, "trap")
    assert before["final.patch"].status == 200
    steps = {"archive": os.path.join(folder, "archive"), "run": folder}
    for up, name in enumerate(("agent", "model", "task"), 1):
        steps[name] = os.path.abspath(os.path.join(folder, *[".."] * up))
    target = steps[level]
    behind = os.path.join(traps.place.top, "behind")
    shutil.move(target, behind)
    for name in ("final.patch", "archive/dialog.jsonl", "dialog.jsonl"):
        for found, _, names in os.walk(behind):
            if os.path.basename(name) in names:
                with open(os.path.join(found, os.path.basename(name)), "w",
                          encoding="utf-8") as f:
                    f.write('{"seq": 0, "content": "%s"}\n' % SECRET)
    os.symlink(behind, target)
    for name, r in documents(server, "trap").items():
        assert SECRET.encode() not in r.body, (level, name, r)


def test_a_file_swapped_in_mid_air(traps, start):
    """While requests come in, a file turns into a link and back, thousands of times."""
    folder = traps.run("trap")
    path, link = os.path.join(folder, "final.patch"), os.path.join(folder, "link")
    plain, stop = os.path.join(folder, "plain"), threading.Event()

    def swap():
        while not stop.is_set():
            with open(plain, "w", encoding="utf-8") as f:
                f.write("harmless")
            os.replace(plain, path)
            os.symlink(os.path.join(traps.outside, "final.patch"), link)
            os.replace(link, path)
    server = start()
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        answers = [server.get("/api/containers/trap/diff") for _ in range(300)]
    finally:
        stop.set()
        swapper.join()
    assert {r.status for r in answers} <= {200, 404}
    for r in answers:
        assert SECRET.encode() not in r.body
        assert r.status == 404 or r.json() == {"diff": "harmless"}


def test_results_that_are_a_link_are_not_followed_out(traps, start):
    """A folder below results/ that is a link to a tree of runs elsewhere lists nothing."""
    traps.run("trap")
    elsewhere = os.path.join(traps.place.top, "elsewhere")
    shutil.move(os.path.join(traps.place.results, "traps"), elsewhere)
    os.symlink(elsewhere, os.path.join(traps.place.results, "traps"))
    server = start()
    assert "trap" not in [c["id"] for c in server.runs()]
    assert [c["id"] for c in server.runs()] == [r["run_id"] for r in traps.place.finished()]


def test_hostile_names_in_the_results_tree(traps, start):
    place = traps.place
    for name in (b"\xff\xfe not utf-8", b"<script>alert(1)</script>", b"a" * 255,
                 "новая строка".encode() + b"\n", b"-rf", b"..."):
        folder = os.path.join(place.results.encode(), b"t", name, b"a", b"r")
        os.makedirs(folder)
        with open(os.path.join(folder, b"summary.json"), "w", encoding="utf-8") as f:
            json.dump({"run_id": "run-" + name.hex()[:16], "task": {"id": "t"}}, f)
    server = start()
    ids = {c["id"] for c in server.runs()}
    assert ids == {r["run_id"] for r in place.finished()}
    assert "run-" + b"-rf".hex() in ids


DIALOGS = [
    ("blank", "\n\n", 0), ("not JSON", "{\n[\nx\n", 0),
    ("cut UTF-8", b'{"seq": 1, "content": "\xe2\x82"}\n', 1),
    ("no seq", '{"type": "message"}\n{"seq": "1"}\n{"seq": null}\n', 0),
    ("odd seq", '{"seq": -1}\n{"seq": 0.5}\n{"seq": 1e300}\n{"seq": 1}\n{"seq": 1}\n', None),
    ("no end of line", '{"seq": 0}\n{"seq": 1}', 2),
    ("deep", '{"seq": 0, "x": %s}\n{"seq": 1}\n' % ("[" * 5000 + "]" * 5000), None),
    ("NUL", '{"seq": 0, "content": "a\\u0000b"}\n', 1),
    ("carriage returns", '{"seq": 0}\r\n{"seq": 1}\r\n', 2),
    ("not an object", '5\n"x"\n[1]\nnull\n{"seq": 3}\n', 1),
    ("one huge line", '{"seq": 0, "content": "%s"}\n' % ("x" * 5000000), 1),
]


def test_hostile_dialogs(traps, start):
    for number, (_, text, _) in enumerate(DIALOGS):
        folder = traps.run("dialog-%d" % number)
        with open(os.path.join(folder, "archive", "dialog.jsonl"), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
    server = start()
    pids = sorted(server.workers())
    for number, (label, _, count) in enumerate(DIALOGS):
        r = server.get("/api/containers/dialog-%d/agent/dialog" % number)
        assert r.status == 200, (label, r)
        entries = r.json()["entries"]
        assert count is None or len(entries) == count, (label, entries[:3])
    assert sorted(server.workers()) == pids, "a worker died of it"


def feed_of(server, run_id):
    """Messages of sdk-ws up to the grade, by kind."""
    found = {}
    with server.websocket("/api/containers/%s/sdk-ws" % run_id) as ws:
        while "result" not in found:
            m = ws.receive_json()
            found.setdefault(m["type"], []).append(m)
    return found


def test_a_dialog_over_the_size_limit_is_cut_and_says_so(traps, start):
    folder = traps.run("long")
    with open(os.path.join(folder, "archive", "dialog.jsonl"), "w", encoding="utf-8") as f:
        for i in range(350):
            f.write('{"seq":%d,"content":"%s"}\n' % (i, "y" * 100000))
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as f:
        f.write('{"patch_result":{},"runtime_result":{}}')
    server = start()
    got = server.json("/api/containers/long/agent/dialog")
    assert got["truncated"] is True and len(got["entries"]) == 335  # 33,554,432 bytes hold them
    messages = feed_of(server, "long")["dialog"]
    assert [e["seq"] for m in messages for e in m["entries"]] == list(range(335))
    assert [m.get("truncated") for m in messages].count(True) == 1


def test_large_documents_are_the_small_ones(traps, start):
    """Too large to be parsed in one turn: the same answers, on the route and in the feed."""
    folder = traps.run("large")
    result = {"patch_result": {"status": "failed", "error_log": "e\n\u20ac" * 300000},
              "runtime_result": {"agent_duration": 1}, "config": {"x": "y"}}
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as f:
        json.dump(result, f)
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    summary["task"].update(project="p", task_description={"issue": "i" * 1000000},
                           files={"poc": ["a", 1, ["b"], "c"]})
    with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as f:
        json.dump(summary, f)
    with open(os.path.join(folder, "post-review.txt"), "w", encoding="utf-8") as f:
        f.write("\n" * 200000 + "fine")
    server = start()
    project = {"id": "traps", "project": "p", "language": "", "source": "",
               "task_description": summary["task"]["task_description"], "poc": ["a", "c"]}
    grade = {"available": True, "patch_result": result["patch_result"],
             "runtime_result": result["runtime_result"]}
    base = "/api/containers/large/"
    assert server.json(base + "project") == project
    assert server.json(base + "result") == grade
    assert server.json(base + "review") == {"available": True, "text": "\n" * 200000 + "fine"}
    messages = feed_of(server, "large")
    assert messages["project"] == [{"type": "project", "data": project}]
    assert messages["result"] == [{"type": "result", "result": grade}]
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(result)[:-1])
    with open(os.path.join(folder, "post-review.txt"), "w", encoding="utf-8") as f:
        f.write(" \n" * 200000)
    assert server.get(base + "result").status == 404
    assert server.json(base + "review") == {"available": False}


def test_a_dialog_over_the_entry_limit_says_that_it_is_cut(traps, start):
    folder = traps.run("many")
    with open(os.path.join(folder, "archive", "dialog.jsonl"), "w", encoding="utf-8") as f:
        f.write("".join('{"seq":%d}\n' % n for n in range(200010)))
    server = start()
    r = server.get("/api/containers/many/agent/dialog", timeout=60)
    answer = r.json()
    assert r.status == 200 and len(answer["entries"]) == 200000
    assert len(answer) > 1, "a cut list says that it was cut"


def test_secret_is_readable_where_it_is_no_trap(traps, start):
    """The traps above would catch something: the same content in a plain file is shown."""
    folder = traps.run("plain")
    for name in FILES:
        shutil.copy(os.path.join(traps.outside, name), os.path.join(folder, name))
    server = start()
    for name, r in documents(server, "plain").items():
        assert r.status == 200 and SECRET.encode() in r.body, (name, r)

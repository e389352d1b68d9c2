"""`runs results --json` of the real command and our list of finished runs, field by field."""
import os

import odd_tree
from harness import STANDIN, Place, Server
from report import REAL, call, case, real, real_json, same

# Where we differ on purpose: run ID -> why (each has its row in the README's list).
OURS = {
    "deep-100": "our limit of nesting is 64; no summary of the product has 10",
    "deep-500": "as deep-100",
    "nul-model": "a text with a NUL counts as none",
}


class World:
    def __init__(self):
        self.place = Place(demo=False)
        odd_tree.make(self.place.results)
        self.server = None

    def start(self):
        self.server = Server(self.place, {"SSEBENCH_CLI": REAL})

    def ours(self):
        return [r for r in self.server.runs() if r["source"] == "results"]

    def theirs(self):
        return real_json("runs", "results", "--json", cwd=self.place.checkout)["runs"]

    def close(self):
        if self.server is not None:
            self.server.stop()
        self.place.close()


def as_ours(run):
    """A run of the real command in the words of our list (contract 10.4)."""
    known = run["status"] if run["status"] in ("passed", "failed", "error") else None
    return {"id": run["run_id"], "runId": run["run_id"], "name": run["run_id"],
            "taskId": run["task"], "model": unknown(run["model"]), "agent": unknown(run["agent"]),
            "mode": run["mode"], "referenceRun": run["reference_run"], "status": "exited",
            "createdAt": run["started_at"] or "", "startedAt": run["started_at"], "image": "",
            "source": "results", "grade": known}


def unknown(text):
    return "unknown" if text is None else text


def winners(runs):
    """Of several with one ID the first, which started last (contract 4.4)."""
    first = {}
    for run in runs:
        first.setdefault(run["run_id"], run)
    return list(first.values())


def same_runs(world):
    got = world.ours()
    want = [as_ours(r) for r in winners(world.theirs()) if r["run_id"] not in OURS]
    got = [r for r in got if r["id"] not in OURS]
    ids = lambda runs: sorted(r["id"] for r in runs)  # noqa: E731
    differ = ["only ours: %s" % i for i in ids(got) if i not in ids(want)]
    differ += ["not ours: %s" % i for i in ids(want) if i not in ids(got)]
    for run in want:
        mine = ([r for r in got if r["id"] == run["id"]] or [run])[0]
        # Without a status the contract derives a grade, which the command's list does not.
        keys = [k for k in run if not (k == "grade" and run[k] is None)]
        differ += ["%s.%s: %r, real %r" % (run["id"], k, mine[k], run[k])
                   for k in keys if mine[k] != run[k]]
    same(differ, [], "fields")
    same([r["id"] for r in got], [r["id"] for r in want], "order")


def standin_same(world):
    """The stand-in is held to the same tree."""
    status, out, _ = call([STANDIN, "runs", "results", "--json"], cwd=world.place.checkout,
                          env=world.place.env())
    same(status, 0, "status")
    import json
    key = lambda r: (r["started_at"] or "", r["run_id"], r["dir"])  # noqa: E731
    got = {r["dir"]: r for r in json.loads(out)["runs"]}
    want = {r["dir"]: r for r in world.theirs()}
    differ = [os.path.basename(d) for d in set(got) ^ set(want)]
    same(sorted(differ), [], "listed by one only")
    for folder in want:
        same(list(got[folder].items()), list(want[folder].items()), folder)
    same(sorted(got.values(), key=key), sorted(want.values(), key=key))


def documents(world):
    """Every run of our list answers for its documents, whatever its summary says."""
    for run in world.ours():
        for what in ("project", "diff", "files", "agent/dialog", "result", "review"):
            status = world.server.get("/api/containers/%s/%s" % (run["id"], what)).status
            if status not in (200, 404):
                raise AssertionError("%s of %s: %d" % (what, run["id"], status))


def change(world):
    """A run more, a run less and a run changed show alike in both."""
    import shutil
    import time
    results = world.place.results
    odd_tree.write(results, "t/new/a/new", odd_tree.as_text(odd_tree.summary("new")))
    shutil.rmtree(os.path.join(results, "shallow"))
    odd_tree.write(results, "t/m/a/no-patch", odd_tree.as_text(
        odd_tree.summary("no-patch", started_at="2027-01-01T00:00:00Z")))
    until = time.monotonic() + 10
    while "new" not in [r["id"] for r in world.ours()] and time.monotonic() < until:
        time.sleep(0.1)
    same_runs(world)


def without_results(world):
    status, out, err = real("runs", "results", "--json", cwd="/tmp")
    same((status, out, err), (0, '{"runs": []}\n', ""))


# Where the real command stops as a whole, and we go on: folder -> summary.
BREAKING = {
    "t/m/a/deep": '{"a": ' + "[" * 200000 + "]" * 200000 + "}",
    "t/m/a/lone": odd_tree.as_text(odd_tree.summary("lone", task={"id": "PLACE"})).replace(
        "PLACE", "\\ud800"),
}


def breaking(world, folder):
    """One hostile summary ends the real listing; ours leaves out or repairs that run only."""
    import shutil
    odd_tree.write(world.place.results, folder, BREAKING[folder])
    try:
        status, out, _ = real("runs", "results", "--json", cwd=world.place.checkout)
        same((status, out), (1, ""), "the real command")
        import time
        time.sleep(4)  # our next look at the directories
        assert len(world.ours()) > 20
        same(world.server.json("/api/health")["status"], "ok")
    finally:
        shutil.rmtree(os.path.join(world.place.results, folder))


def linked(world):
    """The real command reads summary.json through a link; we follow none (contract 4.4)."""
    outside = os.path.join(world.place.top, "outside.json")
    with open(outside, "w", encoding="utf-8") as f:
        f.write(odd_tree.as_text(odd_tree.summary("linked")))
    folder = os.path.join(world.place.results, "t/m/a/linked")
    os.makedirs(folder)
    os.symlink(outside, os.path.join(folder, "summary.json"))
    assert "linked" in [r["run_id"] for r in world.theirs()]
    import time
    time.sleep(4)
    assert "linked" not in [r["id"] for r in world.ours()]


def cases():
    world = World()
    try:
        case("results: stand-in and real command on every oddity", standin_same, world)
        world.start()
        case("results: our list and the real command, field by field", same_runs, world)
        case("results: documents of odd runs", documents, world)
        case("results: after a change", change, world)
        case("results: no results folder", without_results, world)
        for folder in BREAKING:
            case("results: %s ends the real command, not us" % os.path.basename(folder),
                 breaking, world, folder)
        case("results: a linked summary is not read", linked, world)
    finally:
        world.close()

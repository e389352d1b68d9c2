"""The real `ssebench run` behind our launch route: every option that we pass is one that it takes.

A run itself needs images and a proxy; so this goes as far as the command's own refusal of the
task, which comes after its parser has accepted the whole line (a parser's refusal is status 2)."""
import os

import harness
import launch_help as lh
from report import REAL, case, same

OPTIONS = [
    ("least", {}),
    ("reference", {"agent": "reference", "model": None}),
    ("sidecar", {"mode": "sidecar"}),
    ("catalog", {"source": "remote"}),
    ("all", {"timeout": 600, "difficulty": 3, "egress": "open", "plugins": ["artifact", "oracle"]}),
    ("restricted", {"egress": "restricted", "difficulty": 0, "timeout": 604800}),
]


def accepted(server, more):
    body = {**lh.body("tinyjson-overflow-12"), **more}
    r = lh.post(server, "", {k: v for k, v in body.items() if v is not None})
    same(r.status, 200, "launch")
    ended = lh.wait_end(server, r.json()["launch_id"], 120)
    same(ended["exitCode"], 1, "status of %s: %r" % (
        ended["command"], lh.logs(server, ended["launch_id"])[-3:]))
    # The end is told at once, the verdict after one more look at the listing.
    failed = lh.wait_status(server, ended["launch_id"], "failed", 120)
    same(failed["error"], "Process exited with code 1", "error")


def cases():
    place = harness.Place()
    server = harness.Server(place, {"SSEBENCH_CLI": REAL})
    try:
        for name, more in OPTIONS:
            case("launch: the real parser takes " + name, accepted, server, more)
        case("launch: doctor's report is the real one", lambda: same(
            sorted(server.json("/api/launch/doctor")["report"]), ["checks", "models"], "report"))
    finally:
        server.stop()
        place.close()


if __name__ == "__main__":
    os.environ.setdefault("SSEBENCH_BUILD", "/var/lab/build")
    cases()

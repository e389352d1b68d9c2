"""Search over dialogs, and how a connection looks from the server's side."""
import json
import os

import pytest

import harness
from harness import TOKEN


def dialog(place, task, run_id, entries, started="2026-01-01T00:00:00.000000Z"):
    folder = os.path.join(place.results, task, "m", "codex", run_id)
    os.makedirs(os.path.join(folder, "archive"))
    with open(os.path.join(folder, "archive", "dialog.jsonl"), "wb") as f:
        f.write(b"".join(e if isinstance(e, bytes) else json.dumps(e).encode() + b"\n"
                         for e in entries))
    with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as f:
        json.dump({"task": {"id": task}, "config": {"model": "m", "agent": "codex"},
                   "run_id": run_id, "started_at": started}, f)


def entry(seq, text):
    return {"seq": seq, "ts": "2026-01-01T00:00:00Z", "type": "message", "content": text}


def test_finds_entries_newest_run_first(start, place):
    dialog(place, "t", "old", [entry(0, "nothing"), entry(1, "a Wombat sleeps")])
    dialog(place, "t", "new", [entry(7, "wombats, wombats")], "2026-02-01T00:00:00.000000Z")
    answer = start().json("/api/search?q=WOMBAT")
    assert [(r["id"], r["seq"], r["excerpt"]) for r in answer["results"]] == [
        ("new", 7, "wombats, wombats"), ("old", 1, "a Wombat sleeps")]
    assert answer["complete"] and answer["scanned"] == answer["total"] >= 2
    assert answer["results"][0]["taskId"] == "t" and answer["results"][0]["model"] == "m"


def test_text_beyond_ascii_in_either_spelling(start, place):
    dialog(place, "t", "r", [entry(0, "größer"), (json.dumps(entry(1, "GRößE"),
           ensure_ascii=False) + "\n").encode(), entry(2, "grosser")])
    answer = start().json("/api/search?q=gr%C3%B6%C3%9F")
    assert [r["seq"] for r in answer["results"] if r["id"] == "r"] == [0, 1]


def test_rubbish_is_passed_over(start, place):
    dialog(place, "t", "r", [b"wombat\n", b"{\"seq\":1,\"content\":\"wombat\n", b"\xff\xfewombat\n",
                             b"[" * 5000 + b"wombat\n", entry(4, "wombat"), b"{\"wombat\":1}\n",
                             json.dumps(entry(5, "wombat")).encode()])
    answer = start().json("/api/search?q=wombat")
    assert [r["seq"] for r in answer["results"]] == [4, 5]


def test_what_is_left_out_is_told(start, place):
    dialog(place, "t", "many", [entry(i, "wombat") for i in range(50)])
    dialog(place, "t", "long", [entry(0, "wombat" + "x" * 3000000), entry(1, "wombat")])
    server = start()
    answer = server.json("/api/search?q=wombat")
    assert not answer["complete"]
    seqs = {run: [r["seq"] for r in answer["results"] if r["id"] == run] for run in ("many", "long")}
    assert seqs["many"] == list(range(20)) and seqs["long"] == [1]
    limited = server.json("/api/search?q=wombat&limit=3")
    assert len(limited["results"]) == 3 and not limited["complete"]


@pytest.mark.parametrize("query", ["", "?q=", "?q=" + "x" * 201, "?q=a&q=b", "?q=a&limit=0",
                                   "?q=a&limit=1001", "?q=a&limit=x", "?q=a&budget=-1", "?q=a&budget=1e3"])
def test_bad_parameters(shared, query):
    r = shared.get("/api/search" + query)
    assert r.status == 400 and "Invalid" in r.json()["error"]


def test_links_are_not_followed(start, place):
    dialog(place, "t", "r", [entry(0, "x")])
    archive = os.path.join(place.results, "t", "m", "codex", "r", "archive")
    secret = os.path.join(place.top, "secret.jsonl")
    with open(secret, "w", encoding="utf-8") as f:
        f.write(json.dumps(entry(0, "wombat")) + "\n")
    os.remove(os.path.join(archive, "dialog.jsonl"))
    os.symlink(secret, os.path.join(archive, "dialog.jsonl"))
    assert start().json("/api/search?q=wombat")["results"] == []


def test_connection_report(start):
    server = start({"SSEBENCH_WEBUI_TOKEN": TOKEN,
                    "SSEBENCH_WEBUI_CORS_ORIGINS": "https://bench.example.org"})
    report = server.get("/api/connection", {"X-Forwarded-For": "203.0.113.9"}).json()
    assert report["tokenRequired"] and report["tokenFrom"] == "header"
    assert report["forwardedFor"] == "203.0.113.9" and report["peer"] == "127.0.0.1"
    assert report["allowedOrigins"] == ["https://bench.example.org:443"]
    assert report["basePath"] == (harness.BASE_PATH or "/") and report["origin"] is None
    assert TOKEN not in json.dumps(report)


def test_sorting_many_runs_asks_nothing_of_the_system(start, place):
    """The C library's sort asks once how much memory there is, which a worker may not."""
    for i in range(300):
        dialog(place, "t%03d" % (i * 7 % 300), "many-%03d" % (i * 11 % 300), [],
               "2026-01-01T00:%02d:%02d.000000Z" % (i * 13 % 60, i * 17 % 60))
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    worker = server.workers()
    for query in ("", "?limit=300&sort=task", "?limit=300&sort=created&order=asc"):
        assert len(server.json("/api/containers" + query)["containers"]) >= 300
    assert server.workers() == worker

"""The feed of a run that goes on: every entry once and in order, whatever happens to it."""
import json
import os
import time

import pytest

from liar import Liar, answer
from process import wait_for
from test_live import RUN, begin

FEED = "/api/containers/%s/sdk-ws" % RUN


@pytest.fixture
def liar():
    daemon = Liar()
    daemon.say = {"/version": answer('{"version":"1.2.3"}'),
                  "/project": answer('{"id":"t","project":"p","language":"c","source":"/src"}'),
                  "/files": answer('{"files":[]}'), "/diff": answer('{"diff":""}'),
                  "/result": answer('{"available":false}'),
                  "/agent/dialog": answer('{"entries":[]}')}
    yield daemon
    daemon.close()


def entry(seq, text="x"):
    return {"seq": seq, "ts": "2026-01-01T00:00:00Z", "type": "message", "content": text}


class Dialog:
    """The dialog file of the run, written by the test in place of the agent."""

    def __init__(self, place):
        folder = next(f for f, _, _ in os.walk(place.results) if f.endswith("/" + RUN))
        self.folder = os.path.join(folder, "archive")
        os.makedirs(self.folder, exist_ok=True)
        self.path = os.path.join(self.folder, "dialog.jsonl")

    def write(self, data, mode="ab"):
        with open(self.path, mode) as f:
            f.write(data)

    def add(self, *seqs):
        self.write(b"".join(json.dumps(entry(s)).encode() + b"\n" for s in seqs))


class Viewer:
    def __init__(self, server, query=""):
        self.ws = server.websocket(FEED + query)
        self.seqs, self.kinds, self.messages = [], [], []

    def read(self):
        m = self.ws.receive_json()
        self.messages.append(m)
        self.kinds.append(m["type"])
        if m["type"] == "dialog":
            self.seqs += [e["seq"] for e in m["entries"]]
            assert not m["entries"] or m["lastSeq"] == self.seqs[-1]
        return m

    def until_seq(self, seq):
        while not self.seqs or self.seqs[-1] < seq:
            self.read()
        return self.seqs

    def until(self, kind, **fields):
        while True:
            m = self.read()
            if m["type"] == kind and all(m.get(k) == v for k, v in fields.items()):
                return m

    def close(self):
        self.ws.__exit__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture
def quiet(start, place, liar):
    """A run whose dialog the test writes: an agent that says nothing (dummy)."""
    place.knobs(agent_seconds=300, rubbish={"endpoint": liar.url + "\n"})
    place.start_run(RUN, agent="dummy", agent_seconds=300)
    server = start()
    wait_for(lambda: any(r["id"] == RUN and r["status"] == "running" for r in server.runs()),
             what="the run is listed")
    return server


def test_order_of_the_first_messages(quiet, place):
    Dialog(place).add(0, 1)
    with Viewer(quiet) as v:
        v.until("result")
        v.until_seq(1)
        kinds = [k for i, k in enumerate(v.kinds) if v.kinds[i - 1:i] != [k]]
        assert kinds[:4] == ["status", "project", "files", "diff"] or \
            kinds[:2] == ["status", "dialog"], kinds
        ready = [m for m in v.messages if m["type"] == "status"][-1]
        assert ready == {"type": "status", "status": "ready", "sdkVersion": "1.2.3"}
        assert v.seqs == [0, 1]


def test_what_is_written_is_pushed(quiet, place):
    dialog = Dialog(place)
    with Viewer(quiet) as v:
        v.until("status", status="ready")
        for seq in range(50):
            dialog.add(seq)
            v.until_seq(seq)
        assert v.seqs == list(range(50))


def test_half_a_line_waits_for_its_other_half(quiet, place):
    dialog = Dialog(place)
    with Viewer(quiet) as v:
        v.until("status", status="ready")
        line = json.dumps(entry(0, "\u20ac" * 10), ensure_ascii=False).encode() + b"\n"
        for i in range(len(line)):
            dialog.write(line[i:i + 1])
        assert v.until_seq(0) == [0]
        assert v.messages[-1]["entries"][0]["content"] == "\u20ac" * 10


def test_repeated_and_older_entries_come_once(quiet, place):
    dialog = Dialog(place)
    with Viewer(quiet) as v:
        v.until("status", status="ready")
        dialog.write(b"not JSON\n[1]\n{\"seq\":\"0\"}\n{}\n\n\xff\n")
        dialog.add(0, 0, 1, 0.5, 1, -3, 2, 1.5, 2.5, 3)
        assert v.until_seq(3) == [0, 1, 2, 2.5, 3]


@pytest.mark.parametrize("how", ["rename", "truncate", "unlink"])
def test_a_replaced_file_repeats_nothing(quiet, place, how):
    dialog = Dialog(place)
    dialog.add(*range(20))
    with Viewer(quiet) as v:
        v.until_seq(19)
        again = b"".join(json.dumps(entry(s)).encode() + b"\n" for s in range(10, 25))
        if how == "rename":
            with open(dialog.path + ".new", "wb") as f:
                f.write(again)
            os.replace(dialog.path + ".new", dialog.path)
        elif how == "truncate":
            dialog.write(b"", "wb")
            time.sleep(0.3)
            dialog.write(again)
        else:
            os.unlink(dialog.path)
            dialog.write(again)
        v.until_seq(24)
        dialog.add(25)
        assert v.until_seq(25) == list(range(26))


def test_a_link_in_its_place_is_not_followed(quiet, place):
    dialog = Dialog(place)
    secret = os.path.join(place.top, "secret")
    with open(secret, "w", encoding="utf-8") as f:
        f.write(json.dumps(entry(7)) + "\n")
    dialog.add(0)
    with Viewer(quiet) as v:
        v.until_seq(0)
        os.unlink(dialog.path)
        os.symlink(secret, dialog.path)
        time.sleep(0.5)
        os.unlink(dialog.path)
        dialog.add(0, 1)
        assert v.until_seq(1) == [0, 1]


def test_late_and_returning_viewers(quiet, place):
    dialog = Dialog(place)
    dialog.add(*range(3000))
    with Viewer(quiet) as first:
        first.until_seq(2999)
        with Viewer(quiet) as late, Viewer(quiet, "?since=2990") as back, \
                Viewer(quiet, "?since=5000") as ahead:
            late.until_seq(2999)
            back.until_seq(2999)
            ahead.until("status", status="ready")
            dialog.add(3000, 3001, 5001)
            assert first.until_seq(5001) == list(range(3002)) + [5001]
            assert late.until_seq(5001) == list(range(3002)) + [5001]
            assert back.until_seq(5001) == list(range(2991, 3002)) + [5001]
            assert ahead.until_seq(5001) == [5001]


def test_a_viewer_that_does_not_read_misses_nothing(quiet, place):
    dialog = Dialog(place)
    text = "y" * 4000
    with Viewer(quiet) as slow, Viewer(quiet) as quick:
        slow.until("status", status="ready")
        quick.until("status", status="ready")
        for seq in range(3000):
            dialog.write(json.dumps(entry(seq, text)).encode() + b"\n")
        assert quick.until_seq(2999) == list(range(3000))
        assert slow.until_seq(2999) == list(range(3000))


def test_a_line_of_many_megabytes(quiet, place):
    dialog = Dialog(place)
    with Viewer(quiet) as v:
        v.until("status", status="ready")
        dialog.write(json.dumps(entry(0, "z" * (20 << 20))).encode() + b"\n")
        dialog.add(1)
        assert v.until_seq(1) == [0, 1]


def test_deep_entries_are_skipped(quiet, place):
    dialog = Dialog(place)
    with Viewer(quiet) as v:
        v.until("status", status="ready")
        dialog.write(b'{"seq":0,"a":' + b"[" * 100000 + b"]" * 100000 + b"}\n")
        dialog.add(1)
        assert v.until_seq(1) == [1]


@pytest.fixture
def distant(start, place, liar):
    """No run directory on this host (as with Kubernetes): the daemon has everything, `said`."""
    place.knobs(extra=[{"id": RUN, "name": RUN, "state": "running", "task": "t", "model": "m",
                        "agent": "a", "mode": "sandbox", "reference_run": False,
                        "created_at": "2026-01-01T00:00:00Z", "image": "i",
                        "results_dir": None, "run_id": RUN}],
                rubbish={"endpoint": liar.url + "\n"})
    liar.said, made = [], {}

    def dialog(connection):
        since = liar.asked[-1].partition("since=")[2]
        since = float(since) if since else -1
        if (since, len(liar.said)) not in made:
            made[since, len(liar.said)] = answer(json.dumps(
                {"entries": [e for e in liar.said if e["seq"] > since]}))
        connection.sendall(made[since, len(liar.said)])
    liar.say["/agent/dialog"] = dialog
    server = start()
    wait_for(lambda: any(r["id"] == RUN for r in server.runs()), what="the run is listed")
    return server


def whole_dialog(server):
    """The route's answer; on a loaded machine 40 MB may take longer than its time."""
    path = "/api/containers/%s/agent/dialog" % RUN
    return wait_for(lambda: (r := server.get(path)).status == 200 and r, seconds=60,
                    what="the dialog").json()


def test_the_daemon_alone(distant, liar):
    liar.said += [entry(i) for i in range(5)]
    with Viewer(distant) as v:
        v.until_seq(4)
        liar.said += [entry(5), entry(5), entry(3), entry(6)]
        v.until_seq(6)
        with Viewer(distant) as late, Viewer(distant, "?since=5") as back:
            assert late.until_seq(6) == list(range(7))
            assert back.until_seq(6) == [6]
            liar.said.append(entry(7))
            assert late.until_seq(7) == list(range(8))
            assert back.until_seq(7) == [6, 7]
        assert v.until_seq(7) == list(range(8))
        liar.say["/diff"] = answer('{"diff":"new","type":"dialog"}')
        assert v.until("diff") == {"type": "diff", "diff": "new"}


def test_a_failed_question_loses_no_past(distant, liar):
    """A late viewer's question is not answered: it is asked again, and nothing is left out."""
    liar.said += [entry(i) for i in range(50)]
    with Viewer(distant) as v:
        v.until_seq(49)
        honest, failures = liar.say["/agent/dialog"], []

        def dialog(connection):
            if "since=" not in liar.asked[-1] and len(failures) < 2:
                failures.append(answer("{}", "503 Service Unavailable") if failures else b"rubbish")
                connection.sendall(failures[-1])
            else:
                honest(connection)
        liar.say["/agent/dialog"] = dialog
        with Viewer(distant) as late:
            assert late.until_seq(49) == list(range(50))
            assert len(failures) == 2
            liar.said.append(entry(50))
            assert late.until_seq(50) == list(range(51))


def test_what_cannot_be_used_hides_nothing_else(distant, liar):
    """A diff over the limit and files that are no JSON: the dialog comes all the same."""
    liar.say["/diff"] = answer('{"diff":"%s"}' % ("x" * (33 << 20)))
    liar.say["/files"] = answer("hello")
    liar.said.append(entry(0))
    with Viewer(distant) as v:
        v.until_seq(0)
        liar.said.append(entry(1))
        assert v.until_seq(1) == [0, 1]


LONGEST = 256 << 10
MIXED = [100, 60000, 70000, 100, 300000, 100, 100, 2000000, 63000, 63000, 3, 3] * 3


@pytest.mark.parametrize("source", ["file", "daemon"])
def test_a_message_is_long_only_for_a_long_entry(request, place, liar, source):
    """For who is there when they come, and for who comes later."""
    server = request.getfixturevalue("quiet" if source == "file" else "distant")
    new = [entry(i, "y" * size) for i, size in enumerate(MIXED)]
    with Viewer(server) as first:
        first.until("status", status="ready")
        if source == "file":
            Dialog(place).write(b"".join(json.dumps(e).encode() + b"\n" for e in new))
        else:
            liar.said += new
        assert first.until_seq(len(new) - 1) == list(range(len(new)))
        with Viewer(server) as late:
            assert late.until_seq(len(new) - 1) == list(range(len(new)))
            for m in first.messages + late.messages:
                assert len(json.dumps(m)) <= LONGEST or len(m["entries"]) == 1
    assert sum(len(m["entries"]) > 1 for m in late.messages if m["type"] == "dialog") > 5


def test_a_dialog_over_the_limit_of_other_files(quiet, place):
    """It had 40 MiB before anybody looked: all of it comes."""
    text = "y" * 100000
    Dialog(place).write(b"".join(json.dumps(entry(i, text)).encode() + b"\n"
                                 for i in range(420)))
    with Viewer(quiet) as v:
        assert v.until_seq(419) == list(range(420))
        Dialog(place).add(420)
        assert v.until_seq(420) == list(range(421))
    assert not any(m.get("truncated") for m in v.messages)


def test_an_answer_over_the_limit_is_asked_for_in_parts(distant, liar):
    """The feed has all of it; the route, which answers once, says that it is cut."""
    liar.said += [entry(i, "y" * 100000) for i in range(360)]
    with Viewer(distant) as v, Viewer(distant, "?since=100") as back:
        assert v.until_seq(359) == list(range(360))
        assert back.until_seq(359) == list(range(101, 360))
    assert not any(m.get("truncated") for m in v.messages + back.messages)
    got = whole_dialog(distant)
    assert got["truncated"] is True
    assert got["entries"] == liar.said[:len(got["entries"])] and len(got["entries"]) > 300


def test_an_entry_over_the_limit_of_an_answer_ends_the_dialog(distant, liar):
    liar.said += [entry(0), entry(1, "z" * (33 << 20)), entry(2)]
    with Viewer(distant) as v:
        v.until("dialog", truncated=True)
        assert v.seqs == [0]
        with Viewer(distant) as late:
            late.until("dialog", truncated=True)
            assert late.seqs == [0]
    assert whole_dialog(distant) == {"entries": [entry(0)], "truncated": True}


@pytest.mark.parametrize("source", ["file", "daemon"])
def test_past_the_limit_it_is_cut_and_says_so(request, place, liar, source):
    server = request.getfixturevalue("quiet" if source == "file" else "distant")
    with Viewer(server) as v:
        v.until("status", status="ready")
        if source == "file":
            Dialog(place).write(b"".join(b'{"seq":%d}\n' % i for i in range(200010)))
        else:
            liar.said += [{"seq": i} for i in range(200010)]
        v.until("dialog", truncated=True)
        assert v.seqs == list(range(200000))


def test_not_ready_yet(quiet, liar, place):
    good = liar.say["/version"]
    liar.say["/version"] = answer("{}", "503 Service Unavailable")
    with Viewer(quiet) as v:
        assert v.read() == {"type": "status", "status": "connecting"}
        assert v.until("status", retryAttempt=2)["status"] == "connecting"
        liar.say["/version"] = good
        v.until("status", status="ready")
        assert "project" in [v.read()["type"] for _ in range(3)]


def test_a_run_that_ends_goes_on_from_its_files(start, place):
    server = begin(start, place, seconds=3)
    with Viewer(server) as v:
        v.until("status", status="ready")
        last = v.until("result")
        while not last["result"]["available"]:
            last = v.until("result")
        place.cli("runs", "stop", RUN)
        wait_for(lambda: [r for r in server.runs() if r["id"] == RUN
                          and r["status"] == "exited"], what="it is over")
        v.until("result")  # the last message that the files add
        entries = server.json("/api/containers/%s/agent/dialog" % RUN)["entries"]
        assert v.seqs == [e["seq"] for e in entries]
        assert "error" not in [m.get("status") for m in v.messages]


def test_a_worker_dies(quiet, place):
    dialog = Dialog(place)
    dialog.add(*range(10))
    v = Viewer(quiet)
    v.until_seq(9)
    for pid in quiet.workers():
        os.kill(pid if isinstance(pid, int) else pid[0], 9)
    dialog.add(10)
    wait_for(lambda: quiet.get("/api/health").status == 200, what="a new worker")
    with Viewer(quiet, "?since=%d" % v.seqs[-1]) as again:
        dialog.add(11)
        assert again.until_seq(11) == [10, 11]


def test_the_broker_dies(quiet, place):
    dialog = Dialog(place)
    dialog.add(0)
    with Viewer(quiet) as v:
        v.until_seq(0)
        os.kill(quiet.broker() if callable(quiet.broker) else quiet.broker, 9)
        dialog.add(1)
        assert v.until_seq(1) == [0, 1]
        dialog.add(2)
        assert v.until_seq(2) == [0, 1, 2]


def test_connections_are_counted(quiet):
    with Viewer(quiet) as a, Viewer(quiet) as b:
        a.until("status", status="ready")
        b.until("status", status="ready")
        got = quiet.json("/api/sdk/connections")
        assert got["totalConnections"] == 2
        assert all(c["containerId"] == RUN for c in got["connections"])
    wait_for(lambda: quiet.json("/api/sdk/connections")["totalConnections"] == 0,
             what="nobody watches")


def test_heartbeats_only_for_those_who_ask(quiet):
    with Viewer(quiet, "?heartbeat=1") as v, Viewer(quiet) as plain:
        assert v.read() == {"type": "heartbeat", "intervalMs": 20000}
        plain.until("result")
        assert "heartbeat" not in plain.kinds

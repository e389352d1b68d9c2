"""WebSockets: handshake, framing, limits; a run's log and a run's data."""
import base64
import json
import os
import socket
import struct
import threading
import time

import pytest

import process
from harness import STANDIN
from http_client import Closed, Connection, head
from ws_client import CLOSE, PING, PONG, TEXT, WebSocket, handshake_headers

RUN = "hostile-output.1"  # a finished run of the demonstration
LOGS = "/api/containers/%s/logs-ws" % RUN
def to_end(ws):
    """Messages of a log socket up to `end` or `error`."""
    messages = []
    while not messages or messages[-1]["type"] == "log":
        messages.append(ws.receive_json())
    return messages


def lines_of(messages):
    return [m["data"] for m in messages if m["type"] == "log"]


def answers_ping(ws, payload=b"still there?"):
    ws.send_frame(PING, payload)
    while True:
        _, opcode, got = ws.read_frame()
        if opcode == PONG and got == payload:
            return True
        if opcode == CLOSE:
            return False


# --- handshake --------------------------------------------------------------------------

def test_no_subprotocol_offered_none_selected(shared):
    with shared.websocket(LOGS) as ws:
        assert ws.protocol is None


def test_the_token_is_never_selected(guarded):
    token = "ssebench.token." + base64.urlsafe_b64encode(
        guarded.token.encode()).decode().rstrip("=")
    for offered, selected in (([token], None), ([token, "ssebench"], "ssebench"),
                              (["ssebench", token], "ssebench"), (["other", token], None)):
        with guarded.websocket(LOGS, protocols=offered) as ws:
            assert ws.protocol == selected, offered
            assert "token" not in str(ws.answer.headers)


def test_second_request_of_a_connection(shared):
    with shared.connect() as c:
        c.send(head("GET", shared.base + "/api/health", [("Host", shared.host)]))
        assert c.response().status == 200
        headers, _ = handshake_headers(shared.host)
        assert c.raw(head("GET", shared.base + LOGS, headers)).status == 101
        assert c.read_exactly(1) == b"\x81"


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_frames_in_the_segment_of_the_handshake(shared, cut):
    """All of the first frame but its last `cut` bytes comes with the handshake."""
    ping = b"\x89\x85\0\0\0\0early"  # a mask of zeros is a mask
    headers, _ = handshake_headers(shared.host)
    with shared.connect() as c:
        c.send(head("GET", shared.base + LOGS, headers) + ping[:len(ping) - cut])
        assert c.response().status == 101
        c.send(ping[len(ping) - cut:])
        ws = object.__new__(WebSocket)
        ws.connection = c
        while True:
            _, opcode, payload = ws.read_frame()
            if opcode == PONG:
                break
        assert payload == b"early"


# --- keeping alive (framing: tests/attack/test_conformance.py) ----------------------------

@pytest.mark.once
def test_pings_keep_a_socket_and_find_a_dead_one(shared):
    with shared.websocket(LOGS, timeout=60) as alive, \
            shared.websocket(LOGS, timeout=60) as silent:
        pings = 0
        while pings < 3:
            _, opcode, payload = alive.read_frame()
            if opcode == PING:
                pings += 1
                alive.send_frame(PONG, payload)
        silent_pings = 0
        with pytest.raises(Closed):
            while True:
                silent_pings += silent.read_frame()[1] == PING
        assert silent_pings == 1
        assert answers_ping(alive)


# --- the log of a finished run ------------------------------------------------------------

def run_dir(place, run_id):
    for folder, _, files in os.walk(place.results):
        if "summary.json" in files:
            with open(os.path.join(folder, "summary.json"), encoding="utf-8") as f:
                if json.load(f).get("run_id") == run_id:
                    return folder
    raise AssertionError("no run directory of " + run_id)


def kept_lines(folder):
    lines = []
    for name in ("agent.log", "evaluator.log"):
        try:
            with open(os.path.join(folder, name), "rb") as f:
                text = f.read().decode("utf-8", "replace")
        except FileNotFoundError:
            continue
        if text.strip():
            lines += ["==> %s <==" % name] + [w for w in text.split("\n") if w.strip()]
    return lines


def test_kept_logs(shared):
    for run in shared.runs():
        with shared.websocket("/api/containers/%s/logs-ws" % run["id"]) as ws:
            messages = to_end(ws)
            assert lines_of(messages) == kept_lines(run_dir(shared.place, run["id"]))
            assert messages[-1] == {"type": "end", "data": {"exitCode": 0}}
            assert answers_ping(ws), "it stays open after the end"


@pytest.mark.once
def test_odd_kept_logs(start, place):
    folder = run_dir(place, RUN)
    long_line = "€" * 200000
    with open(os.path.join(folder, "agent.log"), "wb") as f:
        f.write(b"\n  \n\r\nfirst\r\n50%\r100%\n\x1b[31mred\x1b[0m\nbad \xff\xfe bytes\n" +
                long_line.encode() + b"\nlast without an end")
    with open(os.path.join(folder, "evaluator.log"), "wb") as f:
        f.write(b"\n \n\t\n")
    with start().websocket(LOGS) as ws:
        lines = lines_of(to_end(ws))
    assert lines[:6] == ["==> agent.log <==", "first\r", "50%\r100%", "\x1b[31mred\x1b[0m",
                         "bad \ufffd\ufffd bytes", lines[5]]
    assert "".join(lines[5:-1]) == long_line and len(lines) > 10
    assert max(len(w.encode()) for w in lines) <= 16 * 1024
    assert lines[-1] == "last without an end"


def test_log_of_an_unknown_run(shared):
    with shared.websocket("/api/containers/nobody-knows/logs-ws") as ws:
        assert ws.receive_json() == {"type": "error",
                                     "data": {"error": "Run nobody-knows not found"}}
        assert answers_ping(ws)


@pytest.mark.once
@pytest.mark.plain
def test_a_reader_that_takes_nothing_costs_little(start, place):
    line = b"x" * 99 + b"\n"
    with open(os.path.join(run_dir(place, RUN), "agent.log"), "wb") as f:
        f.write(line * 300000)  # 30 MB
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    worker = server.workers()[0]
    server.get("/api/health")
    before = process.rss_kib(worker)
    with server.websocket(LOGS) as ws:
        for _ in range(20):
            assert server.get("/api/health").status == 200
            time.sleep(0.05)
        assert process.rss_kib(worker) - before < 12 * 1024
        assert len(lines_of(to_end(ws))) >= 300000
    assert process.rss_kib(worker) - before < 12 * 1024


# --- the log of a live run ------------------------------------------------------------------

class LiveLog:
    """A live run whose container log the test writes itself."""

    def __init__(self, server, place, run_id):
        self.server, self.place, self.run_id = server, place, run_id
        self.run = place.start_run(run_id, agent_seconds=600)
        process.wait_for(lambda: run_id in [r["id"] for r in server.runs()],
                         what="the run in the list")
        runs = os.path.join(place.standin, "runs")
        for name in os.listdir(runs):
            with open(os.path.join(runs, name, "record.json"), encoding="utf-8") as f:
                if run_id in f.read():
                    self.path = os.path.join(runs, name, "log")

    def write(self, data):
        with open(self.path, "ab", buffering=0) as f:
            f.write(data)

    def socket(self):
        return self.server.websocket("/api/containers/%s/logs-ws" % self.run_id)

    def followers(self):
        return [p for p in process.descendants(self.server.pid)
                if process.alive(p) and "logs" in process.command(p)]

    def end(self):
        self.place.cli("runs", "remove", self.run_id)
        self.run.kill()
        self.run.wait(20)


@pytest.fixture
def live(start, place):
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    log = LiveLog(server, place, "live-log")
    yield log
    log.end()


def up_to(ws, mark):
    """Lines up to and with the one that contains `mark`."""
    lines = []
    while not lines or mark not in lines[-1]:
        message = ws.receive_json()
        assert message["type"] == "log", message
        lines.append(message["data"])
    return lines


@pytest.mark.once
def test_live_lines_are_whole(live):
    with live.socket() as ws:
        live.write(b"MARK one\n")
        up_to(ws, "MARK one")
        for piece in (b"half a ", b"line \xe2", b"\x82", b"\xac end\n\n", b"  \nnext\nMARK ",
                      b"two\n"):
            live.write(piece)
            time.sleep(0.05)
        lines = [w for w in up_to(ws, "MARK two") if not w.startswith("[")]
        assert lines == ["half a line € end", "next", "MARK two"]


@pytest.mark.once
def test_viewers_share_one_follower(live, place):
    sockets = [live.socket() for _ in range(3)]
    live.write(b"MARK first\n")
    seen = [up_to(ws, "MARK first") for ws in sockets]
    late = live.socket()
    seen.append(up_to(late, "MARK first"))
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert len(live.followers()) == 1
    for ws in sockets:
        ws.connection.close()
    live.write(b"MARK second\n")
    up_to(late, "MARK second")
    assert len(live.followers()) == 1
    late.connection.close()
    process.wait_for(lambda: not live.followers(), what="the follower to end")


@pytest.mark.once
def test_a_killed_broker_costs_no_line(live):
    with live.socket() as ws:
        live.write(b"".join(b"line %d\n" % i for i in range(1000)) + b"MARK first\n")
        lines = up_to(ws, "MARK first")
        live.write(b"begun before ")
        os.kill(live.server.broker(), 9)
        live.write(b"and ended after\nMARK second\n")
        lines += up_to(ws, "MARK second")
    mine = [w for w in lines if w.startswith(("line ", "MARK", "begun"))]
    assert mine == ["line %d" % i for i in range(1000)] + [
        "MARK first", "begun before and ended after", "MARK second"]


@pytest.mark.once
def test_a_slow_viewer_does_not_hold_up_the_others(live):
    count = 150000
    data = b"".join(b"%06d %s\n" % (i, b"x" * 60) for i in range(count))
    with live.socket() as slow, live.socket() as fast:
        writer = threading.Thread(target=live.write, args=(data + b"MARK end\n",))
        writer.start()
        got = [w for w in up_to(fast, "MARK end") if "xxx" in w]
        writer.join()
        assert [int(w.split()[0]) for w in got] == list(range(count))
        late = [w for w in up_to(slow, "MARK end") if "xxx" in w]
        assert late == got


@pytest.mark.once
def test_live_lines_are_as_written(live):
    long_line = "€😀" * 30000
    with live.socket() as ws:
        live.write(b"first\r\n10%\r20%\n\x1b[31mred\x1b[0m\x1b]0;t\x07\n"
                   b"bad \xff\xfe bytes\nnul \0\n")
        data = long_line.encode()
        for at in range(0, len(data), 4099):  # no divisor of a character's length
            live.write(data[at:at + 4099])
        live.write(b"\nMARK end\n")
        lines = up_to(ws, "MARK end")
    lines = lines[lines.index("first\r"):-1]
    assert lines[:5] == ["first\r", "10%\r20%", "\x1b[31mred\x1b[0m\x1b]0;t\x07",
                         "bad \ufffd\ufffd bytes", "nul \0"]
    pieces = [w for w in lines[5:] if not w.startswith("[")]
    assert "".join(pieces) == long_line and len(pieces) > 10
    assert max(len(w.encode()) for w in pieces) <= 16 * 1024


def wrapped(place, script):
    """The command, with `script` in its place for `runs logs`. What SSEBENCH_CLI names then."""
    path = os.path.join(place.top, "wrapped")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\ncase \"$1 $2\" in 'runs logs')\n%s\nesac\nexec %s \"$@\"\n"
                % (script, STANDIN))
    os.chmod(path, 0o755)
    return path


@pytest.mark.once
def test_both_streams_and_the_exit_code_of_a_log(start, place):
    cli = wrapped(place, "echo to out; echo to err >&2; printf 'half '; printf 'a line' >&2\n"
                         "exit 7")
    server = start({"SSEBENCH_CLI": cli})
    live = LiveLog(server, place, "two-streams")
    with live.socket() as ws:
        messages = to_end(ws)
        assert lines_of(messages) == ["to out", "to err", "half a line"]
        assert messages[-1] == {"type": "end", "data": {"exitCode": 7}}
        assert answers_ping(ws)
    live.end()


@pytest.mark.once
def test_the_last_viewer_ends_the_followers_whole_group(start, place):
    script = ("trap '' TERM INT HUP\n(sleep 987654; true) & sleep 987654 &\n"
              "echo MARK; wait; wait")
    server = start({"SSEBENCH_CLI": wrapped(place, script), "SSEBENCH_WEBUI_WORKERS": "1"})
    live = LiveLog(server, place, "a-group")

    def group():
        return [p for p in process.all_pids() if "987654" in process.command(p)]
    for end in ("the viewers leave", "the worker dies"):
        with live.socket() as one, live.socket() as two:
            up_to(one, "MARK")
            up_to(two, "MARK")
            process.wait_for(lambda: len(group()) == 2, what="one follower for both")
            one.connection.close()
            time.sleep(0.3)
            assert len(group()) == 2, "the other one is watching"
            if end == "the worker dies":
                os.kill(server.workers()[0], 9)
            else:
                two.connection.close()
            process.wait_for(lambda: not group() and not live.followers(), what=end)
    live.end()


@pytest.mark.once
def test_viewers_that_are_gone_at_once_leave_no_follower(live):
    """Nothing is ever written to this log, so no broken pipe ends a follower either."""
    with open(live.path, "w", encoding="utf-8"):
        pass
    address, host = live.server.address, live.server.host
    request = head("GET", "/api/containers/%s/logs-ws" % live.run_id, handshake_headers(host)[0])
    for i in range(60):
        with socket.create_connection(address, 20) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.sendall(request)
            time.sleep(i % 6 / 1000)  # while it is read, asks for its follower, has it
    live.server.runs()  # asked after all that those asked
    process.wait_for(lambda: not live.followers(), what="the followers to end")


@pytest.mark.once
@pytest.mark.plain
def test_a_viewer_that_takes_nothing_stops_the_command(start, place):
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    live = LiveLog(server, place, "stopped")
    place.knobs(flood={"logs": 100 * 1000 * 1000})
    worker = server.workers()[0]
    before = process.rss_kib(worker)

    def written():
        """What the command has written so far."""
        pids = live.followers()
        io = dict(line.split(": ") for line in process.read(pids[-1], "io").decode().splitlines())
        return int(io["wchar"])
    with live.socket() as ws:
        process.wait_for(live.followers, what="the follower")
        time.sleep(1)
        stopped = written()
        time.sleep(0.5)
        assert written() == stopped < 30 * 1000 * 1000
        assert process.rss_kib(worker) - before < 12 * 1024
        assert server.get("/api/health").status == 200
        messages = to_end(ws)  # and goes on from where it stood
        assert sum(map(len, lines_of(messages))) == 100 * 1000 * 1000
        assert set("".join(lines_of(messages[:100]))) == {"x"}
        assert messages[-1]["data"] == {"exitCode": 0}
    assert process.rss_kib(worker) - before < 12 * 1024
    live.end()


@pytest.mark.once
def test_the_end_of_a_live_run(start, place):
    server = start()
    run = place.start_run("short-run", agent_seconds=3, keep=False)
    process.wait_for(lambda: "short-run" in [r["id"] for r in server.runs()],
                     what="the run in the list")
    with server.websocket("/api/containers/short-run/logs-ws") as ws:
        messages = to_end(ws)
        assert messages[-1] == {"type": "end", "data": {"exitCode": 0}}
        assert len(messages) > 2 and answers_ping(ws)
    run.wait(30)


# --- the data of a finished run ---------------------------------------------------------------

def sdk_messages(server, run_id, query=""):
    """All that comes until the run's grade, or until nothing more does."""
    with server.websocket("/api/containers/%s/sdk-ws%s" % (run_id, query)) as ws:
        messages = []
        while not messages or messages[-1]["type"] != "result":
            messages.append(ws.receive_json())
        assert answers_ping(ws), "it stays open"
    return messages


def test_data_is_what_the_routes_say(shared):
    base = "/api/containers/%s/" % RUN
    messages = sdk_messages(shared, RUN)
    kinds = [m["type"] for m in messages if m["type"] != "dialog"]
    assert kinds == ["status", "project", "files", "diff", "result"]
    by_kind = {m["type"]: m for m in messages}
    assert messages[0] == {"type": "status", "status": "ready"}
    assert by_kind["project"]["data"] == shared.json(base + "project")
    assert by_kind["files"]["files"] == shared.json(base + "files")["files"]
    assert by_kind["diff"]["diff"] == shared.json(base + "diff")["diff"]
    assert by_kind["result"]["result"] == shared.json(base + "result")
    entries = [e for m in messages if m["type"] == "dialog" for e in m["entries"]]
    assert entries == shared.json(base + "agent/dialog")["entries"]
    assert by_kind["dialog"]["lastSeq"] == max(e["seq"] for e in entries)


def test_data_since(shared):
    base = "/api/containers/%s/" % RUN
    entries = [e for m in sdk_messages(shared, RUN, "?since=3") if m["type"] == "dialog"
               for e in m["entries"]]
    assert entries == shared.json(base + "agent/dialog?since=3")["entries"]
    assert entries and min(e["seq"] for e in entries) > 3


@pytest.mark.parametrize("query", ["?since=", "?since=-1", "?since=1x", "?since=1&since=2"])
def test_data_since_refused(shared, query):
    headers, _ = handshake_headers(shared.host)
    with shared.connect() as c:
        r = c.raw(head("GET", shared.base + "/api/containers/%s/sdk-ws%s" % (RUN, query),
                       headers))
    assert (r.status, r.json()["error"]) == (400,
                                             "Invalid since: expected a sequence number")


def test_data_of_an_unknown_run(shared):
    with shared.websocket("/api/containers/nobody-knows/sdk-ws") as ws:
        assert ws.receive_json() == {"type": "status", "status": "error",
                                     "error": "Run not found"}
        assert answers_ping(ws)


@pytest.mark.once
def test_a_big_dialog_comes_in_batches(start, place):
    path = os.path.join(run_dir(place, RUN), "archive", "dialog.jsonl")
    wanted = []
    with open(path, "wb") as f:
        for seq in range(20000):
            size = 3 << 20 if seq == 7777 else 100
            wanted.append({"seq": seq, "type": "message", "content": "é" * size})
            f.write(json.dumps(wanted[-1], ensure_ascii=False).encode() + b"\n")
            if seq % 1000 == 5:
                f.write(b"no JSON\n[1]\n{\"seq\":\"2\"}\n\n")
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    messages = [m for m in sdk_messages(server, RUN) if m["type"] == "dialog"]
    assert [e for m in messages for e in m["entries"]] == wanted
    assert messages[-1]["lastSeq"] == 19999
    assert all(len(m["entries"]) > 0 for m in messages)
    small = [m for m in messages if all(e["seq"] != 7777 for e in m["entries"])]
    assert max(len(json.dumps(m, ensure_ascii=False).encode()) for m in small) < 160 * 1024
    assert len(messages) > 50


@pytest.mark.once
@pytest.mark.plain
def test_a_huge_diff_is_streamed(start, place):
    folder = run_dir(place, RUN)
    diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,400000 @@\n" + "+é\"\\\t\n" * 400000
    with open(os.path.join(folder, "final.patch"), "w", encoding="utf-8") as f:
        f.write(diff)
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    worker = server.workers()[0]
    server.get("/api/health")
    before = process.rss_kib(worker)
    by_kind = {m["type"]: m for m in sdk_messages(server, RUN)}
    assert by_kind["diff"]["diff"] == diff
    assert by_kind["files"]["files"] == [{"path": "x", "status": "modified",
                                          "additions": 400000, "deletions": 0}]
    assert process.rss_kib(worker) - before < 12 * 1024


@pytest.mark.once
def test_a_run_without_files_tells_what_there_is(start, place):
    folder = run_dir(place, RUN)
    for name in ("final.patch", "archive/dialog.jsonl"):
        os.remove(os.path.join(folder, name))
    messages = sdk_messages(start(), RUN)
    assert [m["type"] for m in messages] == ["status", "project", "result"]


@pytest.mark.once
def test_a_live_run_is_connecting_until_it_is_over(start, place):
    server = start()
    run = place.start_run("live-data", agent_seconds=4, keep=False)
    process.wait_for(lambda: "live-data" in [r["id"] for r in server.runs()],
                     what="the run in the list")
    with server.websocket("/api/containers/live-data/sdk-ws", timeout=60) as ws:
        first = ws.receive_json()
        assert (first["type"], first["status"]) == ("status", "connecting")
        while ws.receive_json()["type"] != "result":
            pass
    run.wait(30)


# --- many -----------------------------------------------------------------------------------

@pytest.mark.once
@pytest.mark.plain
def test_idle_sockets_are_cheap(start):
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})
    worker = server.workers()[0]
    server.get("/api/health")
    first = server.websocket("/api/containers/nobody-knows/sdk-ws")
    before = process.rss_kib(worker)
    many = [server.websocket("/api/containers/nobody-knows/sdk-ws") for _ in range(400)]
    for ws in many:
        ws.receive_json()
    assert (process.rss_kib(worker) - before) / 400 < 8
    for ws in many + [first]:
        ws.connection.close()
    with server.connect() as c:
        assert isinstance(c, Connection)
    assert server.get("/api/health").status == 200

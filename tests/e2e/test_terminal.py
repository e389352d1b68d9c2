"""Terminals: frames, sizes, floods, resuming, taking over, orphans, and nothing left behind."""
import fcntl
import glob
import json
import os
import re
import signal
import stat
import time

import pytest

import process
from screen import Screen
from ws_client import CLOSE, TEXT, Refused


def live(place, server, run_id):
    place.start_run(run_id, agent_seconds=60)
    process.wait_for(lambda: [r for r in server.runs() if r["id"] == run_id and
                              r["status"] == "running"], what="the run is listed")


@pytest.fixture
def stage(place, start):
    """stage(env) -> a server with the live run `t1`."""
    def make(env=None):
        server = start(env)
        live(place, server, "t1")
        return server
    return make


def sessions(server):
    return server.json("/api/pty/sessions")


def wait_sessions(server, n):
    return process.wait_for(lambda: (lambda s: s if len(s["processes"]) == n else None)(
        sessions(server)), 30, "%d terminals" % n)


def ttys_started(place):
    return [v for v in place.vectors("runs exec") if " --tty " in v]


def shell_pid(screen):
    screen.type("echo pid=$$=\r")
    return int(screen.shows(r"pid=(\d+)=").group(1))


# --- the contract's frames ----------------------------------------------------------------

def test_frames_of_the_contract(place, stage):
    server = stage()
    s = Screen(server, "/api/pty/t1")
    s.type("stty size; echo $TERM; tput cols; exit 7\r")
    s.to_end()
    assert b"\r24 80\r\nxterm-256color\r\n80\r\n" in s.output and s.output.endswith(b"exit\r\n")
    assert s.told == [{"type": "exit", "code": 7}]
    assert s.closed == (1000, "The command ended")
    assert place.vectors("runs exec --env") == [
        "runs exec --env TERM --env COLORTERM --env LANG --env SSEBENCH_WEBUI_TTY "
        "--tty t1 -- bash"]
    call = [c for c in place.calls() if "--tty" in c["argv"]][0]
    wait_sessions(server, 0)
    assert sessions(server)["leftovers"] == 0
    assert "SSEBENCH_WEBUI_TOKEN" not in call["env"]


def test_size_before_the_first_output_and_after(stage):
    s = Screen(stage(), "/api/pty/t1?cols=132&rows=43")
    s.type("stty size\r")
    s.shows(r"\r43 132\r")
    for cols, rows in ((0, 5), (1001, 5), (-3, 5), (5, "x"), (1.5, 2)):
        s.ws.send_json({"type": "resize", "cols": cols, "rows": rows})
    s.resize(1000, 1)
    s.type("stty size\r")
    s.shows(r"\r1 1000\r")
    s.ws.send_frame(TEXT, b"not json")
    s.ws.send_json(["input"])
    s.type("echo still-$((1+1))\r")
    s.shows("still-2")
    s.close()


@pytest.mark.parametrize("query", ["cols=0", "rows=1001", "cols=x", "cols=-1", "mode=fast",
                                   "session=12", "session=" + "g" * 32, "view=1"])
def test_wrong_wishes(shared, query):
    with pytest.raises(Refused) as e:
        shared.websocket("/api/pty/t1?" + query)
    assert e.value.response.status == 400


def test_refusals_in_order_and_open(place, stage):
    server = stage()
    done = [r for r in server.runs() if r["source"] == "results"][0]["id"]
    for run in (done, "nosuch"):
        s = Screen(server, "/api/pty/" + run)
        assert s.first("error")["message"] == "Run %s has no container" % run
        s.type("ls\r")
        s.ws.send_frame(9, b"alive")
        assert s.ws.read_frame()[1:] != (CLOSE,)
        s.close()
    place.knobs(supports_exec=False)
    process.wait_for(lambda: server.json("/api/health")["terminal"] is False and
                     server.runs() is not None)
    s = Screen(server, "/api/pty/t1")
    assert s.first("error")["message"] == (
        "Terminal unavailable: the docker backend cannot run commands in a run")
    s.close()
    assert ttys_started(place) == []


def test_cli_that_fails_to_exec(place, stage):
    server = stage()
    place.knobs(fail={"exec": [1, "ssebench: the daemon said no"]})
    s = Screen(server, "/api/pty/t1")
    s.to_end()
    assert b"the daemon said no" in s.output
    assert s.told == [{"type": "exit", "code": 1}]


def test_assistant_terminal(place, stage):
    server = stage()
    folder = os.path.join(place.top, "bin")
    os.mkdir(folder)
    for query, words in (("", "opencode"), ("?message=fix+it%3B%20now+%24HOME",
                                            "opencode run fix it; now $HOME")):
        s = Screen(server, "/api/pty-debug/t1" + query)
        s.to_end()
        assert [m["type"] for m in s.told] == ["exit"]
        vector = ttys_started(place)[-1]
        assert vector.startswith("runs exec --workdir /"), vector
        assert vector.endswith("--tty t1 -- " + words), vector
    call = [c for c in place.calls() if c["argv"][-2:-1] == ["run"]][-1]
    assert call["argv"][-1] == "fix it; now $HOME"
    s = Screen(server, "/api/pty-debug/t1?message=--help")
    assert s.first("error")["message"].startswith("Failed to start terminal")
    s.close()


def test_utf8_is_never_cut(stage):
    s = Screen(stage(), "/api/pty/t1")
    s.type("stty -echo; echo begin; for i in $(seq 3000); do printf '%s' a€😀é; done; "
           "printf '\\377\\n'; exit\r")
    s.to_end()
    body = s.output.decode()
    at = body.index("a€😀é" * 3)
    assert body.count("a€😀é") >= 3000 and "�" not in body[at:at + 4 * 3000]
    assert body[at + 4 * 3000] == "�"


def test_bytes_survive_in_binary_mode(stage):
    s = Screen(stage(), "/api/pty/t1?mode=binary&cols=80&rows=24")
    session = s.first("session")
    assert re.fullmatch("[0-9a-f]{32}", session["id"]) and session["replay"] == 0
    s.raw(b"stty raw -echo; echo ready-$((1+1)); head -c 256 | od -An -v -tx1 | tr -d ' \\n';"
          b" echo; printf '\\377\\000\\200'; stty sane; exit 3\n")
    s.shows("ready-2")
    s.raw(bytes(range(256)))
    s.to_end()
    assert bytes(range(256)).hex().encode() in s.output
    assert b"\xff\x00\x80" in s.output
    assert [m for m in s.told if m["type"] == "exit"] == [{"type": "exit", "code": 3}]


def test_output_of_a_short_command_is_complete(stage):
    server = stage()
    for _ in range(10):
        s = Screen(server, "/api/pty/t1?mode=binary")
        s.raw(b"exec seq 20000\n")
        s.to_end()
        assert s.output.endswith(b"19999\r\n20000\r\n")


# --- floods -----------------------------------------------------------------------------------

def test_interrupt_under_flood(stage):
    s = Screen(stage(), "/api/pty/t1?mode=binary")
    s.raw(b"yes flooding-the-terminal\n")
    s.until(lambda: len(s.output) > 1 << 20)
    s.raw(b"\x03")
    s.raw(b"echo done-$((40+2))\n")
    s.shows("done-42")
    s.close()


def test_credit_bounds_what_is_on_the_way(stage):
    s = Screen(stage(), "/api/pty/t1?mode=binary")
    assert s.first("session")["credit"] is True
    s.ws.send_json({"type": "credit", "bytes": 1})
    s.raw(b"yes flooding-the-terminal\n")
    s.ws.connection.sock.settimeout(1.5)
    with pytest.raises(Exception):
        while True:
            s.frame()
    assert 300_000 < len(s.output) < 600_000
    s.ws.connection.sock.settimeout(20)
    got = len(s.output)
    s.ws.send_json({"type": "credit", "bytes": got})
    s.until(lambda: len(s.output) > got + 200_000)
    s.close()


@pytest.mark.plain
def test_reader_that_stops_costs_no_memory(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    s.raw(b"yes flooding-the-terminal\n")
    s.until(lambda: len(s.output) > 1 << 20)
    time.sleep(1)
    before = [process.rss_kib(p) for p in server.workers()]
    time.sleep(2)
    after = [process.rss_kib(p) for p in server.workers()]
    assert max(a - b for a, b in zip(after, before)) < 1024
    s.raw(b"\x03")
    s.raw(b"echo done-$((40+2))\n")
    s.shows("done-42")
    s.close()


# --- coming back ---------------------------------------------------------------------------------

def test_resume_after_a_lost_connection(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    session = s.first("session")["id"]
    pid = shell_pid(s)
    s.type("sleep 1; echo while-away-$((1+1))\r")
    s.shows("while-away")
    s.close()
    again = Screen(server, "/api/pty/t1?mode=binary&cols=90&rows=20&session=" + session)
    told = again.first("session")
    assert told["id"] == session and told["replay"] > 0
    again.shows("pid=%d=" % pid)
    again.shows("while-away-2")
    assert shell_pid(again) == pid
    again.type("stty size\r")
    again.shows("\r20 90\r")
    again.close()
    text = Screen(server, "/api/pty/t1?session=" + session)
    text.shows("while-away-2")
    text.close()


def test_resume_after_the_worker_was_killed(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    session = s.first("session")["id"]
    pid = shell_pid(s)
    for worker in server.workers():
        os.kill(worker, signal.SIGKILL)
    s.to_end()
    process.wait_for(lambda: len(server.workers()) == 2, what="new workers")
    again = Screen(server, "/api/pty/t1?mode=binary&session=" + session)
    again.shows("pid=%d=" % pid)
    assert shell_pid(again) == pid
    again.close()


def test_session_belongs_to_its_run(place, stage):
    server = stage()
    live(place, server, "t2")
    s = Screen(server, "/api/pty/t1?mode=binary")
    session = s.first("session")["id"]
    for path in ("/api/pty/t2?session=" + session, "/api/pty/t1?session=" + "0" * 32):
        other = Screen(server, path)
        assert other.first("error")["message"] == (
            "Failed to start terminal: this session has ended")
        other.close()
    s.close()


def test_take_over_and_look_on(stage):
    server = stage()
    first = Screen(server, "/api/pty/t1?mode=binary")
    session = first.first("session")["id"]
    pid = shell_pid(first)
    views = [Screen(server, "/api/pty/t1?mode=binary&view=1&session=" + session)
             for _ in range(3)]
    for v in views:
        v.shows("pid=%d=" % pid)
        v.type("echo viewers-may-not-$((1+1))\r")
    second = Screen(server, "/api/pty/t1?mode=binary&session=" + session)
    assert shell_pid(second) == pid
    first.to_end()
    assert first.closed == (4001, "Taken over by another viewer")
    second.type("echo second-$((1+1)); exit 5\r")
    second.to_end()
    for v in views:
        v.to_end()
        assert b"second-2" in v.output and b"may-not" not in v.output
        assert {"type": "exit", "code": 5} in v.told
    wait_sessions(server, 0)


def test_end_while_nobody_looked(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    session = s.first("session")["id"]
    s.type("sleep 0.5; echo last-$((1+1)); exit 9\r")
    s.shows("sleep 0.5")
    s.close()
    process.wait_for(lambda: sessions(server)["processes"][0]["ended"], what="its end")
    again = Screen(server, "/api/pty/t1?mode=binary&session=" + session)
    again.to_end()
    assert b"last-2" in again.output
    assert {"type": "exit", "code": 9} in again.told


def test_old_output_has_its_sizes(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary&cols=100&rows=30")
    session = s.first("session")["id"]
    marks = [(40, 10), (40, 10), (120, 40)]
    s.type("stty -echo; echo at-100-$((1+1))\r")
    s.shows("at-100-2")
    for cols, rows in marks:
        s.resize(cols, rows)
        s.type("echo at-%d-$((1+1))\r" % cols)
        s.shows("at-%d-2" % cols)
    s.close()
    for more, last in (("&cols=90&rows=20", (120, 40)), ("&view=1", (90, 20))):
        again = Screen(server, "/api/pty/t1?mode=binary&session=%s%s" % (session, more))
        again.first("session")
        again.shows("at-120-2")
        if "view" in more:
            again.until(lambda: again.sizes[-1][1:] == last)
        assert [size[1:] for size in again.sizes][:3] == [(100, 30), (40, 10), (120, 40)]
        for (at, cols, _), (end, _, _) in zip(again.sizes[:3], again.sizes[1:3] + [(None,) * 3]):
            assert b"at-%d-2" % cols in again.output[at:end]
        if "view" not in more:
            again.type("stty size\r")
            again.shows("20 90\r")
        again.close()


def test_of_many_sizes_the_newest_are_kept(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary&cols=100&rows=30")
    session = s.first("session")["id"]
    s.type("stty -echo; echo ready-$((1+1))\r")
    s.shows("ready-2")
    for n in range(300):
        s.resize(50 + n, 30)
        s.type("echo at-$((%d+0))-\r" % n)
        s.shows("at-%d-" % n)
    s.close()
    again = Screen(server, "/api/pty/t1?mode=binary&cols=80&rows=24&session=" + session)
    again.shows("at-299-")
    kept = [cols for _, cols, _ in again.sizes]
    assert kept == list(range(kept[0], 350)) and len(kept) == 128
    again.close()


# --- ending --------------------------------------------------------------------------------------

def test_orphans_end_with_all_they_started(stage):
    server = stage({"PTY_CLEANUP_INTERVAL": "200", "PTY_ORPHAN_THRESHOLD": "1000"})
    watched = Screen(server, "/api/pty/t1?mode=binary")
    kept = shell_pid(watched)
    s = Screen(server, "/api/pty/t1?mode=binary")
    pid = shell_pid(s)
    s.type("trap '' HUP; (trap '' HUP TERM; sleep 600) & echo child=$!=\r")
    child = int(s.shows(r"child=(\d+)=").group(1))
    s.close()
    process.wait_for(lambda: not process.alive(pid) and not process.alive(child), 30,
                     "the shell and its stubborn job are gone")
    assert process.alive(kept)
    listed = wait_sessions(server, 1)
    assert listed["leftovers"] == 0 and listed["activeSessions"] == 1
    watched.close()


def test_cleanup_can_be_off(stage):
    server = stage({"PTY_ENABLE_CLEANUP": "false", "PTY_CLEANUP_INTERVAL": "100",
                    "PTY_ORPHAN_THRESHOLD": "100"})
    s = Screen(server, "/api/pty/t1?mode=binary")
    pid = shell_pid(s)
    s.close()
    time.sleep(1.5)
    assert process.alive(pid)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_list_and_end(stage, method):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    secret = s.first("session")["id"]
    pid = shell_pid(s)
    listed = sessions(server)
    assert listed["activeSessions"] == listed["trackedProcesses"] == 1
    entry = listed["processes"][0]
    assert entry["containerId"] == "t1" and entry["pid"] == pid and entry["viewers"] == 1
    assert isinstance(entry["uptimeMs"], int) and secret not in json.dumps(listed)
    path = "/api/pty/sessions/"
    assert server.request(method, path + "999", {"Content-Length": "0"}).status == 404
    assert server.request(method, path + "x", {"Content-Length": "0"}).status == 404
    r = server.request(method, path + entry["sessionId"], {"Content-Length": "0"})
    assert r.status == 200 and r.json() == {"ended": True}
    s.to_end()
    assert s.first("exit") and s.closed[0] == 1000
    process.wait_for(lambda: not process.alive(pid), what="the shell is gone")
    wait_sessions(server, 0)


def test_end_by_who_knows_its_id(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    kept = Screen(server, "/api/pty/t1?mode=binary")
    pid, other = shell_pid(s), shell_pid(kept)
    path = "/api/pty/sessions/"
    for wrong in ("0" * 32, "f" * 32, s.first("session")["id"][:-1]):
        assert server.request("DELETE", path + wrong).status == 404
    assert server.request("DELETE", path + s.first("session")["id"]).status == 200
    s.to_end()
    process.wait_for(lambda: not process.alive(pid), what="the shell is gone")
    assert process.alive(other) and len(wait_sessions(server, 1)["processes"]) == 1
    kept.close()


def test_limit_per_run(stage):
    server = stage()
    open_ones = [Screen(server, "/api/pty/t1?mode=binary") for _ in range(16)]
    for s in open_ones:
        s.first("session")
    more = Screen(server, "/api/pty/t1?mode=binary")
    assert more.first("error")["message"] == (
        "Failed to start terminal: too many terminals are open")
    for s in open_ones + [more]:
        s.close()


def test_broker_killed(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    s.first("session")
    os.kill(server.broker(), signal.SIGKILL)
    s.to_end()
    assert s.closed[0] in (1011, 1012)
    assert [m["type"] for m in s.told][-1] == "error"
    process.wait_for(lambda: server.broker(), what="a new broker")
    s = Screen(server, "/api/pty/t1?mode=binary")
    s.first("session")
    s.close()


def kept_files(place):
    folder = os.path.join(place.state, "terminals")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def mark_of(screen):
    """Process and mark of a shell, and what the search for it wrote in its home."""
    screen.type("echo m=$$=$SSEBENCH_WEBUI_TTY=; until [ -s ~/.ssebench-webui-tty/$SSEBENCH_WEBUI_TTY ]; "
                "do sleep 0.1; done; echo f=$(cat ~/.ssebench-webui-tty/$SSEBENCH_WEBUI_TTY)=\r")
    pid, tag = screen.shows(r"m=(\d+)=([0-9a-f]{32})=").groups()
    return pid, tag, screen.shows(r"f=(\d+) \d+=").group(1)


def test_each_of_many_opened_at_once_has_its_own_mark(place, stage):
    server = stage()
    open_ones = [Screen(server, "/api/pty/t1?mode=binary&rows=%d" % (20 + n)) for n in range(8)]
    found = [mark_of(s) for s in open_ones]
    assert [pid for pid, _, _ in found] == [pid for _, _, pid in found]
    assert len({tag for _, tag, _ in found}) == 8
    assert kept_files(place) == sorted(tag.decode() + "-t1" for _, tag, _ in found)
    for s in open_ones:
        s.type("exit\r")
        s.to_end()
    wait_sessions(server, 0)
    assert kept_files(place) == []


def test_a_backend_that_passes_no_environment(place, stage):
    server = stage({"SSEBENCH_BACKEND": "kubernetes"})
    s = Screen(server, "/api/pty/t1?mode=binary")
    pid = shell_pid(s)
    assert ttys_started(place) == ["runs exec --tty t1 -- bash"]
    found = os.path.join(place.standin, "runs", "*", "home", ".ssebench-webui-tty", "?" * 32)
    process.wait_for(lambda: any(os.path.getsize(f) for f in glob.glob(found)),
                     what="it is found without a mark")
    entry = sessions(server)["processes"][0]
    server.request("POST", "/api/pty/sessions/" + entry["sessionId"], {"Content-Length": "0"})
    process.wait_for(lambda: not process.alive(pid), what="the shell is gone")
    assert wait_sessions(server, 0)["leftovers"] == 0
    s.close()


def test_what_a_killed_broker_left_is_ended(place, stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    pid, tag, _ = mark_of(s)
    s.type("trap '' HUP; (trap '' HUP TERM; sleep 600) & echo child=$!=\r")
    child = int(s.shows(r"child=(\d+)=").group(1))
    folder = os.path.join(place.state, "terminals")
    theirs = "0" * 32 + "-t1"
    with open(os.path.join(folder, theirs), "w") as held, \
            open(os.path.join(folder, "1" * 32 + "-gone-run"), "w"), \
            open(os.path.join(folder, "note"), "w"):
        fcntl.flock(held, fcntl.LOCK_EX)  # another server on this state directory lives
        os.kill(server.broker(), signal.SIGKILL)
        s.to_end()
        process.wait_for(lambda: not process.alive(child) and not process.alive(int(pid)), 60,
                         "the next broker ends what is left")
        process.wait_for(lambda: kept_files(place) == sorted([theirs, "note"]), 60,
                         "its file is gone, others' are not")
    assert sessions(server)["leftovers"] == 0


def test_what_cannot_be_ended_after_a_killed_broker_is_counted(place, stage):
    server = stage({"PTY_CLEANUP_INTERVAL": "100"})
    s = Screen(server, "/api/pty/t1?mode=binary")
    mark_of(s)
    place.knobs(fail={"exec": [1, "ssebench: the daemon is away"]})
    os.kill(server.broker(), signal.SIGKILL)
    s.to_end()
    process.wait_for(lambda: server.broker() and sessions(server)["leftovers"] == 1, 60,
                     "it is counted")
    assert kept_files(place) == []


def test_stop_of_the_server(stage):
    server = stage()
    s = Screen(server, "/api/pty/t1?mode=binary")
    pid = shell_pid(s)
    assert server.stop() == 0
    s.to_end()
    assert s.closed[0] == 1001
    assert not process.alive(pid)


# --- recordings ------------------------------------------------------------------------------------

def recordings(place):
    folder = os.path.join(place.state, "recordings")
    return sorted(os.path.join(folder, n) for n in os.listdir(folder)) if os.path.isdir(
        folder) else []


def read_recording(path):
    """Header and events of an asciicast v2 file, each line whole and in the order of time."""
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    header, events = lines[0], lines[1:]
    assert header["version"] == 2 and abs(header["timestamp"] - time.time()) < 1200
    assert all(len(e) == 3 and isinstance(e[2], str) for e in events)
    assert [e[0] for e in events] == sorted(e[0] for e in events)
    return header, events


def played(events, kind="o"):
    return "".join(e[2] for e in events if e[1] == kind)


def test_recording_is_off_by_default(place, stage):
    s = Screen(stage(), "/api/pty/t1")
    s.type("exit\r")
    s.to_end()
    assert recordings(place) == []


def test_recording(place, stage):
    server = stage({"SSEBENCH_WEBUI_RECORD": "1"})
    s = Screen(server, "/api/pty/t1?mode=binary&cols=100&rows=30")
    s.shows(r"[$#] ")
    s.resize(120, 40)
    s.type("stty -echo; echo ready-$((1+1))\r")
    s.shows("ready-2")
    s.type("echo go-$((1+1)); read secret; printf '\\377\\033[1m\"\\\\\\177€'; sleep 0.3; printf '\\342\\202'; "
           "sleep 0.5; printf '\\254 cut-%d\\n' $((1+1)); exit 6\r")
    s.shows("go-2")  # before it, readline would have the line's end untranslated
    s.type("password-nobody-sees\r")
    s.to_end()
    wait_sessions(server, 0)
    [path] = recordings(place)
    assert re.fullmatch(r"\d{8}T\d{6}Z-t1\.cast", os.path.basename(path))
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    header, events = read_recording(path)
    assert (header["width"], header["height"]) == (100, 30)
    assert header["title"] == "t1" and header["command"] == "bash"
    assert played(events) == s.output.decode("utf-8", "replace")
    assert "\ufffd\x1b[1m\"\\\x7f€€ cut-2" in played(events)
    assert "nobody-sees" not in played(events)
    assert played(events, "r") == "120x40" and played(events, "m") == "exit 6"


def test_recording_goes_on_unwatched_and_over_a_killed_worker(place, stage):
    server = stage({"SSEBENCH_WEBUI_RECORD": "1"})
    s = Screen(server, "/api/pty/t1?mode=binary")
    session = s.first("session")["id"]
    shell_pid(s)
    for worker in server.workers():
        os.kill(worker, signal.SIGKILL)
    s.to_end()
    process.wait_for(lambda: len(server.workers()) == 2, what="new workers")
    again = Screen(server, "/api/pty/t1?mode=binary&session=" + session)
    again.type("sleep 0.7; echo alone-$((1+1))\r")
    again.shows("sleep 0.7")
    again.close()
    [path] = recordings(place)
    process.wait_for(lambda: "alone-2" in played(read_recording(path)[1]), what="its output")
    assert len(re.findall(r"pid=\d+=", played(read_recording(path)[1]))) == 1


def test_recording_of_a_flood_has_gaps(place, stage):
    server = stage({"SSEBENCH_WEBUI_RECORD": "1"})
    s = Screen(server, "/api/pty/t1?mode=binary")
    s.raw(b"stty -echo; seq -f 'line %.0f' 500000; echo done-$((40+2)); exit\n")
    s.to_end()
    wait_sessions(server, 0)
    [path] = recordings(place)
    header, events = read_recording(path)
    assert os.path.getsize(path) < 65 << 20
    lost = sum(int(e[2].split()[0]) for e in events if e[2].endswith(" bytes lost"))
    assert lost > 0 and lost + len(played(events)) == len(s.output)
    whole, at = s.output.decode(), 0
    for text in [e[2] for e in events if e[1] == "o"]:  # in order, whatever lies between
        at = whole.find(text, at) + len(text)
        assert at >= len(text), text[:80]
    assert played(events).endswith("line 500000\r\ndone-42\r\nexit\r\n")


def test_two_recordings_of_one_second(place, stage):
    server = stage({"SSEBENCH_WEBUI_RECORD": "1"})
    both = [Screen(server, "/api/pty/t1?mode=binary") for _ in range(4)]
    for s in both:
        s.first("session")
    assert len(recordings(place)) == 4
    for s in both:
        s.close()


def test_no_terminal_without_its_recording(place, stage):
    server = stage({"SSEBENCH_WEBUI_RECORD": "1"})
    with open(os.path.join(place.state, "recordings"), "w"):
        pass
    s = Screen(server, "/api/pty/t1")
    assert s.first("error")["message"] == (
        "Failed to start terminal: it cannot be recorded: Not a directory")
    s.close()
    assert ttys_started(place) == []

"""Named tokens: who may do what on every route, how they are made, and how they end."""
import calendar
import datetime
import fcntl
import itertools
import json
import os
import re
import signal
import stat
import subprocess
import time

import pytest

import conftest
import harness
import launch_help
import process
import routes
from harness import TOKEN
from http_client import Closed, head
from test_policy import Asker, only_listings
from test_upgrade import upgrade
from screen import Screen
from ws_client import Refused, handshake_headers, token_protocols

ROLE_TEXT = "This token's role does not allow it"
ROLES = ("view", "operate", "full")
RUN = "/api/containers/:id"

# What needs more than a look, written out again: a new route is seen to belong here or not.
OPERATE = {("POST", RUN + "/stop"), ("POST", RUN + "/remove"), ("POST", "/api/launch"),
           ("POST", "/api/launch/cancel"), ("POST", "/api/launch/clear"),
           ("GET", "/api/launch/doctor")}
FULL = {("GET", "/api/pty/:id"), ("GET", "/api/pty-debug/:id"),
        ("POST", "/api/pty/sessions/:session"), ("DELETE", "/api/pty/sessions/:session")}


def least(method, pattern):
    if (method, pattern) in FULL or "/opencode" in pattern:
        return "full"
    return "operate" if (method, pattern) in OPERATE else "view"


def cli(place, *argv, env=None, status=0):
    """`ssebench-webui token ...` as a person would: stdout."""
    p = subprocess.run([harness.SERVER, "token", *argv], env={**place.env(), **(env or {})},
                       capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert p.returncode == status, (argv, p)
    return p.stdout if status == 0 else p.stderr


def add(place, name, role, *more, **kw):
    return cli(place, "add", name, "--role", role, *more, **kw).strip()


def path_of(place):
    return os.path.join(place.state, "tokens")


def bearer(token):
    return {"Authorization": "Bearer " + token}


def hup(server):
    """Reload, and wait until every worker has taken it."""
    said = len(server.err)
    server.process.send_signal(signal.SIGHUP)
    process.wait_for(lambda: len([line for line in server.err[said:]
                                  if " reload tokens=" in line]) >= 2,
                     what="two workers that reloaded")


def stamp(seconds):
    at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def edit(place, change):
    """The file as an administrator's editor writes it."""
    path = path_of(place)
    with open(path, encoding="utf-8") as f:
        text = change(f.read())
    with open(path + ".edit", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path + ".edit", 0o600)
    os.replace(path + ".edit", path)


# --- every route by every role ------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded():
    p = harness.Place()
    tokens = {role: add(p, role + "er", role) for role in ROLES}
    server = harness.Server(p, {"SSEBENCH_WEBUI_TOKEN": TOKEN})
    server.tokens = tokens
    harness.long_lived.append(server)
    yield server
    code = server.stop()
    p.close()
    harness.long_lived.remove(server)
    assert code == 0, server.log


def test_the_table_says_what_is_written_here():
    assert {(m, p): role for m, p, _, role in routes.table()} == \
        {(m, p): least(m, p) for m, p, _, _ in routes.table()}


def refusals(server, token):
    """(method, path) of everything that is refused for the token's role, upgrades too."""
    asker, found = Asker(server), set()
    headers = [("Host", server.host), ("Authorization", "Bearer " + token)]
    upgrade, _ = handshake_headers(None)
    for method, pattern, kind, _ in routes.table():
        more = upgrade[1:] if kind == "websocket" else []
        r = asker.ask(method, routes.concrete(pattern), headers + more)
        assert r.status != 401, (method, pattern, r)
        if r.status == 101:
            asker.connection.close()
            asker.connection = None
        elif r.status == 403 and r.json()["error"] == ROLE_TEXT:
            assert "has the role" in r.json()["hint"]
            found.add((method, pattern))
    return found


@pytest.mark.parametrize("role", ROLES)
def test_every_route(guarded, role):
    wanted = {(m, p) for m, p, _, _ in routes.table()
              if ROLES.index(least(m, p)) > ROLES.index(role)}
    assert refusals(guarded, guarded.tokens[role]) == wanted
    if role == "view":
        assert only_listings(guarded) == []


@pytest.mark.parametrize("role", ["view", "operate"])
def test_changes_that_no_route_knows(guarded, role):
    asker = Asker(guarded)
    headers = [("Host", guarded.host), ("Authorization", "Bearer " + guarded.tokens[role])]
    allowed = {("POST", routes.concrete(p)) for m, p in OPERATE if m == "POST"}
    for (path, _), method in itertools.product(routes.api_paths(),
                                               ("POST", "PUT", "PATCH", "DELETE")):
        if role == "operate" and ((method, path) in allowed or path.endswith("/doctor")):
            continue
        r = asker.ask(method, path, headers)
        assert r.status == 403 and r.json()["error"] == ROLE_TEXT, (method, path, r)


def test_what_a_token_is_told_of_itself(guarded):
    wanted = {"view": (True, False, False), "operate": (False, False, False),
              "full": (False, True, True)}
    for role, what in wanted.items():
        health = guarded.get("/api/health", bearer(guarded.tokens[role])).json()
        assert (health["hosted"], health["terminal"], health["assistant"]) == what, role
        assert health["role"] == role
        report = guarded.get("/api/connection", bearer(guarded.tokens[role])).json()
        assert (report["tokenName"], report["role"], report["tokenExpires"],
                report["hosted"]) == (role + "er", role, None, False)
    report = guarded.json("/api/connection")
    assert (report["tokenName"], report["role"]) == ("token", "full")


def test_wrong_tokens(guarded):
    good = guarded.tokens["full"]
    for token in (good[:-1], good + "A", good.upper(), good[9:], "fuller", "x" * 16):
        assert guarded.get("/api/health", bearer(token)).status in (401, 429), token
    with open(path_of(guarded.place), encoding="utf-8") as f:
        digests = re.findall(r"\b[0-9a-f]{64}\b", f.read())
    assert len(digests) == 3
    for digest in digests:
        assert guarded.get("/api/health", bearer(digest)).status in (401, 429)


# --- what they may, they can ----------------------------------------------------------------------


def shell(server, run, token):
    return Screen(server, "/api/pty/" + run, protocols=token_protocols(token))


def is_running(server, token):
    process.wait_for(lambda: [c for c in server.get("/api/containers", bearer(token)).json()[
        "containers"] if c["id"] == "r1" and c["status"] == "running"], what="the run")


def answers(screen):
    screen.type("echo =$((40+2))=\r")
    screen.shows("=42=")


def test_each_role_does_what_it_may(start, place):
    tokens = {role: add(place, role, role) for role in ROLES}
    server = start()
    run = place.start_run("r1", agent_seconds=60)
    try:
        is_running(server, tokens["view"])
        for role in ("view", "operate"):
            with pytest.raises(Refused) as e:
                shell(server, "r1", tokens[role])
            assert e.value.response.json()["error"] == ROLE_TEXT
        os.kill(server.broker(), signal.SIGKILL)  # the next one is shown the proof again
        process.wait_for(lambda: server.role("broker"), what="another broker")

        process.wait_for(lambda: server.get("/healthz").status == 200, what="it at work")
        screen = shell(server, "r1", tokens["full"])
        answers(screen)
        screen.ws.connection.close()
        r = server.get("/api/containers/r1/opencode/sessions", bearer(tokens["full"]))
        assert r.status in (200, 503), r
        assert server.post("/api/containers/r1/stop", bearer(tokens["view"])).status == 403
        assert server.get("/api/launch/doctor", bearer(tokens["operate"])).status == 200
        assert server.post("/api/containers/r1/stop", bearer(tokens["operate"])).status == 200
        assert server.post("/api/containers/r1/remove", bearer(tokens["operate"])).status == 200
    finally:
        run.terminate()
        run.wait(20)
    audit = [line for line in server.err if " audit " in line]
    assert any("who=operate role=operate" in a and "/r1/stop" in a and "result=200" in a
               for a in audit), audit
    assert any("who=full role=full" in a and "/api/pty/r1" in a for a in audit), audit
    refused = [line for line in server.err if " refused " in line]
    assert any("who=view role=view" in a and "status=403" in a for a in refused), refused
    assert not any(t in server.log for t in tokens.values())


def test_a_shell_is_whose_token_opened_it(start, place):
    mine, other = add(place, "mine", "full"), add(place, "other", "full")
    server = start({"SSEBENCH_WEBUI_TOKEN": TOKEN})
    run = place.start_run("r1", agent_seconds=60)

    def attach(token, session=""):
        return Screen(server, "/api/pty/r1?mode=binary" + session, protocols=token_protocols(token))
    try:
        is_running(server, mine)
        screen = attach(mine)
        session = "&session=" + screen.first("session")["id"]
        answers(screen)
        for token in (other, TOKEN):
            for more in ("", "&view=1"):
                stranger = attach(token, session + more)
                assert stranger.first("error")["message"] == (
                    "Failed to start terminal: this session has ended")
                stranger.close()
            assert server.request("DELETE", "/api/pty/sessions/" + session.partition("=")[2],
                                  bearer(token)).status == 404
        answers(screen)
        cli(place, "revoke", "mine")
        mine = add(place, "mine", "full")  # a new token of that name
        hup(server)
        screen.to_end()
        assert screen.closed[0] == 4401
        again = attach(mine, session)
        answers(again)
        again.close()
    finally:
        run.terminate()
        run.wait(20)


def test_launch_as_operator(start, place):
    operator, viewer = add(place, "operator", "operate"), add(place, "viewer", "view")
    stage = launch_help.Stage(place)
    server = start(stage.env())
    task = stage.task("t1", stay=True)
    raw = json.dumps(launch_help.body(task)).encode()
    assert server.post("/api/launch", bearer(viewer), raw).status == 403
    r = server.post("/api/launch", bearer(operator), raw)
    assert r.status == 200, r
    launch_id = r.json()["launch_id"]
    process.wait_for(lambda: stage.started(launch_id), what="the launch")
    raw = json.dumps({"launch_id": launch_id}).encode()
    assert server.post("/api/launch/cancel", bearer(viewer), raw).status == 403
    status = server.get("/api/launch/status", bearer(viewer)).json()
    assert launch_id in json.dumps(status)
    stage.end(task)
    assert server.post("/api/launch/cancel", bearer(operator), raw).status == 200


def test_an_idempotency_key_is_its_senders(start, place):
    ada, eve = add(place, "ada", "operate"), add(place, "eve", "operate")
    stage = launch_help.Stage(place)
    server = start(stage.env())
    task = stage.task("t1", stay=True)

    def launch(token, **more):
        r = launch_help.post(server, "", launch_help.body(task, **more),
                             {**bearer(token), "Idempotency-Key": "the same"})
        assert r.status == 200, r
        return r.json()["launch_id"]
    hers, other = launch(ada), launch(eve, timeout=5)
    assert other != hers
    assert launch(ada) == hers and launch(eve, timeout=5) == other
    assert len(server.get("/api/launch/status", bearer(ada)).json()["launches"]) == 2
    stage.end(task)


# --- the command -------------------------------------------------------------------------------------


def test_add_list_revoke(place):
    token = add(place, "alice", "operate", "--expires", "30d")
    assert re.fullmatch(r"ssebench_[A-Za-z0-9_-]{43}", token)
    add(place, "bob", "view")
    mode = os.stat(path_of(place))
    assert stat.S_IMODE(mode.st_mode) == 0o600
    with open(path_of(place), encoding="utf-8") as f:
        text = f.read()
    assert token not in text and len(text.splitlines()) == 4
    rows = cli(place, "list").splitlines()
    assert [r.split()[:2] for r in rows] == [["NAME", "ROLE"], ["alice", "operate"],
                                             ["bob", "view"]]
    end = calendar.timegm(time.strptime(rows[1].split()[3], "%Y-%m-%dT%H:%M:%SZ"))
    assert abs(end - time.time() - 30 * 86400) < 600
    edit(place, lambda text: text + "# mine\n")
    assert cli(place, "revoke", "alice") == ""
    with open(path_of(place), encoding="utf-8") as f:
        assert [line.split()[0] for line in f] == ["#", "#", "bob", "#"], "comments stay"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to look into a closed process")
def test_where_the_token_stands_is_told_to_no_child(start, place):
    """As under systemd, whose variable for the folder names no setting of ours."""
    folder = os.path.join(place.top, "credentials")
    path = os.path.join(folder, "token")
    os.mkdir(folder)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
        f.write(TOKEN)
    server = start({"CREDENTIALS_DIRECTORY": folder, "SSEBENCH_WEBUI_TOKEN_FILE": path})
    for _ in range(2):
        assert server.get("/api/health", bearer(TOKEN)).status == 200
        with open("/proc/%d/environ" % server.broker(), "rb") as f:
            environment = f.read()
        assert b"SSEBENCH_PATH=" in environment and folder.encode() not in environment
        upgrade(server)


def test_nobody_who_only_reads_can_keep_a_token(place):
    """The server's group may read root's folder and file; with a lock on either it could stop a
    token from being revoked."""
    add(place, "alice", "full")
    held = [os.open(path, os.O_RDONLY) for path in (place.state, path_of(place))]
    try:
        for fd in held:
            fcntl.flock(fd, fcntl.LOCK_EX)
        cli(place, "revoke", "alice")
    finally:
        for fd in held:
            os.close(fd)
    lock = os.stat(os.path.join(place.state, ".tokens.lock"))
    assert stat.S_IMODE(lock.st_mode) == 0o600


def test_one_change_at_a_time(place):
    add(place, "alice", "full")
    with open(os.path.join(place.state, ".tokens.lock"), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        p = subprocess.Popen([harness.SERVER, "token", "revoke", "alice"], env=place.env(),
                             stderr=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            p.wait(0.5)
        assert "alice" in cli(place, "list")
    assert p.wait(20) == 0
    assert "alice" not in cli(place, "list")


WRONG_CALLS = [
    (["add", "bob", "--role", "full"], 1, "revoke bob"),
    (["add", "token", "--role", "full"], 1, "SSEBENCH_WEBUI_TOKEN"),
    (["add", "a b", "--role", "full"], 1, "32 letters"),
    (["add", "x", "--role", "admin"], 1, "view, operate or full"),
    (["add", "x", "--role", "view", "--expires", "2001-01-01"], 1, "past"),
    (["add", "x", "--role", "view", "--expires", "9999d"], 1, "3650d"),
    (["add", "x"], 2, "Usage"), (["add", "--role", "view"], 2, "Usage"),
    (["add", "x", "y", "--role", "view"], 2, "Usage"), (["revoke"], 2, "Usage"),
    (["revoke", "nobody"], 1, "token list"), ([], 2, "Usage"), (["list", "x"], 2, "Usage")]


def test_wrong_calls(place):
    add(place, "bob", "view")
    with open(path_of(place), "rb") as f:
        before = f.read()
    for argv, status, says in WRONG_CALLS:
        assert says in cli(place, *argv, status=status), argv
        with open(path_of(place), "rb") as f:
            assert f.read() == before, argv


def test_at_once_and_to_the_limit(place):
    add(place, "n0", "view")
    running = [subprocess.Popen([harness.SERVER, "token", "add", "n%d" % i, "--role", "view"],
                                env=place.env(), stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL) for i in range(1, 64)]
    made = [p.communicate(timeout=60)[0] for p in running]
    assert all(p.returncode == 0 for p in running) and len(set(made)) == 63
    assert len(cli(place, "list").splitlines()) == 65
    assert "limit" in cli(place, "add", "more", "--role", "view", status=1)
    assert sorted(os.listdir(place.state)) == [".tokens.lock", "tokens"], "nothing else is left"


def test_a_link_is_not_written_through(place):
    os.makedirs(place.state, mode=0o700)
    other = os.path.join(place.home, "other")
    open(other, "w").close()
    os.symlink(other, path_of(place))
    assert "is a link" in cli(place, "add", "x", "--role", "view", status=1)
    assert os.path.getsize(other) == 0
    os.unlink(path_of(place))
    os.symlink(other, os.path.join(place.state, ".tokens.new"))
    add(place, "x", "view")
    assert os.path.getsize(other) == 0 and not os.path.islink(path_of(place))


def append(path, text):
    with open(path, "a", encoding="utf-8") as f:
        f.write(text)


SPOILT = [
    (lambda path: os.chmod(path, 0o644), "chmod 600"),
    (lambda path: (os.chmod(path, 0o600), append(path, "rubbish\n")), "line 4"),
    (lambda path: append(path, "#" * 40000), "32768"),
    (lambda path: (os.unlink(path), os.mkdir(path)), "regular file")]


def test_a_bad_file_stops_the_start(place):
    add(place, "x", "view")
    for spoil, says in SPOILT:
        spoil(path_of(place))
        server = harness.Server(place, wait=False)
        assert server.process.wait(30) == 1
        server.stop()
        assert says in server.log and "SSEBENCH_WEBUI_TOKENS" in server.log


def test_the_file_asks_for_tokens_even_when_it_is_empty(start, place):
    server = start({"SSEBENCH_WEBUI_TOKENS": os.path.join(place.home, "none")})
    assert server.get("/api/health").status == 401
    add(place, "x", "view")
    cli(place, "revoke", "x")
    server = start()
    assert server.get("/api/health").status == 401
    assert "nobody gets in" in server.log


def test_another_address_needs_one(place):
    path = os.path.join(place.home, "none")
    server = harness.Server(place, {"SSEBENCH_WEBUI_HOST": "0.0.0.0",
                                    "SSEBENCH_WEBUI_TOKENS": path}, wait=False)
    assert server.process.wait(30) == 1
    server.stop()
    assert "Refusing to listen on 0.0.0.0 without SSEBENCH_WEBUI_TOKEN" in server.log


# --- SIGHUP -------------------------------------------------------------------------------------------


def feed(server, token):
    ws = server.websocket("/api/containers/%s/sdk-ws" % routes.RUN,
                          protocols=token_protocols(token))
    assert ws.receive_json()
    return ws


def kept_alive(server, token):
    c = server.connect()
    ask_again(server, c, token)
    return c


def ask_again(server, c, token):
    c.send(head("GET", server.base + "/api/connection",
                [("Host", server.host), ("Authorization", "Bearer " + token)]))
    assert c.response("GET").status == 200


def is_closed(c):
    try:
        return not c.read_exactly(1)
    except Closed:
        return True


def test_a_revoked_token_is_gone_and_others_notice_nothing(start, place):
    gone, stays = add(place, "gone", "full"), add(place, "stays", "full")
    server = start({"SSEBENCH_WEBUI_TOKEN": TOKEN})
    run = place.start_run("r1", agent_seconds=60)
    is_running(server, TOKEN)
    try:
        feeds = {t: feed(server, t) for t in (gone, stays, TOKEN)}
        alive = {t: kept_alive(server, t) for t in (gone, stays, TOKEN)}
        term = shell(server, "r1", stays)
        cli(place, "revoke", "gone")
        hup(server)
        assert feeds[gone].close_code() == 4401
        assert is_closed(alive[gone])
        assert server.get("/api/health", bearer(gone)).status == 401
        for token in (stays, TOKEN):
            ask_again(server, alive[token], token)
            feeds[token].send_frame(9, b"still")
            while feeds[token].read_frame()[1] != 10:
                pass
        answers(term)
        for c in [*feeds.values(), *alive.values(), term.ws]:
            (c.connection if hasattr(c, "connection") else c).close()
        assert len(server.workers()) == 2
    finally:
        run.terminate()
        run.wait(20)


def test_a_changed_role_closes_and_counts_at_once(start, place):
    token = add(place, "x", "full")
    server = start()
    with feed(server, token) as ws:
        edit(place, lambda text: text.replace("x full", "x view"))
        hup(server)
        assert ws.close_code() == 4401
    assert server.get("/api/health", bearer(token)).json()["role"] == "view"
    assert server.post("/api/containers/r1/stop", bearer(token)).status == 403
    # A later end is no other token: its connections stay.
    with feed(server, token) as ws:
        edit(place, lambda text: text.replace(" never", " 2099-01-01T00:00:00Z"))
        hup(server)
        ws.send_frame(9, b"")
        while ws.read_frame()[1] != 10:
            pass
    report = server.get("/api/connection", bearer(token)).json()
    assert report["tokenExpires"] == "2099-01-01T00:00:00Z"


def test_a_new_token_is_good_for_everything_at_once(start, place):
    add(place, "first", "view")
    server = start()
    for i in range(3):
        token = add(place, "n%d" % i, "operate")
        hup(server)
        answers = [server.post("/api/containers/none/stop", bearer(token)).status
                   for _ in range(6)]
        assert 403 not in answers and 401 not in answers, answers


def test_a_bad_file_keeps_the_old_state(start, place):
    token = add(place, "x", "view")
    server = start()
    with feed(server, token) as ws:
        for spoil in (lambda: edit(place, lambda text: text + "rubbish\n"),
                      lambda: os.chmod(path_of(place), 0o666),
                      lambda: os.unlink(path_of(place))):
            said = len(server.err)
            spoil()
            hup(server)
            assert any("reload-failed" in line for line in server.err[said:])
            assert server.get("/api/health", bearer(token)).status == 200
        ws.send_frame(9, b"")
        while ws.read_frame()[1] != 10:
            pass
    assert server.get("/api/health").status == 401, "a file that went opens nothing"


def test_the_first_token_closes_what_had_none(start, place):
    server = start()
    with server.websocket("/api/containers/%s/sdk-ws" % routes.RUN) as ws:
        assert ws.receive_json()
        token = add(place, "x", "full")
        assert server.get("/api/health").status == 200
        hup(server)
        assert ws.close_code() == 4401
    assert server.get("/api/health").status == 401
    assert server.get("/api/health", bearer(token)).status == 200


def test_the_single_token_too(start, place):
    path = os.path.join(place.home, "token")

    def put(text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o600)
    put(TOKEN)
    named = add(place, "named", "view")
    server = start({"SSEBENCH_WEBUI_TOKEN_FILE": path})
    with feed(server, TOKEN) as single, feed(server, named) as other:
        put("another-token-of-this-test")
        hup(server)
        assert single.close_code() == 4401
        other.send_frame(9, b"")
        while other.read_frame()[1] != 10:
            pass


@pytest.mark.root
def test_a_broker_that_hangs_does_not_save_a_revoked_token(start, place):
    token = add(place, "x", "view")
    server = start({"SSEBENCH_WEBUI_TOKEN": TOKEN})
    with process.frozen(server.broker()):
        cli(place, "revoke", "x")
        hup(server)
        assert server.get("/api/connection", bearer(token)).status == 401


def test_origins_from_a_file(start, place):
    path = os.path.join(place.home, "origins")

    def put(text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    put("# ours\nhttps://one.example  # main\n\n")
    server = start({"SSEBENCH_WEBUI_CORS_ORIGINS_FILE": path,
                    "SSEBENCH_WEBUI_CORS_ORIGINS": "https://set.example"})

    def status(name):
        return server.get("/api/health", {"Origin": "https://%s.example" % name}).status
    assert [status(n) for n in ("set", "one", "two")] == [200, 200, 403]
    put("https://two.example\n")
    hup(server)
    assert [status(n) for n in ("set", "one", "two")] == [200, 403, 200]
    put("https://three.example/path\n")
    hup(server)
    assert [status(n) for n in ("set", "one", "two")] == [200, 403, 200]
    assert "line 1" in server.log


def test_tokens_outlive_an_upgrade_in_place(start, place):
    path = os.path.join(place.home, "named")
    env = {"SSEBENCH_WEBUI_TOKENS": path}
    token, gone = (add(place, name, "operate", env=env) for name in ("stays", "gone"))
    server = start({"SSEBENCH_WEBUI_TOKEN": TOKEN, **env})
    before = set(server.workers())
    server.process.send_signal(signal.SIGUSR2)
    process.wait_for(lambda: len(server.workers()) == 2 and not before & set(server.workers()),
                     what="new workers alone")
    for t, role in ((TOKEN, "full"), (token, "operate")):
        assert server.get("/api/health", bearer(t)).json()["role"] == role
        assert server.post("/api/containers/none/stop", bearer(t)).status != 403
    cli(place, "revoke", "gone", env=env)
    hup(server)
    assert [server.get("/api/health", bearer(t)).status for t in (TOKEN, token, gone)] == \
        [200, 200, 401]


# --- the end of a token --------------------------------------------------------------------------------


def test_a_token_ends_by_itself(start, place):
    ends, stays = add(place, "ends", "full"), add(place, "stays", "full")
    server = start()
    with feed(server, ends) as ws, feed(server, stays) as other:
        c = kept_alive(server, ends)
        at = int(time.time()) + 3
        edit(place, lambda text: re.sub(r"(?m)^(ends .*) never$", r"\1 " + stamp(at), text))
        hup(server)
        assert ws.close_code() == 4401
        assert time.time() >= at - 0.6
        assert is_closed(c)
        other.send_frame(9, b"")
        while other.read_frame()[1] != 10:
            pass
    assert server.get("/api/health", bearer(ends)).status == 401
    assert "(expired)" in cli(place, "list")

"""The assistant, with the real OpenCode as the container's program, a stub of LiteLLM and of
the provider behind it. Skipped by name where OpenCode is not installed
(npm ci in tests/e2e/assistant)."""
import json
import os
import threading
import time

import pytest

import harness
import process
import test_browser
from conftest import built_with_sanitizer
from model_stub import MASTER, ModelStub

BIN = os.path.join(harness.TOP, "tests", "e2e", "assistant", "node_modules", "opencode-linux-x64",
                   "bin")
RUN = "assisted-run.1"
A = "/api/containers/%s/opencode" % RUN
ASKING = json.dumps({"bash": "ask"})

pytestmark = [pytest.mark.once, pytest.mark.skipif(
    not os.access(os.path.join(BIN, "opencode"), os.X_OK),
    reason="OpenCode is not installed: npm ci in tests/e2e/assistant")]


@pytest.fixture
def stub():
    s = ModelStub()
    yield s
    s.close()


class Assisted:
    """A server, a run with OpenCode in its container, and the API's calls."""

    def __init__(self, place, start, stub, env=None, container=None, master=MASTER):
        self.place, self.stub = place, stub
        path = BIN + ":" + os.environ.get("PATH", "/usr/bin:/bin")
        self.env = {"PATH": path, "SSEBENCH_WEBUI_LITELLM_URL": stub.url, **(env or {})}
        if master:
            self.env["LITELLM_MASTER_KEY"] = master
        environment = {**stub.environment(), "OPENCODE_PERMISSION": ASKING, **(container or {})}
        place.start_run(RUN, environment=environment, agent_seconds=600)
        wait_running(place)
        self.server = start(self.env)
        self.source = self.find_source()

    def find_source(self):
        for folder, below, _ in os.walk(os.path.join(self.place.standin, "runs")):
            if folder.endswith("/root") and "src" in below:
                return os.path.join(folder, "src")
        raise AssertionError("the run has no source folder")

    def call(self, method, path, value=None, status=200, timeout=60):
        body = json.dumps(value).encode() if value is not None else b""
        headers = {"Content-Type": "application/json"} if body else {"Content-Length": "0"} \
            if method == "POST" else {}
        r = self.server.request(method, A + path, headers, body, timeout=timeout)
        assert r.status == status, (method, path, r)
        return r.json()

    def session(self, **more):
        return self.call("POST", "/sessions", {"title": "t", "workingDir": self.source,
                                               **more})["id"]

    def say(self, sid, text, **more):
        return self.call("POST", "/sessions/%s/messages" % sid,
                         {"message": text, "directory": self.source}, **more)

    def say_later(self, sid, text):
        """Say it in a thread; a list that gets the answer (or the failure)."""
        got = []

        def run():
            try:
                got.append(self.say(sid, text, timeout=120))
            except AssertionError as wrong:
                got.append(wrong)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        got_at_end = lambda: (thread.join(60), got[0])[1]  # noqa: E731
        return got_at_end

    def events(self, sid=None, **more):
        query = "".join("&%s=%s" % i for i in more.items())
        return Events(self.server.websocket(
            A + "/events-ws?" + ("sessionId=" + sid if sid else "") + query))

    def texts(self, sid):
        found = self.call("GET", "/sessions/%s/messages" % sid)
        return [(m["info"]["role"], "".join(p.get("text", "") for p in m["parts"]
                                            if p["type"] == "text")) for m in found]


def wait_running(place):
    process.wait_for(lambda: place.live_states().get(RUN) == "running", what="the container")


class Events:
    """All frames of one socket, collected behind the test's back."""

    def __init__(self, ws):
        self.ws, self.frames, self.times = ws, [], []
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        try:
            while True:
                frame = self.ws.receive_json()
                self.times.append(time.monotonic())
                self.frames.append(frame)
        except Exception:  # noqa: BLE001 - the socket's end, however it comes
            pass

    def of(self, kind):
        return [f["data"] for f in list(self.frames) if f["type"] == kind]

    def wait(self, kind, n=1, seconds=40):
        return process.wait_for(lambda: self.of(kind)[n - 1:n], seconds,
                                "event %s in %s" % (kind, [f["type"] for f in self.frames]))[0]

    def close(self):
        self.ws.connection.close()


@pytest.fixture
def assisted(place, start, stub):
    return lambda **more: Assisted(place, start, stub, **more)


def wait_healthy(a):
    def healthy():
        r = a.server.get(A + "/health")  # 503 while a part of the server is replaced
        return r.json() if r.status == 200 and r.json()["healthy"] else None
    return process.wait_for(healthy, 60, "health")


# --- a whole conversation ------------------------------------------------------------------

def test_conversation_with_the_runs_model(assisted, place, stub):
    a = assisted()
    assert a.call("GET", "/sessions?directory=" + a.source) == []
    assert not [v for v in place.vectors("runs exec") if "opencode" in v], "a look started it"
    first = a.call("GET", "/health")
    assert first["healthy"] is False and first["processRunning"] is True, first
    health = wait_healthy(a)
    assert health["proxyModel"] == "gpt-6.1-sol" and health["version"] == "1.18.33"
    made = [r for r in stub.requests if r[0] == "/key/generate"]
    assert len(made) == 1
    alias = made[0][2].pop("key_alias")
    assert made[0][2] == {"models": ["gpt-6.1-sol"], "max_budget": 5}
    assert alias.startswith("webui-assistant-assisted-run-") and len(alias.split("-")[-1]) == 8
    assert [v for v in place.vectors("runs exec") if "opencode" in v] == [
        "runs exec --user model --stdin --env OPENCODE_CONFIG_CONTENT %s -- opencode serve "
        "--port 4098 --hostname 0.0.0.0 --print-logs" % RUN]

    sid, other = a.session(), a.session()
    with_events, others = a.events(sid), a.events(other)
    with_events.wait("connection")
    others.wait("connection")
    answer = a.say(sid, "good day")
    assert answer["info"]["role"] == "assistant" and "error" not in answer["info"]
    assert a.texts(sid) == [("user", "good day"), ("assistant", "Hello from the stub.")]
    assert with_events.wait("session.idle")["properties"]["sessionID"] == sid
    assert with_events.of("message.updated") and with_events.of("message.part.updated")
    assert sid not in json.dumps(others.frames), "an event of another session"

    # a tool, allowed, then refused
    for allow, said in (({"allow": True}, "tool said: canary-out"), ({"allow": False}, "")):
        n = len(with_events.of("permission.asked"))
        got = a.say_later(sid, "BASH:echo canary-out")
        asked = with_events.wait("permission.asked", n + 1)["properties"]
        assert asked["permission"] == "bash" and asked["sessionID"] == sid
        late = a.events(sid)  # who comes now is told what is open
        assert late.wait("permission.asked")["properties"]["id"] == asked["id"]
        assert late.wait("session.status")["properties"]["status"]["type"] == "busy"
        late.close()
        reply = "/sessions/%s/permissions/%s" % (sid, asked["id"])
        assert a.call("POST", reply, allow) in (True, {"success": True})
        assert a.call("POST", reply, allow, status=404)["error"]
        assert said in json.dumps(got()["parts"])
        replied = with_events.wait("permission.replied", n + 1)["properties"]
        assert replied["requestID"] == asked["id"]
    # always: the second one is not asked again
    n = len(with_events.of("permission.asked"))
    got = a.say_later(sid, "BASH:echo for-ever")
    asked = with_events.wait("permission.asked", n + 1)["properties"]
    a.call("POST", "/sessions/%s/permissions/%s" % (sid, asked["id"]), {"response": "always"})
    assert "for-ever" in json.dumps(got())
    assert "again" in json.dumps(a.say(sid, "BASH:echo again"))
    assert len(with_events.of("permission.asked")) == n + 1

    assert a.call("GET", "/sessions/" + sid)["id"] == sid
    assert {s["id"] for s in a.call("GET", "/sessions?directory=" + a.source)} == {sid, other}
    assert a.call("DELETE", "/sessions/" + other) is True
    assert a.call("DELETE", "/sessions/" + other, status=404)["error"] == "Session not found"
    assert a.call("GET", "/sessions/%s/messages" % other, status=404)["error"]
    check_no_key(a, [json.dumps(with_events.frames), json.dumps(others.frames)])
    with_events.close()
    others.close()
    # the server's end revokes the key
    a.server.stop()
    assert stub.revoked == stub.keys == ["sk-run-canary-0001"]
    assert "assistant-key-revoked" in a.server.log
    assert not [p for p in process.all_pids()
                if "serve" in process.command(p) and a.place.top in str(process.command(p))]


def check_no_key(a, seen=()):
    """The keys are where they belong, and nowhere else that can be looked at."""
    canaries = [MASTER] + a.stub.keys
    in_environments = 0
    for pid in process.all_pids():
        words = " ".join(process.command(pid) or [])
        assert not [c for c in canaries if c in words], "in an argument vector: " + words
    for pid in a.server.tree():
        try:
            with open("/proc/%d/environ" % pid, "rb") as f:
                text = f.read().decode(errors="replace")
        except OSError:
            continue
        name = (process.command(pid) or ["?"])[0]
        if any(k in text for k in a.stub.keys):
            in_environments += 1
            assert "opencode" in name, name
        if "worker" in name:
            assert text == "", "a worker has an environment"
    assert in_environments >= 1
    if os.geteuid() == 0 and not built_with_sanitizer():  # whose memory is terabytes
        for pid in a.server.workers():
            assert not process.found_in_memory(pid, canaries), "in a worker's memory"
        assert process.found_in_memory(a.server.broker(), a.stub.keys), "the search finds nothing"
    for text in [a.server.log, "\n".join(a.server.out), json.dumps(a.place.calls()), *seen]:
        assert not [c for c in canaries if c in text]


# --- what goes wrong ---------------------------------------------------------------------------

def test_provider_error_abort_and_queue(assisted, stub):
    a = assisted()
    wait_healthy(a)
    sid = a.session()
    events = a.events(sid, heartbeat=1)
    assert events.wait("connection") == {"status": "connected"}
    assert [f for f in events.frames if f["type"] == "heartbeat"]
    # 200 with the error inside, and told
    wrong = a.say(sid, "FAIL:400")
    assert wrong["info"]["error"]["data"]["statusCode"] == 400
    assert events.wait("session.error")["properties"]["error"]["name"] == "APIError"
    # abort in the middle of an answer
    got = a.say_later(sid, "SLOW:300")
    events.wait("message.part.delta")
    assert a.call("POST", "/sessions/%s/abort" % sid) == {"aborted": True}
    assert got()["info"]["error"]["name"] == "MessageAbortedError"
    # abort with a question open leaves no zombie
    got = a.say_later(sid, "BASH:echo never")
    asked = events.wait("permission.asked")["properties"]
    assert a.call("POST", "/sessions/%s/abort" % sid) == {"aborted": True}
    got()
    a.call("POST", "/sessions/%s/permissions/%s" % (sid, asked["id"]), {"allow": True},
           status=404)
    late = a.events(sid)
    late.wait("connection")
    assert late.wait("session.status")["properties"]["status"]["type"] == "idle"
    assert not late.of("permission.asked")
    # two prompts at once: each has its own answer
    n = len(events.of("message.part.delta"))
    one = a.say_later(sid, "SLOW:8")
    events.wait("message.part.delta", n + 1)
    two = a.say_later(sid, "SLOW:9")
    ends = [one()["info"]["parentID"], two()["info"]["parentID"]]
    assert ends[0] != ends[1]
    # deleting at work ends the work
    got = a.say_later(sid, "BASH:echo never")
    events.wait("permission.asked", 2)
    assert a.call("DELETE", "/sessions/" + sid) is True
    got()


def test_restart_in_the_middle(assisted, stub):
    """The server inside dies: the viewer is told, it comes back, the conversation is there."""
    a = assisted()
    wait_healthy(a)
    sid = a.session()
    a.say(sid, "good day")
    events = a.events(sid)
    events.wait("connection")
    got = a.say_later(sid, "SLOW:300")
    events.wait("message.part.delta")
    victim = [p for p in process.descendants(a.server.broker())
              if "opencode" in "".join(process.command(p)[:1])]  # one that has ended has none
    assert len(victim) == 1
    time.sleep(max(0, 10.5 - stub_age(a)))  # one that dies young rests for ten seconds
    os.kill(victim[0], 9)
    failed = got()
    assert isinstance(failed, AssertionError) and "broke" in str(failed)
    assert "OpenCode may not be running" in events.wait("error")["error"]
    wait_healthy(a)
    events.wait("connection", 2)
    assert a.texts(sid)[:2] == [("user", "good day"), ("assistant", "Hello from the stub.")]
    assert "error" not in a.say(sid, "good day again")["info"]
    assert len(stub.keys) == 1, "one key a run"
    # the broker dies: the server in the container goes with its client here; all comes back
    os.kill(a.server.broker(), 9)
    wait_healthy(a)
    assert a.texts(sid)[:1] == [("user", "good day")]
    # and no key of either broker is left, though the first one cannot tell what it made
    a.server.stop()
    assert sorted(stub.revoked) == stub.keys and len(stub.keys) == 2
    assert os.listdir(os.path.join(a.place.state, "assistant-keys")) == []


def stub_age(a):
    return a.call("GET", "/health").get("uptime", 0)


# --- without the run's model --------------------------------------------------------------------

def test_users_own_key(assisted, place, stub):
    """It reaches OpenCode and the provider, nothing else, and a new one counts at once."""
    config = {"provider": {"anthropic": {"options": {"baseURL": stub.url + "/v1"}}},
              "model": "anthropic/claude-sonnet-4-5", "enabled_providers": ["anthropic"]}
    a = assisted(master=None, container={"OPENCODE_CONFIG_CONTENT": json.dumps(config)})
    health = wait_healthy(a)
    assert "proxyModel" not in health and "LITELLM_MASTER_KEY" in health["reason"]
    assert [v for v in place.vectors("runs exec") if "opencode" in v] == [
        "runs exec --user model --stdin %s -- opencode serve --port 4096 --hostname 0.0.0.0 "
        "--print-logs" % RUN]
    for key in ("sk-ant-canary-one", "sk-ant-canary-two"):
        sid = a.session(apiKey=key)
        answer = a.say(sid, "good day")
        assert answer["info"]["error"], answer
        assert stub.anthropic_keys[-1] == key
        for text in (a.server.log, json.dumps(a.place.calls()), json.dumps(answer)):
            assert key not in text
        assert not [p for p in process.all_pids() if key in " ".join(process.command(p) or [])]
    assert stub.keys == []


def test_proxy_refuses(assisted, stub):
    stub.generate_status = 500
    a = assisted()
    health = wait_healthy(a)
    assert "proxyModel" not in health and "HTTP 500" in health["reason"]
    assert MASTER not in a.server.log and MASTER not in json.dumps(health)
    assert "assistant-key-not-made" in a.server.log


def test_master_key_of_dotenv(assisted, place, stub):
    with open(os.path.join(place.checkout, ".env"), "a", encoding="utf-8") as f:
        f.write("\n# the proxy\nexport LITELLM_MASTER_KEY='%s'\nLITELLM_PORT=%d\n" % (MASTER,
                                                                                 stub.port))
    a = assisted(master=None, env={"SSEBENCH_WEBUI_LITELLM_URL": None})
    assert wait_healthy(a)["proxyModel"] == "gpt-6.1-sol"
    assert stub.keys
    # removing the run revokes the key
    assert a.server.post("/api/containers/%s/remove" % RUN).status == 200
    process.wait_for(lambda: stub.revoked == stub.keys, what="the key's end")


def test_run_removed_on_the_command_line(assisted, place, stub):
    """Its key is revoked although nobody told this server: the next listing does."""
    a = assisted()
    wait_healthy(a)
    a.server.post("/api/containers/%s/stop" % RUN)  # stopped is not gone
    process.wait_for(lambda: "assistant-ended" in a.server.log, what="the server's end")
    assert [r["status"] for r in a.server.runs() if r["id"] == RUN] == ["exited"]
    assert stub.keys and stub.revoked == []
    place.cli("runs", "remove", RUN)
    process.wait_for(lambda: a.server.runs() and stub.revoked == stub.keys, what="the key's end")
    assert "assistant-run-gone" in a.server.log


# --- without OpenCode ---------------------------------------------------------------------------

def test_no_opencode_in_the_image(place, start, stub):
    """The reason is told, and asking again does not start it again and again."""
    place.start_run(RUN, environment=stub.environment(), agent_seconds=60)
    wait_running(place)
    server = start({"PATH": "/usr/bin:/bin", "LITELLM_MASTER_KEY": MASTER,
                    "SSEBENCH_WEBUI_LITELLM_URL": stub.url})
    server.json(A + "/health")
    reason = process.wait_for(
        lambda: (lambda h: None if h["processRunning"] else h["reason"])(
            server.json(A + "/health")), what="a reason")
    assert "opencode" in reason
    for _ in range(5):
        server.json(A + "/health")
    assert len([v for v in place.vectors("runs exec") if "serve" in v]) == 1
    r = server.post(A + "/sessions", {"Content-Type": "application/json"}, b"{}")
    assert r.status == 503 and r.json()["error"] == "OpenCode SDK client unavailable"
    assert reason in r.json()["hint"]


@pytest.mark.parametrize("knobs, why", [
    ({"supports_exec": False, "backend": "podling"}, "podling"),
    ({"backend": "kubernetes"}, "kubernetes"),
])
def test_backends_without_assistant(place, start, knobs, why):
    place.start_run(RUN, agent_seconds=60)
    wait_running(place)
    place.knobs(**knobs)
    server = start()
    process.wait_for(lambda: server.json("/api/health")["assistant"] is False,
                     what="assistant: false")
    health = server.json(A + "/health")
    assert health["healthy"] is False and why in health["reason"]
    assert not place.vectors("runs exec")


def test_hosted_starts_nothing(place, start):
    place.start_run(RUN, agent_seconds=60)
    server = start({"SSEBENCH_WEBUI_HOSTED": "1", "LITELLM_MASTER_KEY": MASTER})
    for method, path in (("GET", "/health"), ("GET", "/sessions"), ("POST", "/sessions"),
                         ("GET", "/sessions/ses_1/messages"), ("POST", "/sessions/ses_1/abort")):
        assert server.request(method, A + path, {"Content-Length": "0"}).status == 403
    assert not place.vectors("runs exec")


@pytest.mark.parametrize("method, path, body, status", [
    ("GET", "/sessions/nope", None, 404),
    ("GET", "/sessions/ses_%2e%2e/messages", None, 404),
    ("POST", "/sessions", b"{", 400),
    ("POST", "/sessions", b"[]", 400),
    ("POST", "/sessions", b'{"workingDir":"src"}', 400),
    ("POST", "/sessions/ses_1/messages", b"{}", 400),
    ("POST", "/sessions/ses_1/messages", b'{"message":""}', 400),
    ("POST", "/sessions/ses_1/messages", b"no", 400),
    ("POST", "/sessions/ses_1/permissions/per_1", b"{}", 400),
    ("POST", "/sessions/ses_1/permissions/per_1", b'{"response":"perhaps"}', 400),
    ("POST", "/sessions/ses_1/permissions/x", b'{"allow":true}', 404),
    ("GET", "/sessions?directory=src", None, 400),
    ("PUT", "/sessions", None, 405),
    ("GET", "/config", None, 404),
    ("GET", "/provider", None, 404),
])
def test_refused_before_anything_starts(place, start, method, path, body, status):
    server = start()
    headers = {"Content-Type": "application/json"} if body else {"Content-Length": "0"}
    r = server.request(method, A + path, headers, body or b"")
    assert r.status == status and r.json()["error"]
    assert not place.vectors("runs exec")


def test_two_servers_of_one_state_directory(assisted, place, start, stub):
    """The end of one does not revoke what the other one's assistant uses."""
    a = assisted()
    wait_healthy(a)
    other = start(a.env)
    other.json("/api/health")
    other.stop()
    assert stub.revoked == [] and len(stub.keys) == 1
    a.server.stop()
    assert stub.revoked == stub.keys


# --- in the page ----------------------------------------------------------------------------

def test_the_page_talks_with_it(assisted):
    if not test_browser.browser():
        pytest.skip("no Chromium on this machine")
    a = assisted()
    test_browser.run_on(a.server, os.path.join(test_browser.HERE, "assistant.mjs"),
                        SSEBENCH_CHROMIUM=test_browser.browser())
    assert not os.path.exists(os.path.join(a.source, "denied")), "what was denied was not done"

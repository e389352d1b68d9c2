"""Settings: good values do what they say, bad ones stop the start with a message."""
import os
import subprocess

import pytest

import harness

pytestmark = pytest.mark.once

BAD = [
    ({"SSEBENCH_WEBUI_HOST": "0.0.0.0"},
     "[Server] Refusing to listen on 0.0.0.0 without SSEBENCH_WEBUI_TOKEN. Set a token, or keep "
     "SSEBENCH_WEBUI_HOST on a loopback address (default 127.0.0.1)."),
    ({"SSEBENCH_WEBUI_HOST": "::"},
     "[Server] Refusing to listen on :: without SSEBENCH_WEBUI_TOKEN. Set a token, or keep "
     "SSEBENCH_WEBUI_HOST on a loopback address (default 127.0.0.1)."),
    ({"SSEBENCH_WEBUI_TOKEN": "short"}, "must be at least 16 characters without spaces"),
    ({"SSEBENCH_WEBUI_TOKEN": "with a space in the middle of it"},
     "must be at least 16 characters without spaces"),
    ({"SSEBENCH_WEBUI_TOKEN": "with-a\ttab-in-the-middle"},
     "must be at least 16 characters without spaces"),
    ({"SSEBENCH_WEBUI_HOSTED": "maybe"}, "SSEBENCH_WEBUI_HOSTED"),
    ({"SSEBENCH_WEBUI_TERMINAL": "maybe"}, "SSEBENCH_WEBUI_TERMINAL"),
    ({"SSEBENCH_WEBUI_CORS_ORIGINS": "*"}, "SSEBENCH_WEBUI_CORS_ORIGINS"),
    ({"SSEBENCH_WEBUI_CORS_ORIGINS": "https://a.example/path"}, "SSEBENCH_WEBUI_CORS_ORIGINS"),
    ({"SSEBENCH_WEBUI_CORS_ORIGINS": "null"}, "SSEBENCH_WEBUI_CORS_ORIGINS"),
    ({"SSEBENCH_WEBUI_CORS_ORIGINS": "a.example"}, "SSEBENCH_WEBUI_CORS_ORIGINS"),
    ({"PORT": "99999"}, "PORT"), ({"PORT": "80x"}, "PORT"), ({"PORT": "-1"}, "PORT"),
    ({"SSEBENCH_WEBUI_WORKERS": "0"}, "SSEBENCH_WEBUI_WORKERS"),
    ({"SSEBENCH_WEBUI_WORKERS": "many"}, "SSEBENCH_WEBUI_WORKERS"),
    ({"SSEBENCH_WEBUI_BASE_PATH": "no-slash?"}, "SSEBENCH_WEBUI_BASE_PATH"),
    ({"SSEBENCH_WEBUI_BASE_PATH": "/a/../b"}, "SSEBENCH_WEBUI_BASE_PATH"),
    ({"SSEBENCH_WEBUI_BASE_PATH": "/a%2fb"}, "SSEBENCH_WEBUI_BASE_PATH"),
    ({"SSEBENCH_WEBUI_PEERS": "some"}, "SSEBENCH_WEBUI_PEERS"),
    ({"SSEBENCH_PATH": "/nonexistent/checkout"}, "SSEBENCH_PATH"),
    ({"SSEBENCH_WEBUI_TOKEN_FILE": "/nonexistent/token"}, "SSEBENCH_WEBUI_TOKEN_FILE"),
    ({"SSEBENCH_WEBUI_HOST": "unix:/nonexistent/folder/socket"}, "/nonexistent/folder/socket"),
    ({"SSEBENCH_WEBUI_HOST": "256.1.1.1"}, "256.1.1.1"),
    ({"SSEBENCH_WEBUI_USER": "no-such-account"}, "SSEBENCH_WEBUI_USER"),
]


def start_refused(place, env):
    return subprocess.run([harness.SERVER], env={**place.env(), "PORT": "0", **env},
                          cwd=place.checkout, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def empty():
    p = harness.Place(demo=False)
    yield p
    p.close()


@pytest.mark.parametrize("env,text", BAD, ids=["%s=%s" % list(b[0].items())[0] for b in BAD])
def test_bad_value_stops_the_start(empty, env, text):
    r = start_refused(empty, env)
    assert r.returncode == 1, r
    lines = [x for x in r.stderr.splitlines() if x.startswith("[Server] ")]
    assert lines and text in r.stderr, r.stderr
    if text.startswith("[Server] "):
        assert text in lines, r.stderr
    token = env.get("SSEBENCH_WEBUI_TOKEN")
    assert not token or token not in r.stderr + r.stdout, "a secret is never repeated"
    assert "Listening" not in r.stdout


def test_token_file_others_can_read(empty):
    path = os.path.join(empty.top, "open-token")
    with open(path, "w", encoding="utf-8") as f:
        f.write("a-token-that-all-can-read\n")
    os.chmod(path, 0o644)
    r = start_refused(empty, {"SSEBENCH_WEBUI_TOKEN_FILE": path})
    assert r.returncode == 1 and "a-token-that-all-can-read" not in r.stderr + r.stdout


@pytest.mark.parametrize("value,on", [("1", True), ("TRUE", True), ("Yes", True), ("on", True),
                                      ("0", False), ("False", False), ("NO", False),
                                      ("oFF", False), ("", False), ("  ", False), (" 1 ", True)])
def test_switch_words(empty, value, on):
    server = harness.Server(empty, {"SSEBENCH_WEBUI_HOSTED": value})
    try:
        assert server.json("/api/health")["hosted"] is on
    finally:
        assert server.stop() == 0


def test_blank_values_are_defaults(start):
    server = start({"SSEBENCH_WEBUI_HOST": "  ", "SSEBENCH_WEBUI_TOKEN": "",
                    "SSEBENCH_WEBUI_TERMINAL": " ", "SSEBENCH_CATALOG": ""})
    assert server.address[0] == "127.0.0.1"
    assert server.json("/api/health")["terminal"] is True


def run(*argv, env=None):
    return subprocess.run([harness.SERVER, *argv], capture_output=True, text=True, timeout=30,
                          env=env, stdin=subprocess.DEVNULL)


def test_version_and_help():
    r = run("--version")
    assert r.returncode == 0 and "1.1" in r.stdout
    r = run("--help")
    assert r.returncode == 0
    for name in ("PORT", "SSEBENCH_WEBUI_TOKEN", "SSEBENCH_WEBUI_HOSTED", "SSEBENCH_CLI",
                 "SSEBENCH_PATH", "SSEBENCH_WEBUI_BASE_PATH", "SSEBENCH_WEBUI_PEERS"):
        assert name in r.stdout
    assert "1 to 64." in r.stdout, "ranges are told"
    assert run("--nonsense").returncode != 0


def test_check(empty):
    env = {**empty.env(), "SSEBENCH_WEBUI_TOKEN": "this-is-a-secret-token", "LITELLM_MASTER_KEY":
           "sk-this-is-secret-too", "PORT": "4711"}
    r = run("--check", env=env)
    assert r.returncode == 0 and "4711" in r.stdout and empty.checkout in r.stdout
    assert "secret" not in r.stdout + r.stderr
    r = run("--check", env={**env, "PORT": "x"})
    assert r.returncode == 1 and r.stderr.startswith("[Server] ")


def test_check_warns_of_what_lists_nothing(empty, tmp_path):
    """The server would start, and say so in runnerError; who checks wants to know before."""
    env = {**empty.env(), "PORT": "4711", "SSEBENCH_PATH": str(tmp_path)}
    r = run("--check", env={**env, "SSEBENCH_CLI": "no-such x"})
    assert r.returncode == 0 and "SSEBENCH_PATH=%s\n" % tmp_path in r.stdout
    assert "LITELLM_PORT=unset (`.env`, else 4000)\n" in r.stdout
    lines = r.stderr.splitlines()
    assert lines[0].startswith("[Server] Warning: SSEBENCH_PATH=%s has neither" % tmp_path)
    assert lines[1].startswith("[Server] Warning: SSEBENCH_CLI: no-such is not there")
    assert len(lines) == 2
    (tmp_path / "agents").mkdir()
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    for cli in ("./tool a", str(program), "tool"):
        given = {**env, "SSEBENCH_CLI": cli, "PATH": "/nonexistent:%s" % tmp_path}
        program.chmod(0o644)
        assert "SSEBENCH_CLI" in run("--check", env=given).stderr
        program.chmod(0o755)
        assert run("--check", env=given).stderr == ""


def test_a_misspelled_setting_is_refused(empty):
    env = empty.env()
    for name in ("SSEBENCH_WEBUI_HOSTEDD", "SSEBENCH_WEBUI_TOKNE", "SSEBENCH_WEBUI_"):
        r = run("--check", env={**env, name: "a-value-that-may-be-a-secret"})
        assert r.returncode == 1
        assert r.stderr.startswith("[Server] Unknown setting %s. " % name)
        assert "secret" not in r.stderr
    for name in ("SSEBENCH_WEBUI_SERVICE_HOST", "SSEBENCH_WEBUI_PORT_3001_TCP", "SSEBENCH_K8S_ANY"):
        assert run("--check", env={**env, name: "x"}).returncode == 0


def test_busy_port(start):
    server = start()
    r = start_refused(server.place, {"PORT": str(server.address[1])})
    assert r.returncode == 1 and str(server.address[1]) in r.stderr
    assert r.stderr.splitlines()[0].startswith("[Server] ")

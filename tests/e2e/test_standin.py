"""The stand-in keeps the command's contract; the lab holds the real command to the same."""
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

import process
from harness import STANDIN

pytestmark = pytest.mark.once


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def run_argv(run_id, *more):
    return [STANDIN, "run", "--model=gpt-6.1-sol", "--agent=codex", "--mode=sandbox",
            "--task=ringlog-race-7", "--run-id=" + run_id, *more]


def start_run(place, run_id, *more, **knobs):
    knobs = {"build_seconds": 0, "agent_seconds": 0.3, **knobs}
    env = {**place.env(), "SSEBENCH_STANDIN_KNOBS": json.dumps(knobs)}
    return subprocess.Popen(run_argv(run_id, *more), cwd=place.checkout, env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True)


def folder(place, run_id):
    return os.path.join(place.results, "ringlog-race-7", "gpt-6.1-sol", "codex", run_id)


STATUSES = [
    (2, ["runs", "inspect", "latest"]), (2, ["runs", "stop", "-x"]), (2, ["runs", "stop"]),
    (2, ["nonsense"]), (2, ["runs", "endpoint", "x", "0"]), (3, ["runs", "inspect", "x"]),
    (3, ["runs", "stop", "x"]), (3, ["runs", "remove", "x"]), (3, ["runs", "logs", "x"]),
    (2, ["run", "--task=t"]), (2, ["run", "--agent=a", "--task=t", "--mode=x"]),
    (2, ["run", "--agent=a", "--task=t", "--run-id=latest"]),
    (2, ["run", "--agent=a", "--task=t", "--difficulty=5"]),
    (1, ["run", "--agent=codex", "--task=ringlog-race-7"]),
    (1, ["run", "--agent=none-such", "--model=gpt-6.1-sol", "--task=ringlog-race-7"]),
    (1, ["run", "--agent=codex", "--model=none-such", "--task=ringlog-race-7"]),
    (1, ["run", "--agent=codex", "--model=gpt-6.1-sol", "--task=none-such"]),
    (1, ["run", "--agent=codex", "--model=gpt-6.1-sol", "--task=ringlog-race-7", "--plugin=x"]),
    (1, ["runs", "list", "--backend=nowhere"]),
]


@pytest.mark.parametrize("status,argv", STATUSES, ids=[" ".join(s[1])[:60] for s in STATUSES])
def test_exit_status(place, status, argv):
    r = place.cli(*argv)
    assert r.returncode == status and r.stdout == "" and r.stderr


def test_a_run_from_start_to_summary(place):
    p = start_run(place, "r1")
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and out.splitlines()[-2] == "Grade: passed"
    assert out.splitlines()[-1] == "Run directory: " + folder(place, "r1")
    assert all(line.split(":")[0] in ("INFO", "WARNING") for line in err.splitlines())
    assert os.readlink(os.path.join(os.path.dirname(folder(place, "r1")), "latest")) == "r1"
    assert place.live_states() == {}, "not kept, so the backend has forgotten it"
    assert place.finished()[0]["run_id"] == "r1"
    with open(os.path.join(folder(place, "r1"), "summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    assert set(summary) == {"task", "config", "patch_result", "runtime_result", "spend",
                            "run_id", "started_at", "plugin_results"}


def test_a_kept_run(place):
    p = start_run(place, "r1", "--keep-container")
    process.wait_for(lambda: place.live_states().get("r1") == "running", what="running")
    url = json.loads(place.cli("runs", "endpoint", "r1", "4263", "--json").stdout)["url"]
    result = process.wait_for(lambda: get(url + "/result")["available"] and get(url + "/result"),
                              what="a grade")
    assert result["patch_result"]["status"] == "passed" and p.poll() is None
    assert not os.path.exists(os.path.join(folder(place, "r1"), "summary.json"))
    entries = get(url + "/agent/dialog?since=-1")["entries"]
    assert entries[0]["type"] == "init" and entries[-1]["type"] == "complete"
    assert [e["seq"] for e in entries] == list(range(len(entries)))
    assert place.cli("runs", "stop", "r1").returncode == 0
    p.communicate(timeout=30)
    assert p.returncode == 0 and place.live_states() == {"r1": "exited"}
    shown = json.loads(place.cli("runs", "inspect", "--json", "r1").stdout)
    assert (shown["state"], shown["exit_code"]) == ("exited", 143)
    assert "not running" in place.cli("runs", "endpoint", "r1", "4263").stderr
    assert place.cli("runs", "remove", "r1").returncode == 0
    assert place.cli("runs", "inspect", "r1").returncode == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_ends_the_run_in_order(place, number):
    p = start_run(place, "r1", agent_seconds=60)
    process.wait_for(lambda: place.live_states().get("r1") == "running", what="running")
    p.send_signal(number)
    out, _ = p.communicate(timeout=30)
    assert p.returncode == 0 and "Grade: error" in out
    assert place.finished()[0]["status"] == "error"


def test_second_signal_ends_it_at_once(place):
    p = start_run(place, "r1", agent_seconds=60, ignore_term=True)
    process.wait_for(lambda: place.live_states().get("r1") == "running", what="running")
    p.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert p.poll() is None
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=30)
    assert p.returncode == -signal.SIGTERM and place.live_states()["r1"] == "running"


def test_signal_before_the_run_phase(place):
    p = start_run(place, "r1", build_seconds=30)
    process.wait_for(lambda: place.vectors("run "), what="the start")
    time.sleep(0.3)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=30)
    assert p.returncode == -signal.SIGTERM and not os.path.exists(folder(place, "r1"))


def test_exec(place):
    p = start_run(place, "r1", "--keep-container")
    process.wait_for(lambda: place.live_states().get("r1") == "running", what="running")
    r = subprocess.run([STANDIN, "runs", "exec", "--user", "model", "--env", "HANDED", "r1", "--",
                        "sh", "-c", "printenv SSE_MODEL_NAME HANDED; exit 7"],
                       env={**place.env(), "HANDED": "over"}, cwd=place.checkout,
                       capture_output=True, text=True, timeout=30)
    assert (r.returncode, r.stdout) == (7, "gpt-6.1-sol\nover\n")
    assert place.cli("runs", "remove", "r1").returncode == 0
    p.communicate(timeout=30)

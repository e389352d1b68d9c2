"""The page in a headless browser: every browser/test_*.mjs, with a server of its own."""
import glob
import json
import os
import re
import shutil
import subprocess

import pytest

import harness

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browser")
ARTEFACTS = os.path.join(harness.BUILD, "artefacts")
SCRIPTS = sorted(glob.glob(os.path.join(HERE, "test_*.mjs")))


def browser():
    for name in (os.environ.get("SSEBENCH_CHROMIUM"), "chromium", "chromium-browser",
                 "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


def needs(script):
    with open(script, encoding="utf-8") as f:
        return set(re.findall(r"^// needs: (\w+)", f.read(4000), re.M))


def make_tokens(place):
    """A named token of each role."""
    def add(name, role, *more):
        return subprocess.run([harness.SERVER, "token", "add", name, "--role", role, *more],
                              env=place.env(), check=True, capture_output=True, text=True,
                              timeout=60).stdout.strip()
    return {"view": add("viewer", "view"), "operate": add("operator", "operate", "--expires", "30d"),
            "full": add("all", "full")}


@pytest.mark.parametrize("script", SCRIPTS, ids=[os.path.basename(s) for s in SCRIPTS])
def test_page(start, place, script):
    if not browser():
        pytest.skip("no Chromium on this machine")
    if not shutil.which("node"):
        pytest.skip("no node on this machine")
    wanted = needs(script)
    if "live" in wanted:
        place.start_run("live-1", agent_seconds=30)
    roles = make_tokens(place) if "roles" in wanted else {}
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN} if "token" in wanted else None)
    os.makedirs(ARTEFACTS, exist_ok=True)
    env = {**os.environ, "SSEBENCH_URL": server.url, "SSEBENCH_TOKEN": server.token or "",
           "SSEBENCH_CHROMIUM": browser(), "SSEBENCH_ARTEFACTS": ARTEFACTS,
           "SSEBENCH_CHECKOUT": place.checkout, "HOME": place.home,
           "SSEBENCH_ROLES": json.dumps(roles), "SSEBENCH_PROGRAM": harness.SERVER,
           "SSEBENCH_PID": str(server.pid), "XDG_STATE_HOME": place.env()["XDG_STATE_HOME"]}
    r = subprocess.run(["node", script], cwd=HERE, env=env, capture_output=True, text=True,
                       timeout=300, stdin=subprocess.DEVNULL)
    if r.returncode == 77:
        pytest.skip((r.stderr.strip() or "no reason given").splitlines()[-1])
    assert r.returncode == 0, r.stdout[-4000:] + r.stderr[-4000:]


def test_there_are_scripts():
    assert SCRIPTS, "the browser tests are part of the suite"

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
# What people do most, as one walk: run in the other engine too.
WALK = os.path.join(HERE, "walk.mjs")


def browser():
    for name in (os.environ.get("SSEBENCH_CHROMIUM"), "chromium", "chromium-browser",
                 "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


def firefox():
    for name in (os.environ.get("SSEBENCH_FIREFOX"), "firefox-esr", "firefox"):
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


def run_script(start, place, script, token=False, **more):
    if not shutil.which("node"):
        pytest.skip("no node on this machine")
    wanted = needs(script)
    if "live" in wanted:
        place.start_run("live-1", agent_seconds=200)
    more["SSEBENCH_ROLES"] = json.dumps(make_tokens(place) if "roles" in wanted else {})
    run_on(start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN} if token or "token" in wanted else None),
           script, **more)


def run_on(server, script, **more):
    """One script, on a server that is there. A status of 77 skips, with its last line's reason."""
    os.makedirs(ARTEFACTS, exist_ok=True)
    env = {**os.environ, "SSEBENCH_URL": server.url, "SSEBENCH_TOKEN": server.token or "",
           **more, "SSEBENCH_ARTEFACTS": ARTEFACTS,
           "SSEBENCH_CHECKOUT": server.place.checkout, "HOME": server.place.home,
           "SSEBENCH_PROGRAM": harness.SERVER, "SSEBENCH_PID": str(server.pid),
           "XDG_STATE_HOME": server.place.env()["XDG_STATE_HOME"]}
    try:
        r = subprocess.run(["node", script], cwd=HERE, env=env, capture_output=True, text=True,
                           timeout=300, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        raise AssertionError("not done after 300 s: %s" % (late.stdout or b"")[-4000:]) from None
    if r.returncode == 77:
        pytest.skip((r.stderr.strip() or "no reason given").splitlines()[-1])
    assert r.returncode == 0, r.stdout[-4000:] + r.stderr[-4000:]


@pytest.mark.parametrize("script", SCRIPTS, ids=[os.path.basename(s) for s in SCRIPTS])
def test_page(start, place, script):
    if not browser():
        pytest.skip("no Chromium on this machine")
    run_script(start, place, script, SSEBENCH_CHROMIUM=browser())


@pytest.mark.once
def test_the_main_flows_in_firefox(start, place):
    if not firefox():
        pytest.skip("no Firefox on this machine")
    run_script(start, place, WALK, token=True, SSEBENCH_FIREFOX=firefox())


def test_there_are_scripts():
    assert SCRIPTS, "the browser tests are part of the suite"

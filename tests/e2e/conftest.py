"""Fixtures: a place, servers on it, and the check that a test leaves nothing behind."""
import os
import signal

import pytest

import harness
import process

process.become_subreaper()


def pytest_configure(config):
    if not os.access(harness.SERVER, os.X_OK):
        pytest.exit("no server at %s: build it, or set SSEBENCH_BUILD" % harness.SERVER, 2)


def pytest_terminal_summary(terminalreporter):
    """Why a test needed its second try: that it passed then is no explanation."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_line("first try of %s: %s" % (report.nodeid, report.longreprtext[-1500:]))


def built_with_sanitizer():
    with open(harness.WORKER, "rb") as f:
        return b"__asan_init" in f.read()


def pytest_collection_modifyitems(items):
    if not built_with_sanitizer():
        return
    skip = pytest.mark.skip(reason="memory is not measured in a build with sanitizers")
    for item in items:
        if item.get_closest_marker("plain"):
            item.add_marker(skip)


@pytest.fixture
def place():
    p = harness.Place()
    yield p
    p.close()


@pytest.fixture
def start(place):
    """start(env) -> a running server, stopped after the test; then nothing may be left."""
    servers = []

    def start_one(env=None, **more):
        server = harness.Server(more.pop("at", place), env, **more)
        servers.append(server)
        return server
    yield start_one
    failures = []
    for server in servers:
        if server.process.poll() is None:
            code = server.stop()
            if code != 0:
                failures.append("exit status %d after SIGTERM" % code)
        failures += ["sanitizer: " + line for line in server.err if "ERROR: AddressSanitizer"
                     in line or "runtime error:" in line or "ERROR: LeakSanitizer" in line]
    place.cli("standin-reset")
    try:
        process.wait_for(lambda: not harness.leftovers(), 10, "no process left")
    except AssertionError:
        left = harness.leftovers()
        failures.append("left behind: %r" % left)
        for pid, _ in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert not failures, failures


def module_server(env=None):
    """A server for a module of reading tests."""
    p = harness.Place()
    server = harness.Server(p, env)
    harness.long_lived.append(server)
    yield server
    code = server.stop()
    p.close()
    harness.long_lived.remove(server)
    assert code == 0, server.log
    process.wait_for(lambda: not harness.leftovers(), 10, "no process left")


@pytest.fixture(scope="module")
def shared():
    yield from module_server()


@pytest.fixture(scope="module")
def guarded():
    """The same with a token."""
    yield from module_server({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})


def pytest_runtest_setup(item):
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root, to act as another account")

"""The server's own route table, as the worker prints it: tests walk what really is there."""
import functools
import subprocess

import harness

RUN = "hostile-output.1"  # a finished run of the demonstration
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FETCH")


@functools.lru_cache(maxsize=None)
def table():
    """(method, pattern, kind, least role) of every row."""
    text = subprocess.run([harness.WORKER, "--routes"], check=True, capture_output=True,
                          text=True, timeout=30).stdout
    rows = [tuple(line.split()) for line in text.splitlines() if line]
    assert len(rows) > 5 and all(len(r) == 4 and r[1].startswith("/") for r in rows), text
    return rows


def concrete(pattern):
    words = [RUN if w == ":id" else "x1" if w.startswith(":") else w
             for w in pattern.split("/")]
    return "/".join(words)


def api_paths():
    """Each distinct path of the API: (path, is it a WebSocket)."""
    found = {}
    for _, pattern, kind, _ in table():
        if pattern.startswith("/api"):
            found.setdefault(concrete(pattern), kind == "websocket")
    return sorted(found.items())

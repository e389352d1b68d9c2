"""The description of all documents and messages, and the checker of these tests itself."""
import pytest

import protocol
from routes import table

described = pytest.mark.skipif(not protocol.described()["MESSAGES"],
                               reason="the page came built, without its description")


@described
def test_every_websocket_is_described():
    sockets = {p.replace(":id", "ID") for _, p, kind, *_ in table() if kind == "websocket"}
    assert sockets - {"/api/pty-debug/ID"} == set(protocol.described()["MESSAGES"])


@described
def test_every_described_document_has_a_route():
    routes = {m + " " + p.replace(":id", "ID") for m, p, kind, *_ in table() if kind == "http"}
    assert set(protocol.described()["DOCUMENTS"]) <= routes


@described
@pytest.mark.parametrize("path, message, wrong", [
    ("/api/launch/ws", {"type": "log", "launch_id": "a", "data": "x", "offset": 3}, None),
    ("/api/launch/ws", {"type": "log", "launch_id": "a", "data": 7}, "m.data"),
    ("/api/launch/ws", {"type": "status", "launch_id": "a", "data": {}}, "m.data.launch_id"),
    ("/api/containers/r/sdk-ws?since=4", {"type": "heartbeat", "intervalMs": 9}, None),
    ("/api/containers/r/sdk-ws", {"type": "status", "status": "asleep"}, "m.status"),
    ("/api/containers/r/sdk-ws", {"type": "files", "files": [{"path": "a"}]}, "m.files[0].status"),
    ("/api/containers/r/sdk-ws", {"type": "news"}, "m.type"),
    ("/api/containers/r/logs-ws", {"type": "end", "data": {"exitCode": None}}, None),
    ("/api/containers/r/logs-ws", {"type": "end", "data": {"exitCode": True}}, "m.data.exitCode"),
    ("/api/pty/r", {"type": "exit"}, "m.code"),
    ("/api/pty/r", [], "m"),
    ("/api/containers/r/opencode/events-ws", {"type": "x.y", "data": {"properties": 1}}, None),
    ("/api/containers/r/opencode/events-ws", {"type": "x.y"}, "m.data"),
])
def test_misfits_are_found(path, message, wrong):
    assert protocol.misfit(protocol.shape_of("MESSAGES", path), message, "m") == wrong


def test_other_paths_are_not_described():
    assert protocol.shape_of("MESSAGES", "/api/containers/a/b/sdk-ws") is None
    assert protocol.shape_of("DOCUMENTS", "/api/containers/a/", "GET ") is None

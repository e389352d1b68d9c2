"""A client of the terminal, as a test reads and types it."""
import json
import re

from http_client import Closed
from ws_client import BINARY, CLOSE, TEXT


class Screen:
    """A terminal's client. `text` is all output so far, `told` every other frame."""

    def __init__(self, server, path, **more):
        self.ws = server.websocket(path, **more)
        self.output, self.told, self.closed = b"", [], None
        self.sizes = []  # of old output: (where it begins in `output`, columns, rows)

    def frame(self):
        try:
            opcode, payload = self.ws.receive()
        except Closed:
            self.closed = (1006, "")
            return
        if opcode == CLOSE:
            self.closed = (int.from_bytes(payload[:2], "big"), payload[2:].decode())
        elif opcode == BINARY:
            self.output += payload
        elif opcode == TEXT:
            self.message(json.loads(payload))

    def message(self, m):
        if m["type"] == "output":
            self.output += m["data"].encode()
        elif m["type"] == "resize":
            self.sizes.append((len(self.output), m["cols"], m["rows"]))
        else:
            self.told.append(m)

    def until(self, condition):
        while not condition() and self.closed is None:
            self.frame()
        assert condition(), (self.output[-2000:], self.told, self.closed)

    def shows(self, pattern):
        self.until(lambda: re.search(pattern.encode(), self.output))
        return re.search(pattern.encode(), self.output)

    def first(self, kind):
        self.until(lambda: [m for m in self.told if m["type"] == kind])
        return [m for m in self.told if m["type"] == kind][0]

    def to_end(self):
        self.until(lambda: self.closed is not None)

    def type(self, text):
        self.ws.send_json({"type": "input", "data": text})

    def raw(self, data):
        self.ws.send_frame(BINARY, data)

    def resize(self, cols, rows):
        self.ws.send_json({"type": "resize", "cols": cols, "rows": rows})

    def close(self):
        self.ws.connection.close()

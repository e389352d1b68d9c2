"""WebSockets by hand: handshakes and frames as a test wants them, well formed or not."""
import base64
import hashlib
import json
import os
import struct

import protocol
from http_client import Closed, Connection, head

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def handshake_headers(host, key=None, protocols=None, origin=None):
    key = key or base64.b64encode(os.urandom(16)).decode()
    headers = [("Host", host), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
               ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]
    if protocols:
        headers.append(("Sec-WebSocket-Protocol", ", ".join(protocols)))
    if origin is not None:
        headers.append(("Origin", origin))
    return headers, key


def token_protocols(token):
    text = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    return ["ssebench", "ssebench.token." + text]


class Refused(Exception):
    def __init__(self, response):
        super().__init__(repr(response))
        self.response = response


class WebSocket:
    """An open one; raises Refused with the answer when the handshake is refused."""

    def __init__(self, address, target, host, protocols=None, origin=None, extra=(), timeout=20):
        self.connection = Connection(address, timeout)
        headers, key = handshake_headers(host, protocols=protocols, origin=origin)
        self.answer = self.connection.raw(head("GET", target, headers + list(extra)))
        if self.answer.status != 101:
            self.connection.close()
            raise Refused(self.answer)
        wanted = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
        assert self.answer.header("Sec-WebSocket-Accept") == wanted
        self.protocol = self.answer.header("Sec-WebSocket-Protocol")
        self.target, self.shape = target, None  # what its text messages are held against

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send_frame(self, opcode, payload=b"", fin=True, masked=True, rsv=0):
        first = (0x80 if fin else 0) | (rsv << 4) | opcode
        n, mask = len(payload), os.urandom(4)
        size = struct.pack("!B", n) if n < 126 else \
            struct.pack("!BH", 126, n) if n < 65536 else struct.pack("!BQ", 127, n)
        size = bytes([size[0] | (0x80 if masked else 0)]) + size[1:]
        if masked:
            payload = mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
        self.connection.send(bytes([first]) + size + payload)

    def send_json(self, value):
        self.send_frame(TEXT, json.dumps(value).encode())

    def read_frame(self):
        c = self.connection
        first, second = c.read_exactly(2)
        assert not second & 0x80, "a server must not mask"
        n = second & 0x7F
        if n == 126:
            n = struct.unpack("!H", c.read_exactly(2))[0]
        elif n == 127:
            n = struct.unpack("!Q", c.read_exactly(8))[0]
        return bool(first & 0x80), first & 0x0F, c.read_exactly(n)

    def receive(self):
        """One whole message: (opcode, bytes). Pings are answered on the way."""
        parts, kind = [], None
        while True:
            fin, opcode, payload = self.read_frame()
            if opcode == PING:
                self.send_frame(PONG, payload)
                continue
            if opcode == PONG:
                continue
            if opcode == CLOSE:
                return CLOSE, payload
            kind = kind or opcode
            parts.append(payload)
            if fin:
                return kind, b"".join(parts)

    def receive_json(self):
        opcode, payload = self.receive()
        assert opcode == TEXT, (opcode, payload)
        value = json.loads(payload.decode("utf-8"))
        protocol.check(self.shape, value, self.target)
        return value

    def close_code(self):
        """The code the server closes with; None when it just hangs up."""
        try:
            while True:
                opcode, payload = self.receive()
                if opcode == CLOSE:
                    return struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
        except Closed:
            return None

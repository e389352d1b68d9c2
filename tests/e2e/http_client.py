"""HTTP by hand: what is sent is exactly what a test wrote, and answers are read strictly."""
import json
import socket


class Response:
    def __init__(self, status, reason, headers, body):
        self.status, self.reason, self.headers, self.body = status, reason, headers, body

    def header(self, name, default=None):
        found = [v for k, v in self.headers if k.lower() == name.lower()]
        assert len(found) <= 1, "header %s given %d times" % (name, len(found))
        return found[0] if found else default

    def json(self):
        kind = self.header("Content-Type", "")
        assert kind.startswith("application/json"), "%s: %r" % (kind, self.body[:200])
        return json.loads(self.body.decode("utf-8"))

    @property
    def text(self):
        return self.body.decode("utf-8")

    def __repr__(self):
        return "<%d %s %r>" % (self.status, self.reason, self.body[:200])


class TlsAddress(tuple):
    """(host, port) to be spoken to by TLS, with `context` set."""


class Closed(Exception):
    """The server closed the connection before an answer was whole."""


class Connection:
    """One connection, kept alive for as long as both sides want."""

    def __init__(self, address, timeout=20):
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(timeout)
            self.sock.connect(address)
        else:
            self.sock = socket.create_connection(address, timeout=timeout)
        if isinstance(address, TlsAddress):
            self.sock = address.context.wrap_socket(self.sock, server_hostname="localhost")
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.buffer[:200])
        self.buffer += data

    def read_until(self, mark):
        while mark not in self.buffer:
            self.more()
        front, _, self.buffer = self.buffer.partition(mark)
        return front

    def read_exactly(self, n):
        parts, have = [self.buffer], len(self.buffer)
        try:
            while have < n:  # parts, since a body may have 30 MiB
                self.buffer = b""
                self.more()
                parts.append(self.buffer)
                have += len(self.buffer)
        finally:
            self.buffer = whole = b"".join(parts)
        front, self.buffer = whole[:n], whole[n:]
        return front

    def read_chunked(self):
        body = []
        while True:
            size = int(self.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                assert self.read_until(b"\r\n") == b"", "trailers were not announced"
                return b"".join(body)
            body.append(self.read_exactly(size))
            assert self.read_exactly(2) == b"\r\n"

    def read_to_end(self):
        try:
            while True:
                self.more()
        except Closed:
            front, self.buffer = self.buffer, b""
            return front

    def response(self, method="GET"):
        head = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, *reason = head[0].split(" ", 2)
        assert version == "HTTP/1.1", head[0]
        headers = []
        for line in head[1:]:
            name, colon, value = line.partition(":")
            assert colon and name == name.strip() and "\n" not in line, line
            headers.append((name, value.strip()))
        r = Response(int(status), "".join(reason), headers, b"")
        if method == "HEAD" or r.status in (101, 204, 304) or r.status < 200:
            return r
        if r.header("Transfer-Encoding"):
            assert r.header("Transfer-Encoding") == "chunked" and not r.header("Content-Length")
            r.body = self.read_chunked()
        elif r.header("Content-Length") is not None:
            r.body = self.read_exactly(int(r.header("Content-Length")))
        else:
            r.body = self.read_to_end()
        return r

    def raw(self, data, method="GET"):
        self.send(data)
        return self.response(method)

    def is_closed(self):
        """True when the server has ended the connection (waits for it)."""
        try:
            self.more()
        except Closed:
            return True
        except TimeoutError:
            return False
        return False


def head(method, target, headers, body=b""):
    lines = ["%s %s HTTP/1.1" % (method, target)]
    lines += ["%s: %s" % (k, v) for k, v in headers]
    if body:
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body

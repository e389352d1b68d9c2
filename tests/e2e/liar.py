"""A daemon that lies: each path answers whatever bytes a test gives it."""
import socket
import threading


def answer(body, status="200 OK", headers=()):
    if isinstance(body, str):
        body = body.encode()
    lines = ["HTTP/1.1 " + status, "Content-Type: application/json",
             "Content-Length: %d" % len(body)] + list(headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*pieces):
    out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for piece in pieces:
        out += b"%x\r\n%s\r\n" % (len(piece), piece)
    return out + b"0\r\n\r\n"


class Liar:
    """say[path, or path with query] = bytes, or a function(connection) that sends itself; None: never answers."""

    def __init__(self):
        self.say, self.asked, self.n_connections = {}, [], 0
        self.close_after = set()
        self.held = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            self.held.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        unread = b""
        try:
            while True:
                while b"\r\n\r\n" not in unread:
                    more = connection.recv(65536)
                    if not more:
                        return
                    unread += more
                head, _, unread = unread.partition(b"\r\n\r\n")
                target = head.split(b" ")[1].decode()
                path = target.partition("?")[0]
                self.asked.append(target)
                path = target if target in self.say else path
                what = self.say.get(path, answer('{"error":"not found"}', "404 Not Found"))
                if callable(what):
                    what(connection)
                elif what is not None:
                    connection.sendall(what)
                if path in self.close_after:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
        except OSError:
            pass

    def close(self):
        if self.listener.fileno() < 0:
            return
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.held:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

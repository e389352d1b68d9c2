#!/usr/bin/python3
"""A small program in OpenCode's place, for the bench: `opencode serve --port N ...` that
answers what the assistant asks and sends $FAKE_RATE events a second, each with its time."""
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSION = {"id": "ses_bench", "title": "bench", "directory": "/src", "time": {"created": 0}}
RATE = float(os.environ.get("FAKE_RATE", "20"))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path == "/event":
            self.stream()
            return
        body = {"/session": [SESSION], "/session/ses_bench": SESSION, "/session/status": {},
                "/global/health": {"healthy": True, "version": "fake"}}.get(path, [])
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        number = 0
        try:
            while True:
                number += 1
                event = {"id": "evt_%d" % number, "type": "message.part.delta",
                         "properties": {"sessionID": "ses_bench", "messageID": "msg_1",
                                        "partID": "prt_1", "field": "text", "delta": "word ",
                                        "sent": time.monotonic()}}
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()
                time.sleep(1 / RATE)
        except OSError:
            pass


port = int(sys.argv[sys.argv.index("--port") + 1])
server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
threading.Event().wait()

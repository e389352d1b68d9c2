"""Stands for the LiteLLM proxy and the provider behind it: makes and revokes keys, answers
chats. What is said decides what happens:

    BASH:<command>   the tool is called, its output said again
    SLOW:<n>         n words, 100 ms apart
    FAIL:<status>    the provider answers with that status
    anything else    "Hello from the stub."
"""
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MASTER = "sk-master-canary-5f1d2c"


class ModelStub:
    def __init__(self):
        self.keys, self.revoked, self.requests = [], [], []
        self.anthropic_keys, self.aliases = [], {}
        self.generate_status = 200
        self.lock = threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    stub.answer(self, json.loads(body or b"{}"))
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def environment(self, model="gpt-6.1-sol"):
        """What a run's container has."""
        return {"SSE_BASE_URL": self.url + "/", "SSE_MODEL_NAME": model,
                "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "npm_config_registry": "http://127.0.0.1:9"}

    # --- answers ------------------------------------------------------------------------

    def answer(self, h, body):
        key = (h.headers.get("Authorization") or "").removeprefix("Bearer ")
        path = h.path.partition("?")[0]
        with self.lock:
            self.requests.append((path, key, body))
        if path.startswith("/key/"):
            self.admin(h, path, key, body)
        elif path.endswith("/chat/completions"):
            self.chat(h, key, body)
        elif path.endswith("/messages"):
            with self.lock:
                self.anthropic_keys.append(h.headers.get("x-api-key"))
            self.reply(h, 401, {"type": "error", "error": {"type": "authentication_error",
                                                           "message": "invalid x-api-key"}})
        else:
            self.reply(h, 404, {"error": "no such path"})

    def reply(self, h, status, value):
        data = json.dumps(value).encode()
        h.send_response(status)
        h.send_header("Content-Type", "application/json")
        h.send_header("Content-Length", str(len(data)))
        h.end_headers()
        h.wfile.write(data)

    def admin(self, h, path, key, body):
        if key != MASTER:
            self.reply(h, 401, {"error": "not the master key: " + key})
        elif path == "/key/generate" and self.generate_status != 200:
            self.reply(h, self.generate_status, {"error": "refused " + MASTER})
        elif path == "/key/generate":
            made = "sk-run-canary-%04d" % (len(self.keys) + 1)
            self.keys.append(made)
            self.aliases[body.get("key_alias")] = made
            self.reply(h, 200, {"key": made, "key_alias": body.get("key_alias")})
        elif path == "/key/delete":
            self.revoked += body.get("keys", [])
            self.revoked += [self.aliases.get(a) for a in body.get("key_aliases", [])]
            self.reply(h, 200, {"deleted_keys": body.get("keys", [])})
        else:
            self.reply(h, 404, {"error": "no such path"})

    def chat(self, h, key, body):
        last = body["messages"][-1]
        said = text_of([m for m in body["messages"] if m["role"] == "user"][-1])
        fail = re.search(r"FAIL:(\d{3})", said)
        if key not in self.keys or key in self.revoked:
            self.reply(h, 401, {"error": {"message": "invalid api key"}})
            return
        if fail and last["role"] == "user":
            self.reply(h, int(fail.group(1)), {"error": {"message": "the stub says " +
                                                         fail.group(1), "type": "stub"}})
            return
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.send_header("Connection", "close")
        h.end_headers()
        h.close_connection = True

        def send(delta, finish=None):
            chunk = {"id": "c", "object": "chat.completion.chunk", "model": body["model"],
                     "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            h.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            h.wfile.flush()
        tool = re.search(r"BASH:([^\n\"]*)", said)
        slow = re.search(r"SLOW:(\d+)", said)
        if tool and last["role"] == "user" and body.get("tools"):
            send({"role": "assistant", "tool_calls": [{
                "index": 0, "id": "call_%d" % len(self.requests), "type": "function",
                "function": {"name": "bash", "arguments": json.dumps(
                    {"command": tool.group(1).strip(), "description": "asked for"})}}]})
            send({}, "tool_calls")
        elif last["role"] == "tool":
            send({"content": "tool said: " + text_of(last)[:200]})
            send({}, "stop")
        else:
            words = ["w%d " % i for i in range(int(slow.group(1)))] if slow else \
                ["Hello ", "from ", "the ", "stub."]
            for word in words:
                send({"content": word})
                if slow:
                    time.sleep(0.1)
            send({}, "stop")
        h.wfile.write(b"data: [DONE]\n\n")


def text_of(message):
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(p.get("text", "") for p in content or [])

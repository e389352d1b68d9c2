"""The "container": plays a session into the run directory and answers the daemon's API."""
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import play, state


class Stopped(Exception):
    """SIGTERM came."""


class Session:
    """What the run is doing now; read by the daemon's threads, written by the main one."""

    def __init__(self, container):
        self.container = container
        self.plan = container.record["plan"]
        self.run_dir = self.plan["run_dir"]
        self.entries, self.diff, self.result = [], "", None
        self.source = container.path("root", "src")
        self.log = open(container.path("log"), "ab", buffering=0)
        self.agent_log = open(self.file("agent.log"), "ab", buffering=0)
        self.dialog = None
        if self.plan["config"]["agent"] != "dummy":
            self.dialog = open(self.file("archive", "dialog.jsonl"), "ab", buffering=0)

    def file(self, *names):
        return os.path.join(self.run_dir, *names)

    def write(self, name, text):
        with open(self.file(name), "w", encoding="utf-8") as f:
            f.write(text)

    def say(self, text):
        """A line of the container's output: kept by the engine, and on its console."""
        line = text.encode("utf-8", "surrogatepass") + b"\n"
        self.log.write(line)
        try:
            os.write(1, line)
        except OSError:
            pass

    def agent_says(self, text):
        self.agent_log.write(text.encode("utf-8", "surrogatepass") + b"\n")
        self.say(text)

    def add(self, entry):
        if not self.dialog:
            return
        entry = {"seq": len(self.entries), "ts": state.stamp(digits=3), **entry}
        self.entries.append(entry)
        self.dialog.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")

    def add_raw(self, entry):
        self.entries.append(entry)
        self.dialog.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")


def files_of(diff):
    """The daemon's /files: one row a file of the diff."""
    rows = []
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            rows.append({"path": line.rpartition(" b/")[2], "status": "modified",
                         "additions": 0, "deletions": 0})
        elif rows and line.startswith("new file mode"):
            rows[-1]["status"] = "added"
        elif rows and line.startswith("deleted file mode"):
            rows[-1]["status"] = "deleted"
        elif rows and line.startswith("+") and not line.startswith("+++ "):
            rows[-1]["additions"] += 1
        elif rows and line.startswith("-") and not line.startswith("--- "):
            rows[-1]["deletions"] += 1
    return rows


def project_of(session):
    task, folder = session.plan["task"], session.plan["folder"]
    described = task["task_description"]

    def contents(name):
        try:
            with open(os.path.join(folder or "", "sse", name), encoding="utf-8") as f:
                return f.read()
        except OSError:
            return name
    reports = described["crash_report"]
    return {"id": task["id"], "project": task["project"], "language": task["language"],
            "source": session.source,
            "task_description": {
                "issue": described["issue"], "bug_description": described["bug_description"],
                "crash_report": [contents(n) for n in reports] if reports else None},
            "poc": ["/ssebench/task/" + p for p in task["files"]["poc"]],
            "build_script": task["scripts"]["build"], "test_script": task["scripts"]["test"]}


class Daemon(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    session = None

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = body.encode() if isinstance(body, str) else json.dumps(
            body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        state.forget_knobs()
        faults = state.knob("daemon", {})
        fault = faults.get(path, faults.get("*"))
        if fault == "hang":
            time.sleep(3600)
        if fault == "close":
            self.close_connection = True
            return None
        if fault:
            return self.answer(*fault)
        return self.route(path, query)

    def route(self, path, query):
        s = self.session
        if path == "/agent/dialog":
            since = -1
            for part in query.split("&"):
                if part.startswith("since="):
                    since = int(part[6:] or -1)
            return self.answer(200, {"entries": [e for e in list(s.entries)
                                                 if e.get("seq", 0) > since]})
        table = {
            "/version": lambda: {"version": "1.1.0"},
            "/project": lambda: project_of(s),
            "/diff": lambda: {"diff": s.diff},
            "/files": lambda: {"files": files_of(s.diff)},
            "/result": lambda: {"available": True, **s.result} if s.result
            else {"available": False},
            "/final_diff": lambda: {"diff": s.diff if s.result else ""},
            "/capabilities": lambda: {
                "can_build": True, "can_run_poc": bool(s.plan["task"]["files"]["poc"]),
                "poc_count": len(s.plan["task"]["files"]["poc"]), "has_function_test": True,
                "has_intent_test": True},
        }
        if path in table:
            return self.answer(200, table[path]())
        if path == "/reference/patch":
            return self.answer(403, {"error": "admin socket only"})
        return self.answer(404, {"error": "not found"})

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.answer(403, {"error": "not allowed here"})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def serve(session):
    handler = type("Handler", (Daemon,), {"session": session})
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 30},
                     daemon=True).start()
    return server.server_address[1]


def on_term(*_):
    raise Stopped


def main(folder):
    container = state.Container(folder)
    stubborn = state.knob("ignore_term")
    signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else on_term)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    code = 0
    try:
        session = Session(container)
        port = serve(session)
        state.write_json(container.path("status.json"), {**state.own_mark(), "port": port})
        play.perform(session)
        while session.plan["keep"]:
            time.sleep(3600)
    except Stopped:
        code = 143
    except BaseException:
        code = 1
        raise
    finally:
        try:
            state.write_json(container.path("exit.json"), {"exit_code": code})
        except OSError:
            pass  # removed while it ended
        sys.stdout.flush()
        os._exit(code)

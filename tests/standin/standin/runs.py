"""`ssebench runs ...`: what the backend knows of the containers."""
import json
import os
import sys
import time

from . import state
from .main import Failure
from .options import Usage, integer, one_run_id, parse, run_id_valid

SUMMARY_MAX = 8 * 1024 * 1024  # bytes, contract 2.10


def backend(options):
    name = options.get("backend") or os.environ.get("SSEBENCH_BACKEND") or "docker"
    if name not in ("docker", "kubernetes", state.knob("backend", "docker")):
        raise Failure(1, "ERROR:ssebench:Unknown backend: %s" % name)
    return state.knob("backend", name)


def print_json(value, indent=None):
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    sys.stdout.flush()
    write_all(1, text.encode("utf-8", "surrogateescape") + b"\n")


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def described():
    found = []
    for c in state.containers():
        try:
            found.append(c.describe())
        except KeyError:
            continue
    found += state.knob("extra", [])
    return sorted(found, key=lambda r: r.get("created_at") or "", reverse=True)


def find(run_id):
    if run_id in state.knob("ambiguous", []):
        raise Failure(4, "Several runs have the ID %s" % run_id)
    found = [c for c in state.containers() if c.run_id == run_id]
    if not found:
        raise Failure(3, "No run has the ID %s" % run_id)
    if len(found) > 1:
        raise Failure(4, "Several runs have the ID %s" % run_id)
    return found[0]


def running(run_id):
    c = find(run_id)
    if c.state()[0] != "running":
        raise Failure(1, "The run %s is not running" % run_id)
    return c


def verb_list(argv):
    options, words, _ = parse(argv, ("backend",), ("json",))
    if words:
        raise Usage("unrecognized arguments: %s" % " ".join(words))
    name = backend(options)
    runs = described()
    if options.get("json"):
        print_json({"backend": name, "supports_exec": state.knob("supports_exec", True),
                    "runs": runs})
        return 0
    rows = [("RUN ID", "STATE", "TASK", "MODEL", "AGENT")]
    rows += [tuple(str(r.get(k) or "-") for k in ("run_id", "state", "task", "model", "agent"))
             for r in runs]
    widths = [max(len(r[i]) for r in rows) for i in range(5)]
    for row in rows:
        print("  ".join(t.ljust(w) for t, w in zip(row, widths)).rstrip())
    return 0


def verb_inspect(argv):
    options, words, _ = parse(argv, ("backend",), ("json",))
    run_id = one_run_id(words)
    backend(options)
    shown = find(run_id).describe()
    if options.get("json"):
        print_json(shown)
        return 0
    for key, value in shown.items():
        if key != "labels":
            print("%s: %s" % (key, "" if value is None else value))
    return 0


def verb_logs(argv):
    options, words, _ = parse(argv, ("backend",), ("follow",))
    run_id = one_run_id(words)
    backend(options)
    c = find(run_id)
    with open(c.path("log"), "rb") as log:
        while True:
            over = not options.get("follow") or c.state()[0] == "exited"
            line = log.readline()
            while line:
                write_all(1, line)
                line = log.readline()
            if over or not os.path.exists(c.dir):
                return 0
            time.sleep(0.05)


def verb_stop(argv):
    options, words, _ = parse(argv, ("backend", "grace"))
    run_id = one_run_id(words)
    grace = integer(options, "grace", 20)
    backend(options)
    end_container(find(run_id), grace)
    return 0


def end_container(c, grace):
    """SIGTERM to the entrypoint, SIGKILL to everything of it after `grace` seconds."""
    import signal
    status = c.status()
    if state.alive(status):
        kill(status["pid"], signal.SIGTERM)
        until = time.monotonic() + grace
        while state.alive(status) and time.monotonic() < until:
            time.sleep(0.02)
    if state.alive(status):
        try:
            os.killpg(status["pid"], signal.SIGKILL)
        except ProcessLookupError:
            pass
        while state.alive(status):
            time.sleep(0.01)
    for mark in exec_marks(c):
        if state.alive(mark):
            kill(mark["pid"], signal.SIGKILL)


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def exec_marks(c):
    try:
        names = os.listdir(c.path("execs"))
    except FileNotFoundError:
        return []
    return [m for m in (state.read_json(c.path("execs", n)) for n in names) if m]


def verb_remove(argv):
    import shutil
    options, words, _ = parse(argv, ("backend",))
    run_id = one_run_id(words)
    backend(options)
    c = find(run_id)
    if state.knob("sticky"):
        raise Failure(1, "The run %s is still there after cleaning up" % run_id)
    try:
        os.unlink(c.path("record.json"))  # from here on nobody lists it
    except FileNotFoundError:
        pass
    end_container(c, 0)
    shutil.rmtree(c.dir, ignore_errors=True)
    return 0


def verb_endpoint(argv):
    options, words, _ = parse(argv, ("backend",), ("json",))
    run_id = one_run_id(words, more=1)
    if not words[1].isdigit() or not 1 <= int(words[1]) <= 65535:
        raise Usage("argument PORT: invalid port: %r" % words[1])
    backend(options)
    c = running(run_id)
    port = int(words[1])
    if port == 4263:
        port = c.status()["port"]
    else:
        port = (state.read_json(c.path("ports.json")) or {}).get(str(port), port)
    url = "http://127.0.0.1:%d" % port
    if options.get("json"):
        print_json({"url": url})
    else:
        print(url)
    return 0


def verb_exec(argv):
    options, words, command = parse(argv, ("backend", "user", "workdir"), ("tty", "stdin"),
                                    ("env",))
    run_id = one_run_id(words[:1])
    command = words[1:] + (command or [])  # `--` is not a must
    if not command:
        raise Usage("the following arguments are required: COMMAND")
    name = backend(options)
    if not state.knob("supports_exec", True):
        raise Failure(1, "The %s backend cannot run commands in a run" % name)
    if name == "kubernetes" and options["env"]:
        raise Failure(1, "The kubernetes backend cannot pass environment variables")
    c = running(run_id)
    exec_in(c, command, options)


def exec_in(c, command, options):
    """Become the command, in the container's folder and with its environment."""
    record = c.record
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": c.path("home"), "LANG": "C.UTF-8",
           "PS1": r"\u@run:\w\$ "}
    if options.get("tty"):
        env["TERM"] = "xterm"  # as Docker's engine; --env comes after it
    if os.environ.get("PATH"):
        env["PATH"] = os.environ["PATH"]
    env.update(record.get("environment", {}))
    for wanted in options["env"]:
        if wanted in os.environ:
            env[wanted] = os.environ[wanted]
    if command[0] == "opencode":
        command = map_port(c, command)
    workdir = options.get("workdir") or c.path("root", "src")
    try:
        os.chdir(workdir)
    except OSError:
        sys.stderr.write("OCI runtime exec failed: chdir to cwd (%r): no such file\n" % workdir)
        sys.exit(126)
    os.makedirs(c.path("execs"), exist_ok=True)
    state.write_json(c.path("execs", str(os.getpid())), state.own_mark())
    try:
        os.execvpe(command[0], command, env)
    except OSError as wrong:
        sys.stderr.write("OCI runtime exec failed: %s: %s\n" % (command[0], wrong.strerror))
        sys.exit(126)  # as `docker exec`


def map_port(c, command):
    """All "containers" share this host, so a server in one gets a free port of its own."""
    import socket
    command = list(command)
    for i, word in enumerate(command[:-1]):
        if word == "--port":
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                free = s.getsockname()[1]
            ports = state.read_json(c.path("ports.json")) or {}
            ports[command[i + 1]] = free
            state.write_json(c.path("ports.json"), ports)
            command[i + 1] = str(free)
        elif word == "--hostname":
            command[i + 1] = "127.0.0.1"
    return command


def verb_results(argv):
    options, words, _ = parse(argv, ("dir",), ("json",))
    if words:
        raise Usage("unrecognized arguments: %s" % " ".join(words))
    runs = sorted(walk_results(options.get("dir") or "results"),
                  key=lambda r: (r["started_at"] or "", r["run_id"]), reverse=True)
    if options.get("json"):
        print_json({"runs": runs})
        return 0
    for r in runs:
        print("  ".join(str(r[k] or "-") for k in ("run_id", "status", "task", "model", "agent")))
    return 0


def walk_results(top):
    for folder, below, files in os.walk(top, followlinks=False):
        if "summary.json" in files:
            below[:] = []
            found = read_summary(folder)
            if found:
                yield found


def read_summary(folder):
    path = os.path.join(folder, "summary.json")
    try:
        if os.stat(path).st_size > SUMMARY_MAX:
            return None
    except OSError:
        return None
    summary = state.read_json(path)
    if not isinstance(summary, dict):
        return None

    def part(name):
        value = summary.get(name)
        return value if isinstance(value, dict) else {}

    def text(value):
        return value if isinstance(value, str) else None

    run_id = text(summary.get("run_id")) or os.path.basename(os.path.realpath(folder))
    task, config = part("task"), part("config")
    if not run_id_valid(run_id) or not text(task.get("id")):
        return None
    return {"run_id": run_id, "task": task["id"], "model": text(config.get("model")),
            "agent": text(config.get("agent")), "mode": text(config.get("mode")),
            "reference_run": config.get("reference_run") is True,
            "status": text(part("patch_result").get("status")),
            "started_at": text(summary.get("started_at")), "dir": os.path.realpath(folder)}


def reset():
    import shutil
    for c in state.containers():
        end_container(c, 0)
        shutil.rmtree(c.dir, ignore_errors=True)
    return 0

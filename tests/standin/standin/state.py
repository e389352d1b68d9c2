"""The state directory: call log, knobs, and one folder per container."""
import json
import os
import time

DIR = os.path.abspath(os.environ.get("SSEBENCH_STANDIN_STATE") or ".standin")
RUNS = os.path.join(DIR, "runs")
_knobs = None


def record_call(argv):
    os.makedirs(RUNS, exist_ok=True)
    shown = {k: os.environ.get(k) for k in ("NO_COLOR", "FORCE_COLOR")}
    line = json.dumps({"argv": argv, "cwd": os.getcwd(), "pid": os.getpid(),
                       "time": time.time(), "env": sorted(os.environ), "values": shown})
    fd = os.open(os.path.join(DIR, "calls.jsonl"),
                 os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def knob(name, default=None):
    global _knobs
    if _knobs is None:
        _knobs = json.loads(os.environ.get("SSEBENCH_STANDIN_KNOBS") or "{}")
        _knobs.update(read_json(os.path.join(DIR, "knobs.json")) or {})
    return _knobs.get(name, default)


def forget_knobs():
    """Read them anew; for a process that lives long."""
    global _knobs
    _knobs = None


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def write_json(path, value):
    """Atomic replace, as the real tools do."""
    hidden = os.path.join(os.path.dirname(path),
                          ".%s.%d.tmp" % (os.path.basename(path), os.getpid()))
    with open(hidden, "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False)
    os.replace(hidden, path)


def process_start(pid):
    """Start time in ticks: with the pid it names a process for ever. None: gone or a zombie."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def alive(mark):
    return bool(mark) and process_start(mark["pid"]) == mark["start"]


def own_mark():
    return {"pid": os.getpid(), "start": process_start(os.getpid())}


def stamp(nanoseconds=None, digits=9):
    """UTC, RFC 3339."""
    ns = time.time_ns() if nanoseconds is None else nanoseconds
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9))
    return "%s.%sZ" % (text, ("%09d" % (ns % 10**9))[:digits])


class Container:
    """One folder below runs/: what Docker would know of a container."""

    def __init__(self, folder):
        self.dir = folder
        self.record = read_json(self.path("record.json")) or {}

    def path(self, *names):
        return os.path.join(self.dir, *names)

    @property
    def run_id(self):
        return self.record.get("run_id")

    def status(self):
        return read_json(self.path("status.json"))

    def state(self):
        """(state, exit code)"""
        ended = read_json(self.path("exit.json"))
        if ended is not None:
            return "exited", ended["exit_code"]
        status = self.status()
        if status is None:
            return "created", None
        return ("running", None) if alive(status) else ("exited", 137)

    def describe(self):
        state, code = self.state()
        r = self.record
        labels = r.get("labels", {})
        model = labels.get("ssebench.model")
        return {
            "run_id": r["run_id"], "name": r["name"], "state": state, "exit_code": code,
            "image": r["image"], "created_at": r["created_at"],
            "task": labels.get("ssebench.task-id"), "model": model,
            "agent": labels.get("ssebench.agent"),
            "reference_run": labels.get("ssebench.reference-run") == "true",
            "results_dir": labels.get("ssebench.results"), "labels": labels,
        }


def containers():
    found = []
    try:
        names = sorted(os.listdir(RUNS))
    except FileNotFoundError:
        return found
    for name in names:
        c = Container(os.path.join(RUNS, name))
        if c.record.get("run_id"):
            found.append(c)
    return found


def new_container(record):
    """A folder of its own; the record comes last, so nobody sees half a container."""
    folder = os.path.join(RUNS, "%d-%d" % (time.time_ns(), os.getpid()))
    os.makedirs(os.path.join(folder, "root", "src"))
    os.makedirs(os.path.join(folder, "home"))
    open(os.path.join(folder, "log"), "wb").close()
    write_json(os.path.join(folder, "record.json"), record)
    return Container(folder)

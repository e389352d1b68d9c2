"""`ssebench run`: checks, a run directory, a container, and the summary at the end."""
import os
import signal
import sys
import time

from . import checkout, state
from .options import Usage, check_run_id, integer, parse

VALUED = ("model", "agent", "task", "mode", "run-id", "local", "catalog", "timeout",
          "difficulty", "egress", "backend", "tool-layer")
FLAGS = ("keep-container", "build", "prebuilt", "require-pass")
GRACE = 20  # seconds a container gets after the first signal


class Refused(Exception):
    """One log line on stderr, status 1."""


def log(text, level="INFO"):
    sys.stderr.write("%s:ssebench.runner:%s\n" % (level, text))
    sys.stderr.flush()


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(argv):
    options, words, _ = parse(argv, VALUED, FLAGS, ("plugin",))
    if words:
        raise Usage("unrecognized arguments: %s" % " ".join(words))
    for name in ("agent", "task"):
        if not options.get(name):
            raise Usage("the following arguments are required: --%s" % name)
    choice(options, "mode", ("sandbox", "sidecar"))
    choice(options, "egress", ("restricted", "open"))
    if options.get("run-id") is not None:
        check_run_id(options["run-id"])
    options["timeout"] = integer(options, "timeout", 3600)
    options["difficulty"] = integer(options, "difficulty", 2, 0, 4)
    try:
        plan = check(options)
        prepare(plan)
        return carry_out(plan, options)
    except Refused as why:
        log(str(why), "ERROR")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted\n")
        return 130


def choice(options, name, allowed):
    if options.get(name) is not None and options[name] not in allowed:
        raise Usage("argument --%s: invalid choice: %r (choose from %s)"
                    % (name, options[name], ", ".join(repr(a) for a in allowed)))


def check(o):
    """All refusals, before anything is started. The plan of the run."""
    reference = o["agent"] == "reference"
    mode = o.get("mode") or "sandbox"
    prebuilt = o.get("prebuilt") or os.environ.get("SSEBENCH_PREBUILT") == "1"
    if not reference and not o.get("model"):
        raise Refused("--model is required for the agent %s" % o["agent"])
    if mode == "sidecar":
        log("sidecar mode is experimental", "WARNING")
        if o["plugin"] or o.get("tool-layer"):
            raise Refused("--plugin and --tool-layer apply to sandbox mode only")
    egress = o.get("egress") or os.environ.get("SSEBENCH_EGRESS") or "restricted"
    if egress not in ("restricted", "open"):
        raise Refused("SSEBENCH_EGRESS must be restricted or open")
    if prebuilt and (o["plugin"] or o.get("tool-layer") or o.get("build")):
        raise Refused("--prebuilt excludes --tool-layer, --plugin and --build")
    backend = o.get("backend") or os.environ.get("SSEBENCH_BACKEND") or "docker"
    if backend not in ("docker", "kubernetes"):
        raise Refused("Unknown backend: %s" % backend)
    known = checkout.plugins()
    for name in o["plugin"]:
        if name not in known:
            raise Refused("Unknown plugin: %s" % name)
    plugins = o["plugin"] or [n for n, enabled in known.items() if enabled]
    task, folder = find_task(o)
    model = check_model(o, reference)
    run_id = o.get("run-id") or "%s-%s" % (time.strftime("%Y%m%d-%H%M%S", time.gmtime()),
                                           os.urandom(3).hex())
    run_dir = os.path.abspath(os.path.join("results", task["id"], model, o["agent"], run_id))
    if os.path.lexists(run_dir):
        raise Refused("The run directory %s exists" % run_dir)
    config = {"agent": o["agent"], "model": model, "mode": mode, "timeout": o["timeout"],
              "difficulty": o["difficulty"],
              "tool_layer": None if mode == "sidecar" else o.get("tool-layer") or "sandbox",
              "egress": egress, "reference_run": reference, "plugins": plugins}
    return {"task": task, "folder": folder, "config": config, "run_id": run_id,
            "run_dir": run_dir, "keep": bool(o.get("keep-container")),
            "patch": checkout.reference_patch(task, folder)}


def find_task(o):
    if o.get("local"):
        task = checkout.local_task(o["local"], o["task"])
        if task is None:
            raise Refused("Task not found: %s in %s" % (o["task"], o["local"]))
        return task, checkout.task_folder(o["task"], o["local"])
    location = (o.get("catalog") or os.environ.get("SSEBENCH_CATALOG")
                or "datasets/pilot/manifest.json")
    try:
        task = checkout.catalog_task(location, o["task"])
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise Refused("Cannot read the catalog %s: %s" % (location, wrong)) from None
    if task is None:
        raise Refused("Task not found: %s in %s" % (o["task"], location))
    return task, checkout.task_folder(o["task"])


def check_model(o, reference):
    if o["agent"] not in checkout.agents():
        raise Refused("Unknown agent: %s" % o["agent"])
    if reference:
        if o.get("model") not in (None, "none"):
            log("--model is ignored for the agent reference", "WARNING")
        return "none"
    models = checkout.models()
    if o["model"] not in models:
        raise Refused("Unknown model: %s" % o["model"])
    have = checkout.dotenv()
    for key in models[o["model"]]:
        if o["agent"] != "dummy" and not have.get(key):
            raise Refused("%s is not set in .env" % key)
    return o["model"]


def prepare(plan):
    """The proxy and the image: minutes in the real thing, its output on both streams."""
    seconds = state.knob("build_seconds", 0.2)
    log("Starting the LiteLLM proxy")
    steps = ["FROM ssebench/runtime-%s" % plan["task"].get("language"),
             "COPY sse /ssebench/task", "RUN /ssebench/build.sh", "exporting to image"]
    for number, step in enumerate(steps, 1):
        time.sleep(seconds / len(steps))
        say("#%d [%d/%d] %s" % (number, number, len(steps), step))
    log("Image ready for %s" % plan["task"]["id"])


def make_run_dir(plan):
    os.makedirs(os.path.join(plan["run_dir"], "archive"))
    open(os.path.join(plan["run_dir"], "result.json"), "wb").close()
    parent, name = os.path.split(plan["run_dir"])
    hidden = os.path.join(parent, ".latest.%d" % os.getpid())
    os.symlink(name, hidden)
    os.replace(hidden, os.path.join(parent, "latest"))


def labels(plan):
    config = plan["config"]
    found = {"ssebench.run-id": plan["run_id"], "ssebench.webui": "true",
             "ssebench.task-id": plan["task"]["id"], "ssebench.model": config["model"],
             "ssebench.agent": config["agent"], "ssebench.results": plan["run_dir"]}
    if config["reference_run"]:
        found["ssebench.reference-run"] = "true"
    if config["mode"] == "sidecar":
        found["ssebench.run"] = os.urandom(6).hex()
    return found


def new_container(plan):
    config, task = plan["config"], plan["task"]
    environment = {"SSE_ARCHIVE": "/tmp/sse-archive", "TIMEOUT": str(config["timeout"]),
                   "SSE_DIFFICULTY": str(config["difficulty"]),
                   "SSE_KEEP_ALIVE": "1" if plan["keep"] else "0",
                   "SSE_PLUGINS": ",".join(config["plugins"])}
    if config["mode"] == "sandbox" and not config["reference_run"]:
        environment.update(SSE_BASE_URL="http://127.0.0.1:4000", SSE_MODEL_NAME=config["model"],
                           SSE_API_KEY="sk-standin")
    environment.update(state.knob("environment", {}))
    return state.new_container({
        "run_id": plan["run_id"], "created_at": state.stamp(), "labels": labels(plan),
        "name": "ssebench-%s-%s" % (task["id"].lower(), plan["run_id"][:8]),
        "image": "ssebench/case-%s:pilot-v1" % task["id"].lower(),
        "environment": environment, "plan": plan})


class Phase:
    """The run phase: signals go to the container first (contract 1.4)."""

    def __init__(self):
        self.pid, self.signalled, self.dead = None, False, False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)
        signal.signal(signal.SIGALRM, lambda *_: self.send(signal.SIGKILL))

    def send(self, number):
        if self.pid and not self.dead:
            os.kill(self.pid, number)

    def on_signal(self, number, _frame):
        if self.signalled and number == signal.SIGINT:
            self.send(signal.SIGKILL)
            os._exit(130)
        if self.signalled:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.signalled = True
        self.send(signal.SIGTERM)
        signal.alarm(GRACE)

    def over(self):
        self.dead = True
        signal.alarm(0)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)


def start_container(container):
    """The container's process, in its own session. (pid, pipe with its output)"""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = ("import sys; sys.path.insert(0, %r); from standin import container; "
            "container.main(%r)" % (here, container.dir))
    out, into = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8",
           "SSEBENCH_STANDIN_STATE": state.DIR,
           "SSEBENCH_STANDIN_KNOBS": os.environ.get("SSEBENCH_STANDIN_KNOBS", "")}
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-SEs", "-c", code, container.run_id], env, setsid=True,
        file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, into, 1),
                      (os.POSIX_SPAWN_DUP2, into, 2)])
    os.close(into)
    os.close(null)
    return pid, out


def carry_out(plan, options):
    phase = Phase()
    make_run_dir(plan)
    started = state.stamp(digits=6)
    code = None
    if not phase.signalled:
        container = new_container(plan)
        phase.pid, out = start_container(container)
        if phase.signalled:
            phase.send(signal.SIGTERM)
        code = follow(phase, out)
        if not plan["keep"]:
            discard(container)
    phase.over()
    summary = collect(plan, started, code)
    grade = summary["patch_result"]["status"]
    reason = summary["patch_result"]["error_msg"]
    say("Result: build %(build_success)s, poc %(pov_passed)s/%(pov_total)s, "
        "function test %(func_test_success)s, intent test %(intent_test_success)s"
        % summary["patch_result"])
    say("Grade: %s" % grade + (" (%s)" % reason if grade == "error" else ""))
    say("Run directory: %s" % plan["run_dir"])
    return 1 if options.get("require-pass") and grade != "passed" else 0


def follow(phase, out):
    """Pass the container's output on until it ends. Its exit code."""
    from .runs import write_all
    reader_gone = False
    while True:
        data = os.read(out, 65536)
        if not data:
            break
        if not reader_gone:
            try:
                write_all(1, data)
            except OSError:
                reader_gone = True
    _, status = os.waitpid(phase.pid, 0)
    phase.dead = True
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def discard(container):
    import shutil
    shutil.rmtree(container.dir, ignore_errors=True)


def collect(plan, started, code):
    run_dir = plan["run_dir"]
    result = state.read_json(os.path.join(run_dir, "result.json"))
    if code not in (0, None) and not (plan["keep"] and result):
        log("The container ended with status %d" % code, "ERROR")
    if result is None:
        result = {"patch_result": {
            "status": "error", "build_success": None, "func_test_success": None,
            "intent_test_success": None, "pov_passed": None, "pov_total": None,
            "error_msg": "No result: evaluator did not produce output", "error_log": None},
            "runtime_result": {"agent_duration": 0, "agent_timeout": False,
                               "evaluator_timeout": False, "agent_exit_code": None}}
    if plan["patch"] is not None:
        with open(os.path.join(run_dir, "reference.patch"), "w", encoding="utf-8") as f:
            f.write(plan["patch"])
    result["config"] = plan["config"]
    state.write_json(os.path.join(run_dir, "result.json"), result)
    tokens = state.read_json(os.path.join(run_dir, "plugins", "results.json"))
    summary = {"task": plan["task"], "config": plan["config"],
               "patch_result": result["patch_result"],
               "runtime_result": result["runtime_result"],
               "spend": 0 if plan["config"]["reference_run"] else 0.4172,
               "run_id": plan["run_id"], "started_at": started,
               "plugin_results": tokens if isinstance(tokens, list) else []}
    state.write_json(os.path.join(run_dir, "summary.json"), summary)
    return summary

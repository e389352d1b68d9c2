"""A session as an agent would have it: what is said, done, changed, and graded."""
import json
import os
import time

from . import state

TOOLS = {
    "c": ("make -j2", "./tests/run.sh", "src/parse.c"),
    "go": ("go build ./...", "go test ./...", "internal/buffer.go"),
    "rust": ("cargo build", "cargo test", "src/lib.rs"),
}


def default_diff(path):
    return ("diff --git a/{0} b/{0}\nindex 3f1c2aa..9b7d0e4 100644\n--- a/{0}\n+++ b/{0}\n"
            "@@ -41,6 +41,9 @@\n     size_t used = b->used;\n \n"
            "+    if (len > b->size - used)\n+        return -ENOBUFS;\n+\n"
            "     memcpy(b->data + used, from, len);\n     b->used = used + len;\n"
            "     return 0;\n").format(path)


def first_hunk(diff):
    """What the tree looks like half way: the first hunk only."""
    kept, hunks = [], 0
    for number, line in enumerate(diff.split("\n")):
        if line.startswith("@@"):
            hunks += 1
        if hunks > 1 or (number and line.startswith("diff --git ")):
            break
        kept.append(line)
    return "\n".join(kept).rstrip("\n") + "\n" if kept else ""


def changed_paths(diff):
    return [line.rpartition(" b/")[2] for line in diff.split("\n")
            if line.startswith("diff --git ")]


def script(session):
    """The steps: ("say"|"think"|"tool"|"diff", ...), about evenly spaced in time."""
    plan = session.plan
    task, described = plan["task"], plan["task"]["task_description"]
    build, test, guess = TOOLS.get(task["language"], TOOLS["c"])
    final = plan["patch"] or default_diff(guess)
    path = (changed_paths(final) or [guess])[0]
    issue = described["issue"] or described["bug_description"] or "No description was given."
    return final, [
        ("think", "The report in short: %s\n\nI want to see it fail before I touch anything."
         % issue.split("\n")[0]),
        ("say", "I'll look at the layout first, then reproduce the fault.", (2140, 61)),
        ("tool", "Bash", {"command": "git log --oneline | head -3 && ls"},
         "8c41f0e Release notes\n1d90b7a Tidy the tests\n77ae3c2 First import\n"
         "LICENSE  README.md  %s/  tests/" % path.partition("/")[0]),
        ("tool", "Read", {"file_path": path}, numbered(final)),
        ("tool", "Bash", {"command": test}, None,
         "1 test failed: regression/%s\nexit status 1" % task["id"]),
        ("think", "It fails as reported. The check that is missing belongs where the length "
         "is known, not in each caller."),
        ("say", "Reproduced. The fault is in `%s`:\n\n1. the length comes from the input,\n"
         "2. nothing compares it with what is left,\n3. the copy runs past the end.\n\n"
         "I'll add the check at the one place that knows both numbers." % path, (5310, 214)),
        ("tool", "Edit", {"file_path": path, "old_string": "…", "new_string": "…"},
         "The file %s has been updated." % path),
        ("diff", first_hunk(final)),
        ("tool", "Bash", {"command": build}, "ok"),
        ("tool", "Bash", {"command": test}, None,
         "regression/%s: ok\nedge/empty: FAILED (expected an error, got success)" %
         task["id"]),
        ("think", "Closer. An empty input takes the other branch. Same rule, second place."),
        ("tool", "Edit", {"file_path": path, "old_string": "…", "new_string": "…"},
         "The file %s has been updated." % path),
        ("diff", final),
        ("tool", "Bash", {"command": build + " && " + test},
         "regression/%s: ok\nedge/empty: ok\nall 42 tests passed ✓" % task["id"]),
        ("tool", "Bash", {"command": "git diff --stat"},
         "".join(" %s | %d ++\n" % (p, 4) for p in changed_paths(final))),
        ("say", "**Done.** `%s` now refuses a length that does not fit, and the empty input is "
         "covered too. All 42 tests pass; no interface changed." % path, (8120, 187)),
    ]


def numbered(diff):
    lines = [x[1:] for x in diff.split("\n") if x[:1] in " -" and not x.startswith("---")]
    return "\n".join("%6d\t%s" % (n + 30, x) for n, x in enumerate(lines[:40]))


def perform(session):
    """The whole session. Raises what ends it early."""
    plan, config = session.plan, session.plan["config"]
    seconds = float(state.knob("agent_seconds", 2))
    limit = config["timeout"]
    session.say("[entrypoint] task %s, agent %s, model %s"
                % (plan["task"]["id"], config["agent"], config["model"]))
    session.say("[daemon] listening on port 4263")
    began = time.monotonic()
    final, steps = script(session)
    if config["agent"] == "dummy":
        steps, final = [], ""
    elif config["agent"] == "reference":
        steps = [("tool", "Bash", {"command": "git apply reference.patch"}, ""),
                 ("diff", final)]
    intro(session)
    late = play_steps(session, steps, seconds, began + limit)
    took = time.monotonic() - began
    finish_dialog(session, took, late)
    grade(session, took, late, seconds)


def intro(session):
    plan, config = session.plan, session.plan["config"]
    described = plan["task"]["task_description"]
    session.add({"type": "init", "data": {
        "task": plan["task"]["id"], "cwd": session.source, "model": config["model"],
        "agent": config["agent"]}})
    session.add({"type": "prompt", "content": "Fix the following bug in the project %s.\n\n%s"
                 % (plan["task"]["project"], described["issue"] or
                    described["bug_description"] or "")})


def play_steps(session, steps, seconds, deadline):
    """True when the time limit came first."""
    for number, step in enumerate(steps):
        pause = seconds / max(1, len(steps))
        if time.monotonic() + pause > deadline:
            time.sleep(max(0, deadline - time.monotonic()))
            return True
        play_step(session, number, step, pause)
    for entry in state.knob("dialog_extra", []):
        session.add_raw(entry)
    return False


def play_step(session, number, step, pause):
    kind = step[0]
    if kind == "diff":
        session.diff = step[1]
        return
    if kind != "tool":
        time.sleep(pause)
        entry = {"type": "message", "role": "assistant"} if kind == "say" else \
            {"type": "thinking"}
        entry["content"] = step[1]
        if kind == "say":
            entry["tokens"] = {"in": step[2][0], "out": step[2][1]}
        session.add(entry)
        session.agent_says("[agent] " + step[1].split("\n")[0])
        return
    tool_id = "call_%03d" % number
    time.sleep(pause * 0.3)
    session.add({"type": "tool", "tool_id": tool_id, "name": step[1], "status": "running",
                 "args": step[2]})
    session.agent_says("[agent] %s %s" % (step[1], json.dumps(step[2], ensure_ascii=False)))
    time.sleep(pause * 0.7)
    end = {"type": "tool", "tool_id": tool_id, "name": step[1],
           "status": "success" if step[3] is not None else "error"}
    end.update({"result": step[3]} if step[3] is not None else {"error": step[4]})
    session.add(end)


def finish_dialog(session, took, late):
    session.add({"type": "complete", "status": "timeout" if late else "success", "turns": 9,
                 "duration_ms": int(took * 1000), "total_tokens": {"in": 15570, "out": 462}})


def grade(session, took, late, seconds):
    session.say("[daemon] agent phase over, grading")
    session.write("final.patch", session.diff)
    session.write("commits.log", "")
    time.sleep(seconds / 10)
    verdict = state.knob("grade", "passed")
    config = session.plan["config"]
    if config["agent"] == "dummy" and verdict == "passed":
        verdict = "failed"
    session.write("evaluator.log", "build: ok\npoc: %s\nfunction test: ok\nintent test: %s\n"
                  % ("ok" if verdict == "passed" else "failed",
                     "ok" if verdict == "passed" else "not run"))
    total = max(1, len(session.plan["task"]["files"]["poc"]))
    patch = {"passed": result("passed", True, True, True, total, total, None),
             "failed": result("failed", True, True, None, 0, total, "PoC failed: poc-1"),
             "error": result("error", None, None, None, None, None, "No check ran")}[verdict]
    if late:
        patch = result("error", None, None, None, None, None,
                       "Timeout (%ds)" % config["timeout"])
    done = {"patch_result": patch, "runtime_result": {
        "agent_duration": int(took), "agent_timeout": late, "evaluator_timeout": False,
        "agent_exit_code": 124 if late else 0}}
    run_plugins(session)
    state.write_json(session.file("result.json"), done)
    session.result = done
    session.say("[evaluator] %s" % patch["status"])


def result(status, build, func, intent, passed, total, message):
    return {"status": status, "build_success": build, "func_test_success": func,
            "intent_test_success": intent, "pov_passed": passed, "pov_total": total,
            "error_msg": message, "error_log": None}


def run_plugins(session):
    names = session.plan["config"]["plugins"]
    if not names:
        return
    os.makedirs(session.file("plugins"), exist_ok=True)
    for name in names:
        session.write("plugins/%s.log" % name, "%s: nothing to do\n" % name)
    state.write_json(session.file("plugins", "results.json"), [
        {"name": n, "hook": "after-grading", "status": "ok", "exit_code": 0,
         "duration_seconds": 0.1, "reason": None, "error": None} for n in names])

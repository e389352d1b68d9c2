"""The finished runs of the demonstration: who worked on what, what was said, how it ended.

All of it is invented: projects, bugs, patches and sessions. A story's dialog is a function
that returns entries without `seq` and `ts`.
"""


def passed(pov):
    return {"status": "passed", "build_success": True, "func_test_success": True,
            "intent_test_success": True, "pov_passed": pov, "pov_total": pov,
            "error_msg": None, "error_log": None}


def failed(message, log=None, **checks):
    base = {"status": "failed", "build_success": True, "func_test_success": None,
            "intent_test_success": None, "pov_passed": 0, "pov_total": 1,
            "error_msg": message, "error_log": log}
    return {**base, **checks}


def runtime(seconds, code=0):
    return {"agent_duration": seconds, "agent_timeout": code == 124,
            "evaluator_timeout": False, "agent_exit_code": code}


# --- entries -------------------------------------------------------------------------

def opening(story, task):
    return [{"type": "init", "data": {"task": task["id"], "cwd": task["source"],
                                      "model": story["model"], "agent": story["agent"]}},
            {"type": "prompt", "content": "Fix the following bug in the project %s.\n\n%s"
             % (task["project"], task["task_description"]["issue"])}]


def think(text):
    return [{"type": "thinking", "content": text}]


def say(text, tokens_in=0, tokens_out=0):
    entry = {"type": "message", "role": "assistant", "content": text}
    if tokens_in:
        entry["tokens"] = {"in": tokens_in, "out": tokens_out}
    return [entry]


_calls = [0]


def tool(name, args, result=None, error=None):
    _calls[0] += 1
    call = {"type": "tool", "tool_id": "toolu_%05d" % _calls[0], "name": name}
    end = {"status": "error", "error": error} if error else {"status": "success",
                                                             "result": result}
    return [{**call, "status": "running", "args": args}, {**call, **end}]


def bash(command, result=None, error=None):
    return tool("Bash", {"command": command}, result, error)


def closing(turns, minutes, tokens_in, tokens_out, status="success", message=None):
    entry = {"type": "complete", "status": status, "turns": turns,
             "duration_ms": int(minutes * 60000),
             "total_tokens": {"in": tokens_in, "out": tokens_out}}
    if message:
        entry["message"] = message
    return [entry]


# --- the sessions -----------------------------------------------------------------------

def overflow_solved(story, task):
    return opening(story, task) + (
        think("An out-of-bounds read while decoding \\uXXXX. I should see which bytes the "
              "reader trusts.") +
        say("I'll reproduce the report before changing anything.", 3120, 44) +
        bash("ls && make -j2 fuzz 2>&1 | tail -2 && ./tinyjson_fuzz poc/cut-escape.json",
             error="==7==ERROR: AddressSanitizer: heap-buffer-overflow on address "
             "0x602000000017\nREAD of size 1 at 0x602000000017 thread T0\n"
             "    #0 0x4f1a2c in hex4 src/string.c:38:19\n"
             "    #1 0x4f1c90 in read_escape src/string.c:71:10") +
        tool("Read", {"file_path": "/src/tinyjson/src/string.c", "offset": 28, "limit": 60},
             "    31\t/* Four hex digits at p; -1 when they are none. */\n"
             "    32\tstatic int\n    33\thex4(const char *p)\n    34\t{\n"
             "    35\t    int value = 0;\n    36\t\n"
             "    37\t    for (int i = 0; i < 4; i++) {\n"
             "    38\t        int digit = hex_digit((unsigned char)p[i]);") +
        think("hex4 has no idea where the input ends. Both callers do: r->end. The second "
              "caller also peeks at two bytes for the low surrogate, so that is the same "
              "fault twice.") +
        say("Two places read without asking:\n\n"
            "| place | reads | known to be there |\n| --- | --- | --- |\n"
            "| `hex4` | 4 bytes | 0 |\n| surrogate peek | 2 bytes | 0 |\n\n"
            "I'll give `hex4` the end of the input and guard the peek:\n\n"
            "```c\nif (end - p < 4)\n    return -1;\n```", 9874, 231) +
        tool("Edit", {"file_path": "/src/tinyjson/src/string.c",
                      "old_string": "hex4(const char *p)\n{\n    int value = 0;",
                      "new_string": "hex4(const char *p, const char *end)\n{\n    int value = 0;"
                      "\n\n    if (end - p < 4)\n        return -1;"},
             "The file /src/tinyjson/src/string.c has been updated.") +
        tool("Edit", {"file_path": "/src/tinyjson/src/string.c",
                      "old_string": "r->at[0] != '\\\\' || r->at[1] != 'u'",
                      "new_string": "r->end - r->at < 2 || r->at[0] != '\\\\' || r->at[1] != 'u'"},
             "The file /src/tinyjson/src/string.c has been updated.") +
        bash("make -j2 fuzz && for f in poc/*; do ./tinyjson_fuzz $f && echo $f ok; done",
             "poc/cut-escape.json ok\npoc/cut-pair.json ok") +
        bash("make test", "118 tests, 0 failed") +
        say("Fixed. `hex4` now knows where the input ends, and the low-surrogate peek asks "
            "first. Both reproducers pass, and so do all 118 tests.", 14402, 88) +
        closing(11, story["minutes"], 41230, 1902))


def overflow_missed(story, task):
    return opening(story, task) + (
        say("Looking at the crash report: `hex4` reads past the input.", 2890, 31) +
        tool("shell", {"command": ["bash", "-lc", "sed -n 28,60p src/string.c"]},
             "static int\nhex4(const char *p)\n{\n    int value = 0;\n") +
        tool("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/string.c\n"
                             "@@\n-hex4(const char *p)\n+hex4(const char *p, const char *end)"
                             "\n*** End Patch"}, "Success. Updated the following files:\n"
             "M src/string.c") +
        tool("shell", {"command": ["bash", "-lc", "make fuzz && ./tinyjson_fuzz "
                                   "poc/cut-escape.json"]}, "ok") +
        say("The reproducer no longer crashes. Done.", 6120, 40) +
        closing(4, story["minutes"], 13007, 512))


def race_long(story, task):
    """A long session: enough entries that a page has to be careful with them."""
    entries = opening(story, task)
    entries += think("A data race that shows only under load. I'll make it show often first.")
    entries += say("Plan:\n\n1. a stress test that fails reliably,\n2. find every access to "
                   "`lines`, `head`, `count`,\n3. lock what is not locked,\n4. run the "
                   "stress test many times.", 4100, 96)
    for number in range(1, 361):
        seed = (number * 7919) % 10007
        if number % 3 == 0:
            entries += bash(
                "go test -race -run Stress -count=1 -args -seed=%d" % seed,
                error="WARNING: DATA RACE\nRead at 0x00c000118%03x by goroutine %d:\n"
                "  ringlog.(*Ring).Snapshot()\n      /src/ringlog/ring.go:56 +0x84\n"
                "Previous write at 0x00c000118%03x by goroutine %d:\n"
                "  ringlog.(*Ring).Append()\n      /src/ringlog/ring.go:44 +0x131"
                % (seed % 4096, number + 7, seed % 4096, number + 8))
        else:
            entries += bash("go test -race -run Stress -count=1 -args -seed=%d" % seed,
                            "ok  \tringlog\t%.3fs" % (seed / 9000))
        if number % 10 == 0:
            entries += think("%d seeds so far, %d of them race, always Snapshot against "
                             "Append. No other pair has shown up." % (number, number // 3))
    entries += tool("Edit", {"file_path": "/src/ringlog/ring.go",
                             "old_string": "func (r *Ring) Snapshot() []string {",
                             "new_string": "func (r *Ring) Snapshot() []string {\n\tr.mu.Lock()"
                             "\n\tdefer r.mu.Unlock()\n"},
                    "The file /src/ringlog/ring.go has been updated.")
    entries += tool("Grep", {"pattern": r"r\.(lines|head|count)", "path": "/src/ringlog"},
                    "ring.go:41\nring.go:44\nring.go:57\nring.go:66: func (r *Ring) Len() int "
                    "{ return r.count }")
    entries += think("Len reads count without the lock as well. Nobody reported it, the race "
                     "detector would.")
    for number in range(1, 41):
        entries += bash("go test -race -run Stress -count=1 -args -seed=%d" % (number * 31),
                        "ok  \tringlog\t0.%03ds" % (number * 13 % 1000))
    entries += say("`Snapshot` and `Len` now take the lock. 40 stress runs with 40 seeds: no "
                   "race. I added a regression test, `TestSnapshotWhileAppending`.",
                   88120, 143)
    return entries + closing(176, story["minutes"], 812441, 20117)


def race_timeout(story, task):
    return opening(story, task) + (
        say("Let me run the whole test-suite under the race detector.", 2200, 20) +
        tool("shell", {"command": ["bash", "-lc", "go test -race -count=100000 ./..."]},
             error="signal: killed") +
        think("It takes long. I will simply wait longer.") +
        tool("shell", {"command": ["bash", "-lc", "sleep 1500; go test -race ./..."]},
             error="no output within the time limit") +
        closing(2, story["minutes"], 5114, 96, "timeout", "The time limit of 1800 s is over."))


def utf8_solved(story, task):
    return opening(story, task) + (
        say("Der Fehler: `&cell[..width]` zählt **Bytes**, gemeint sind **Spalten**. "
            "Ein `ß` hat zwei Bytes und eine Spalte, `本` drei Bytes und zwei Spalten, "
            "🦀 vier Bytes und zwei Spalten.", 3301, 120) +
        tool("shell", {"command": ["bash", "-lc", "cargo run -q -- --width 10 poc/umlaut.csv"]},
             error="thread 'main' panicked at src/clip.rs:14:16:\nbyte index 10 is not a char "
             "boundary; it is inside 'ß' (bytes 9..11) of `Geschwißter-Größe`") +
        tool("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/clip.rs\n@@\n"
                             "-    &cell[..width]\n+    for (at, c) in cell.char_indices() {\n"
                             "*** End Patch"}, "Success. Updated: M src/clip.rs") +
        tool("shell", {"command": ["bash", "-lc", "cargo test 2>&1 | tail -4"]},
             "test tests::short_cells_stay ... ok\ntest tests::wide_characters_count_twice "
             "... ok\n\ntest result: ok. 2 passed; 0 failed ✅") +
        say("Fertig: 日本語テキスト, Größe, 🦀🦀, עברית und e\u0301 (zwei Zeichen, eine Spalte) "
            "werden richtig gekürzt.", 7702, 77) +
        closing(5, story["minutes"], 16400, 902))


def utf8_broken(story, task):
    return opening(story, task) + (
        say("I'll walk back to the nearest boundary with `floor_char_boundary`.", 2950, 38) +
        tool("Edit", {"file_path": "/src/csvsift/src/clip.rs", "old_string": "&cell[..width]",
                      "new_string": "&cell[..cell.floor_char_boundary(width)]"},
             "The file /src/csvsift/src/clip.rs has been updated.") +
        bash("cargo build 2>&1 | tail -3",
             error="error[E0658]: use of unstable library feature `round_char_boundary`\n"
             "error: could not compile `csvsift` (lib) due to 1 previous error") +
        say("The toolchain is too old for this method, but it will be stable soon, so I leave "
            "it like this.", 5210, 45) +
        closing(3, story["minutes"], 9120, 401))


def hostile(story, task):
    """What a page must show as text: markup, terminal escapes, odd fields, cut UTF-8."""
    return opening(story, task) + (
        say("Testing cells:\n\n- `<script>alert(1)</script>`\n- <img src=x onerror=alert(1)>\n"
            "- [a link](javascript:alert(1))\n- ![](http://127.0.0.1:9/pixel.png)\n"
            "- </textarea><svg/onload=alert(1)>", 1800, 70) +
        bash("printf '\\033[31mred\\033[0m' | ./mdtable",
             "\x1b[31mred\x1b[0m \x1b]0;a new title\x07\x1b]52;c;aGVsbG8=\x07 plain\r"
             "overwritten\u2028next\u202etxet desrever\u202c") +
        [{"type": "tool", "tool_id": 7, "name": None, "status": "running", "args": "no object"},
         {"type": "message", "content": {"not": "text"}},
         {"type": "unheard-of", "content": "an entry of a type nobody knows"}] +
        say("x" * 6000 + " ← one word of six thousand letters", 900, 12) +
        closing(4, story["minutes"], 5200, 310))


def reference_dialog(story, task):
    return opening(story, task) + (
        bash("git apply /ssebench/task/diffs/patch.diff", "") +
        closing(1, story["minutes"], 0, 0))


# --- what they left behind ----------------------------------------------------------------

def same(reference):
    return reference


def nothing(_reference):
    return ""


def first_part(reference):
    """The first hunk only: a fix that stops half way."""
    at = reference.find("\n@@", reference.find("\n@@") + 3)
    return reference[:at + 1] if at > 0 else reference


def odd_names(reference):
    return reference + (
        'diff --git "a/tests/caf\\303\\251 \\"quoted\\".md" "b/tests/caf\\303\\251 \\"quoted\\".md"\n'
        "new file mode 100644\nindex 0000000..9daeafb\n--- /dev/null\n"
        '+++ "b/tests/caf\\303\\251 \\"quoted\\".md"\n@@ -0,0 +1,2 @@\n+| a | b |\n'
        "+--- not a header\n"
        "diff --git a/tests/<b>bold<b>.md b/tests/<b>bold<b>.md\n"
        "new file mode 100644\nindex 0000000..9daeafb\n--- /dev/null\n"
        "+++ b/tests/<b>bold<b>.md\n@@ -0,0 +1 @@\n+<script>alert(2)</script>\n"
        "diff --git a/logo.png b/logo.png\nindex 1111111..2222222 100644\n"
        "Binary files a/logo.png and b/logo.png differ\n"
        "diff --git a/old.md b/new.md\nsimilarity index 100%\n"
        "rename from old.md\nrename to new.md\n")


def plain_log(story):
    return "[%s] session started\n[%s] model %s\n[%s] session over\n" % (
        (story["agent"], story["agent"], story["model"], story["agent"]))


def hostile_log(story):
    return plain_log(story) + "\x1b[2J\x1b[31m<script>alert(3)</script>\x1b[0m\n" + \
        "progress  1%\rprogress 50%\rprogress 100%\n" + "one very long line " * 400 + "\n"


GRADED = "build: ok\npoc: ok\nfunction test: ok\nintent test: ok\n"


def story(title, task, model, agent, dialog, **more):
    base = {"title": title, "task": task, "model": model, "agent": agent, "dialog": dialog,
            "run_id": None, "mode": "sandbox", "timeout": 3600, "difficulty": 2, "review": None,
            "diff": same, "agent_log": plain_log, "evaluator_log": GRADED, "spend": 0,
            "minutes": 4, "patch_result": passed(2), "runtime_result": None}
    base.update(more)
    base["runtime_result"] = base["runtime_result"] or runtime(int(base["minutes"] * 60))
    return base


STORIES = [
    story("both reads bounded", "tinyjson-overflow-12", "claude-opus-5-5", "claude-code",
          overflow_solved, ago=35, minutes=6.5, spend=0.6182,
          review="Reviewed by hand.\n\nThe same two guards as the reference patch, in the same "
          "places; the comment above hex4 was not updated. Accepted.\n"),
    story("only one of two", "tinyjson-overflow-12", "gpt-6.1-sol", "codex", overflow_missed,
          ago=52, minutes=2.2, spend=0.1140, diff=first_part,
          evaluator_log="build: ok\npoc cut-escape.json: ok\npoc cut-pair.json: failed\n",
          patch_result=failed("PoC failed: poc/cut-pair.json", "heap-buffer-overflow in "
                              "read_unicode src/string.c:81", pov_passed=1, pov_total=2)),
    story("the reference", "tinyjson-overflow-12", "none", "reference", reference_dialog,
          ago=320, minutes=0.3),
    story("the long one", "ringlog-race-7", "claude-opus-5-5", "claude-code", race_long,
          ago=150, minutes=48, spend=6.2071, patch_result=passed(1), difficulty=3),
    story("out of time", "ringlog-race-7", "gemini-3-pro", "codex", race_timeout,
          ago=95, minutes=30, spend=0.0391, timeout=1800, diff=nothing, evaluator_log="",
          runtime_result=runtime(1800, 124),
          patch_result={"status": "error", "build_success": None, "func_test_success": None,
                        "intent_test_success": None, "pov_passed": None, "pov_total": None,
                        "error_msg": "Timeout (1800s)", "error_log": None}),
    story("the reference", "ringlog-race-7", "none", "reference", reference_dialog,
          ago=330, minutes=0.4, patch_result=passed(1)),
    story("columns, not bytes", "csvsift-utf8-3", "gpt-6.1-sol", "codex", utf8_solved,
          ago=20, minutes=3.1, spend=0.1533, patch_result=passed(3),
          review="Gut gelöst. Auch 日本語 und 🦀 geprüft ✓\n"),
    story("does not build", "csvsift-utf8-3", "claude-haiku-4-5", "claude-code", utf8_broken,
          ago=75, minutes=1.4, spend=0.0212, mode="sandbox", difficulty=1,
          evaluator_log="build: failed\nerror[E0658]: use of unstable library feature\n",
          diff=lambda r: "diff --git a/src/clip.rs b/src/clip.rs\nindex 1be9d02..aa01c7d 100644\n"
          "--- a/src/clip.rs\n+++ b/src/clip.rs\n@@ -10,5 +10,5 @@ pub fn clip(cell: &str, width:"
          " usize) -> &str {\n     if cell.len() <= width {\n         return cell;\n     }\n"
          "-    &cell[..width]\n+    &cell[..cell.floor_char_boundary(width)]\n }\n",
          patch_result=failed("Build failed", "error[E0658]: use of unstable library feature "
                              "`round_char_boundary`", build_success=False, pov_passed=None,
                              pov_total=None)),
    story("hostile in moderation", "mdtable-escape-21", "lab/mini-7b", "opencode", hostile,
          run_id="hostile-output.1", ago=240, minutes=2, diff=odd_names, agent_log=hostile_log,
          evaluator_log="build: ok\nfunction test: failed\n",
          patch_result=failed("Function test failed", "<b>expected</b> &lt; got <",
                              func_test_success=False, pov_passed=1)),
]

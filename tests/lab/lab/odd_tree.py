"""A results tree with every oddity the contract names, and some it does not."""
import json
import os

MAX = 8 * 1024 * 1024
START = "2026-10-01T10:00:00.000000Z"


def summary(run_id="r", **more):
    """A whole, ordinary summary; a key given as `...` is left out."""
    whole = {
        "task": {"id": "task-1", "project": "p", "language": "c", "source": "/src",
                 "task_description": {"issue": "x"}, "files": {"poc": []}},
        "config": {"agent": "codex", "model": "gpt-6.1-sol", "mode": "sandbox", "timeout": 3600,
                   "difficulty": 2, "tool_layer": "sandbox", "egress": "restricted",
                   "reference_run": False, "plugins": []},
        "patch_result": {"status": "passed", "build_success": True, "func_test_success": True,
                         "intent_test_success": None, "pov_passed": 1, "pov_total": 1,
                         "error_msg": None, "error_log": None},
        "runtime_result": {"agent_duration": 7, "agent_timeout": False, "agent_exit_code": 0,
                           "evaluator_timeout": False},
        "spend": 0.25, "run_id": run_id, "started_at": START, "plugin_results": [], **more}
    return {k: v for k, v in whole.items() if v is not ...}


def changed(part, **more):
    return {part: {**summary()[part], **more}}


def as_text(value):
    return json.dumps(value, ensure_ascii=False)


def sized(run_id, size):
    text = as_text(summary(run_id))
    return text[:-1] + ", \"pad\": \"" + "x" * (size - len(text.encode()) - 11) + "\"}"


def doubled(run_id):
    return as_text(summary(run_id))[:-1] + ', "run_id": "%s-2", "task": {"id": "other"}}' % run_id


# Folder below results/ -> text or bytes of its summary.json.
def ordinary():
    return {
        "task-1/gpt-6.1-sol/codex/plain": as_text(summary("plain")),
        "task-1/openrouter/meta/llama-4/codex/slashes":
            as_text(summary("slashes", **changed("config", model="openrouter/meta/llama-4"))),
        "shallow": as_text(summary("shallow")),
        "t/m/a/renamed-folder": as_text(summary("another-id")),
        "t/m/a/dup-1": as_text(summary("dup", started_at="2026-10-02T00:00:00Z")),
        "t/m/b/dup-2": as_text(summary("dup", started_at="2026-10-03T00:00:00Z")),
        "t/m/a/no-id": as_text(summary(...) | {"run_id": None}),
        "t/m/a/absent-id": as_text({k: v for k, v in summary().items() if k != "run_id"}),
        "t/m/a/empty-id": as_text(summary("")),
        "t/m/a/number-id": as_text(summary(8)),
        "t/m/a/object-id": as_text(summary({"a": 1})),
        "t/m/a/bool-id": as_text(summary(True)),
        "t/m/a/bad id": as_text(summary(None)),
        "t/m/a/dots-id": as_text(summary("../../etc")),
        "t/m/a/long-id": as_text(summary("x" * 64)),
        "t/m/a/longer-id": as_text(summary("x" * 65)),
        "t/m/a/latest-id": as_text(summary("LaTeSt")),
        "t/m/a/nul-id": as_text(summary("a\0b")),
        "t/m/a/line-id": as_text(summary("line\n")),
        "t/m/a/unicode-id": as_text(summary("r\u00fcn")),
        "t/latest2/a/r-latest": as_text(summary("below-latest2")),
        "t/m/a/reference": as_text(summary("reference", **changed(
            "config", reference_run=True, model="none", agent="reference"))),
        "t/m/a/reference-text": as_text(summary("reference-text", **changed(
            "config", reference_run="true"))),
        "t/m/a/reference-1": as_text(summary("reference-1", **changed(
            "config", reference_run=1))),
        "t/m/a/no-config": as_text(summary("no-config", config=...)),
        "t/m/a/list-config": as_text(summary("list-config", config=[1])),
        "t/m/a/odd-config": as_text(summary("odd-config", config={"model": 7, "agent": [], "mode": {}})),
        "t/m/a/empty-model": as_text(summary("empty-model", **changed("config", model=""))),
        "t/m/a/no-patch": as_text(summary("no-patch", patch_result=...)),
        "t/m/a/text-patch": as_text(summary("text-patch", patch_result="passed")),
        "t/m/a/odd-status": as_text(summary("odd-status", **changed("patch_result", status="maybe"))),
        "t/m/a/number-status": as_text(summary("number-status", **changed("patch_result", status=1))),
        "t/m/a/no-task": as_text(summary("no-task", task=...)),
        "t/m/a/text-task": as_text(summary("text-task", task="task-1")),
        "t/m/a/empty-task": as_text(summary("empty-task", task={"id": ""})),
        "t/m/a/number-task": as_text(summary("number-task", task={"id": 5})),
        "t/m/a/odd-task": as_text(summary("odd-task", task={"id": "../\u202e x/<b>"})),
        "t/m/a/long-task": as_text(summary("long-task", task={"id": "t" * 300})),
        "t/m/a/no-start": as_text(summary("no-start", started_at=None)),
        "t/m/a/number-start": as_text(summary("number-start", started_at=20261001)),
        "t/m/a/odd-start": as_text(summary("odd-start", started_at="yesterday \U0001f600")),
        "t/m/a/early-start": as_text(summary("early-start", started_at="0001")),
        "t/m/a/not-json": "{\"task\": {\"id\"",
        "t/m/a/empty": "",
        "t/m/a/blank": " \n\t ",
        "t/m/a/list": "[" + as_text(summary("list")) + "]",
        "t/m/a/null": "null",
        "t/m/a/two": as_text(summary("two")) + as_text(summary("two-b")),
        "t/m/a/comment": "// hello\n" + as_text(summary("comment")),
        "t/m/a/trailing-comma": as_text(summary("trailing-comma"))[:-1] + ",}",
        "t/m/a/single-quotes": "{'task': {'id': 'x'}}",
        "t/m/a/padded": "\n\t " + as_text(summary("padded")) + "\r\n\n",
        "t/m/a/doubled": doubled("doubled"),
        "t/m/a/nan": as_text(summary("nan", spend=float("nan"))),
        "t/m/a/infinity": as_text(summary("infinity", spend=float("-inf"))),
        "t/m/a/bare-infinity": as_text(summary("bare-infinity", spend=float("inf"))),
        "t/m/a/huge-number": as_text(summary("huge-number"))[:-1] + ', "n": 1e999, "m": %s}' % ("9" * 400),
        "t/m/a/leading-zero": as_text(summary("leading-zero"))[:-1] + ', "n": 01}',
        "t/m/a/plus-number": as_text(summary("plus-number"))[:-1] + ', "n": +1}',
        "t/m/a/minus-zero": as_text(summary("minus-zero"))[:-1] + ', "n": -0}',
        "t/m/a/deep-60": as_text(summary("deep-60"))[:-1] + ', "d": %s%s}' % ("[" * 60, "]" * 60),
        "t/m/a/deep-100": as_text(summary("deep-100"))[:-1] + ', "d": %s%s}' % ("[" * 100, "]" * 100),
        "t/m/a/deep-500": as_text(summary("deep-500"))[:-1] + ', "d": %s%s}' % ("[" * 500, "]" * 500),
        "t/m/a/control": as_text(summary("control"))[:-1] + ', "c": "a\tb"}',
        "t/m/a/bad-escape": as_text(summary("bad-escape"))[:-1] + ', "c": "\\x41"}',
        "t/m/a/short-escape": as_text(summary("short-escape"))[:-1] + ', "c": "\\u12"}',
        "t/m/a/escaped-keys": as_text(summary("escaped-keys")).replace('"task"', '"\\u0074ask"'),
        "t/m/a/escaped-id": as_text(summary("PLACE")).replace("PLACE", "\\u0065scaped-id"),
        "t/m/a/pair": as_text(summary("pair", task={"id": "PAIR"})).replace("PAIR", "\\ud83d\\ude00"),
        "t/m/a/lone-elsewhere": as_text(summary("lone-elsewhere"))[:-1] + ', "c": "\\ud800"}',
        "t/m/a/nul-model": as_text(summary("nul-model", **changed("config", model="a\0b"))),
        "t/m/a/nul-key": as_text(summary("nul-key"))[:-1] + ', "task\\u0000": 1, "": 2}',
        "t/m/a/bad-utf8": as_text(summary("bad-utf8", **changed("config", model="AB"))).encode().replace(b"AB", b"\xff\xfe"),
        "t/m/a/overlong-utf8": as_text(summary("overlong-utf8", task={"id": "AB"})).encode().replace(b"AB", b"\xc0\xaf"),
        "t/m/a/surrogate-utf8": as_text(summary("surrogate-utf8", task={"id": "ABC"})).encode().replace(b"ABC", b"\xed\xa0\x80"),
        "t/m/a/bom": b"\xef\xbb\xbf" + as_text(summary("bom")).encode(),
        "t/m/a/utf16": as_text(summary("utf16")).encode("utf-16"),
        "t/m/a/latin1": as_text(summary("latin1", task={"id": "\u00fc"})).encode("latin-1"),
        "t/m/a/nul-end": as_text(summary("nul-end")).encode() + b"\0",
        "t/m/a/max": sized("max", MAX),
        "t/m/a/over": sized("over", MAX + 1),
        "t/m/a/nested": as_text(summary("nested")),
        "t/m/a/nested/archive/inner": as_text(summary("inner")),
        "t/m/a/.hidden": as_text(summary("hidden")),
    }


def write(results, folder, text):
    place = os.path.join(results, folder)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "summary.json"), "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def make(results):
    """The oddities on which both must agree."""
    for folder, text in ordinary().items():
        write(results, folder, text)
    group = os.path.join(results, "task-1", "gpt-6.1-sol", "codex")
    os.symlink("plain", os.path.join(group, "latest"))
    os.makedirs(os.path.join(results, "t/m/a/unfinished/archive"))
    os.makedirs(os.path.join(results, "t/m/a/folder-summary/summary.json/below"))
    write(results, "t/m/a/folder-summary/summary.json/below", as_text(summary("below-folder")))
    os.symlink("/nowhere", os.path.join(results, "t", "dangling"))
    os.symlink(results, os.path.join(results, "t", "loop"))
    with open(os.path.join(results, "t", "summary.json.bak"), "w", encoding="utf-8") as f:
        f.write(as_text(summary("backup")))

#!/usr/bin/python3
"""Makes the demonstration checkout in a folder: make_demo.py FOLDER.

Copies checkout/ and writes what is made rather than kept: the manifest, .env with keys that
open nothing, and the run directories told in stories.py, with times shortly before now.
"""
import hashlib
import json
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "standin"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import stories  # noqa: E402
from standin import checkout  # noqa: E402

ENV = "\n".join("%s=demonstration-opens-nothing" % name for name in
                ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY")) + "\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def manifest(pilot):
    tasks = []
    for name in sorted(os.listdir(pilot)):
        config = checkout.local_task(pilot, name)
        files = {}
        for folder, _, names in os.walk(os.path.join(pilot, name)):
            for n in names:
                path = os.path.join(folder, n)
                with open(path, "rb") as f:
                    files[os.path.relpath(path, os.path.join(pilot, name))] = \
                        hashlib.sha256(f.read()).hexdigest()
        checks = ["build", "poc", "function_test"]
        checks += ["intent_test"] if config["files"]["intent_test"] else []
        tasks.append({
            "id": name, "language": config["language"], "project": config["project"],
            "repository": config["repository"], "base": "runtime-" + config["language"],
            "image": "ssebench/case-%s:demo" % name, "arch": ["amd64", "arm64"],
            "checks": checks, "files": dict(sorted(files.items())), "metadata": config})
    return {"dataset": "pilot", "version": "demo-1", "tasks": tasks}


def iso(seconds, digits=3):
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return "%s.%sZ" % (whole, ("%06d" % (seconds % 1 * 1e6))[:digits])


def dialog(story, task, started):
    """The lines of dialog.jsonl: the story's entries, numbered and dated."""
    entries = story["dialog"](story, task)
    pace = story["minutes"] * 60 / max(1, len(entries))
    lines = []
    for seq, entry in enumerate(entries):
        whole = {"seq": seq, "ts": iso(started + 20 + seq * pace), **entry}
        lines.append(json.dumps(whole, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def make_run(top, story, now):
    """One run directory below top/results."""
    pilot = os.path.join(top, "datasets", "pilot")
    task = checkout.local_task(pilot, story["task"])
    started = now - story["ago"] * 60
    reference = checkout.reference_patch(task, checkout.task_folder(story["task"], pilot))
    run_id = story["run_id"] or "%s-%s" % (
        time.strftime("%Y%m%d-%H%M%S", time.gmtime(started)),
        hashlib.sha256(repr(story["title"]).encode()).hexdigest()[:6])
    place = os.path.join(top, "results", story["task"], story["model"], story["agent"], run_id)
    config = {"agent": story["agent"], "model": story["model"], "mode": story["mode"],
              "timeout": story["timeout"], "difficulty": story["difficulty"],
              "tool_layer": "sandbox", "egress": "restricted",
              "reference_run": story["agent"] == "reference", "plugins": []}
    result = {"patch_result": story["patch_result"], "runtime_result": story["runtime_result"],
              "config": config}
    summary = {"task": task, **result, "spend": story["spend"], "run_id": run_id,
               "started_at": iso(started, 6), "plugin_results": []}
    texts = {"summary.json": json.dumps(summary, ensure_ascii=False),
             "result.json": json.dumps(result, ensure_ascii=False),
             "final.patch": story["diff"](reference), "commits.log": "",
             "reference.patch": reference, "agent.log": story["agent_log"](story),
             "evaluator.log": story["evaluator_log"], "daemon.log": "listening on 4263\n"}
    if story["review"]:
        texts["post-review.txt"] = story["review"]
    if story["dialog"]:
        texts["archive/dialog.jsonl"] = dialog(story, task, started)
    for name, text in texts.items():
        write(os.path.join(place, name), text)
    point_latest(place)


def point_latest(place):
    link = os.path.join(os.path.dirname(place), "latest")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(os.path.basename(place), link)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_demo.py FOLDER")
    top = os.path.abspath(sys.argv[1])
    shutil.copytree(os.path.join(HERE, "checkout"), top, dirs_exist_ok=True)
    pilot = os.path.join(top, "datasets", "pilot")
    if os.path.exists(os.path.join(pilot, "manifest.json")):
        os.unlink(os.path.join(pilot, "manifest.json"))
    made = manifest(pilot)
    write(os.path.join(pilot, "manifest.json"), json.dumps(made, ensure_ascii=False, indent=1))
    write(os.path.join(top, ".env"), ENV)
    os.chmod(os.path.join(top, ".env"), 0o600)
    now = time.time()
    for story in sorted(stories.STORIES, key=lambda s: -s["ago"]):
        make_run(top, story, now)


if __name__ == "__main__":
    main()

"""What a checkout holds, read from the working directory: models, agents, plugins, tasks."""
import json
import os

TASK_TEXT = ("id", "project", "repository", "language", "source", "sanitizer", "type", "binary",
             "trigger_commit", "patch_commit", "originality")
TASK_PARTS = {
    "task_description": {"issue": None, "crash_report": [], "bug_description": None},
    "scripts": {"build": None, "run": None, "test": None},
    "files": {"patch": None, "poc": [], "future_test": None, "security_test": None,
              "intent_test": None},
}


def models():
    """model name -> names of the keys it needs."""
    found, name = {}, None
    for path in sorted(listed("models")):
        if not path.endswith((".yaml", ".yml")):
            continue
        with open(path, encoding="utf-8") as f:
            for line in f:
                key, _, value = line.strip().lstrip("- ").partition(":")
                if key == "model_name":
                    name = value.strip()
                    found[name] = []
                elif name and value.strip().startswith("os.environ/"):
                    found[name].append(value.strip()[len("os.environ/"):])
    return {n: sorted(set(keys)) for n, keys in found.items()}


def listed(folder):
    try:
        return [os.path.join(folder, n) for n in os.listdir(folder) if not n.startswith(".")]
    except OSError:
        return []


def agents():
    return sorted(os.path.basename(p) for p in listed("agents") if os.path.isdir(p))


def plugins():
    """name -> enabled"""
    found, name = {}, None
    try:
        with open("runtime/plugins/plugins.yaml", encoding="utf-8") as f:
            for line in f:
                key, _, value = line.strip().lstrip("- ").partition(":")
                if key == "name":
                    name = value.strip()
                    found[name] = False
                elif name and key == "enabled":
                    found[name] = value.strip() == "true"
    except OSError:
        pass
    return found


def dotenv():
    found = {}
    try:
        with open(".env", encoding="utf-8") as f:
            for line in f:
                name, equals, value = line.strip().removeprefix("export ").partition("=")
                if equals and not name.startswith("#"):
                    found[name.strip()] = value.strip().strip("'\"")
    except OSError:
        pass
    return found


def read_block(path):
    """The small YAML of config.yaml: one nesting level, plain scalars, lists of scalars."""
    top, part, items = {}, None, None
    with open(path, encoding="utf-8") as f:
        for line in f:
            body = line.strip()
            if not body or body.startswith("#"):
                continue
            if body.startswith("- "):
                if items is not None:
                    items.append(body[2:].strip())
                continue
            key, _, value = body.partition(":")
            value = value.strip() or None
            where = top if not line[0].isspace() or part is None else part
            items = []
            where[key] = value if value is not None else items
            if where is top:
                part = {}
                if value is None:
                    top[key] = Pending(items, part)
    return {k: v.settle() if isinstance(v, Pending) else v for k, v in top.items()}


class Pending:
    """A key without a value: a list, a mapping or null, known when the file is read."""

    def __init__(self, items, part):
        self.items, self.part = items, part

    def settle(self):
        return self.part or self.items or None


def whole_task(raw, task_id):
    """Every key of contract 7.4, whatever the file left out."""
    task = {key: raw.get(key) for key in TASK_TEXT}
    task["id"] = task_id
    for name, keys in TASK_PARTS.items():
        given = raw.get(name) if isinstance(raw.get(name), dict) else {}
        part = {}
        for key, default in keys.items():
            value = given.get(key)
            part[key] = ([] if isinstance(default, list) else None) if value in (None, []) \
                else value
        task[name] = part
    task["reference"] = raw.get("reference") or []
    return task


def local_task(folder, task_id):
    """Config of a task folder, or None."""
    path = os.path.join(folder, task_id, "sse", "config.yaml")
    if not os.path.isfile(path):
        return None
    return whole_task(read_block(path), task_id)


def catalog_task(location, task_id):
    """Config from a manifest, or None; OSError or ValueError when it cannot be read."""
    for task in read_manifest(location)["tasks"]:
        if task.get("id") == task_id:
            raw = dict(task.get("metadata") or {})
            for key in ("language", "project", "repository"):
                raw.setdefault(key, task.get(key))
            return whole_task(raw, task_id)
    return None


def read_manifest(location):
    if location.lower().startswith(("http://", "https://")):
        from urllib.request import urlopen
        path = location.partition("?")[0]
        if not path.endswith(".json"):
            location = location.rstrip("/") + "/manifest.json"
        with urlopen(location, timeout=10) as answer:
            return json.load(answer)
    if os.path.isdir(location):
        location = os.path.join(location, "manifest.json")
    with open(location, encoding="utf-8") as f:
        return json.load(f)


def task_folder(task_id, local=None):
    """A local copy of the task's folder, or None."""
    places = [local] if local else [p for p in sorted(listed("datasets")) if os.path.isdir(p)]
    for place in places:
        folder = os.path.join(place, task_id)
        if os.path.isdir(os.path.join(folder, "sse")):
            return folder
    return None


def reference_patch(task, folder):
    """Text of the task's own patch, or None."""
    name = task["files"]["patch"]
    if not name or not folder:
        return None
    try:
        with open(os.path.join(folder, "sse", name), encoding="utf-8") as f:
            return f.read()
    except OSError:
        return None

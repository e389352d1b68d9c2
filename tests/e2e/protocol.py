"""What the page expects of the server (worker/web/src/protocol.ts): the build writes its
description out, and every document and WebSocket message of these tests is held against it."""
import functools
import json
import os
import re

PATH = os.path.join(os.path.abspath(os.environ.get("SSEBENCH_BUILD") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")),
    "worker", "web", "page", "protocol.json")
SIMPLE = {"string": str, "boolean": bool}


@functools.lru_cache(maxsize=None)
def described():
    """{"DOCUMENTS": {"GET /path": shape}, "MESSAGES": {"/path": shape}}; nothing where the page
    came built."""
    try:
        with open(PATH, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {"DOCUMENTS": {}, "MESSAGES": {}}


def shape_of(kind, path, method=""):
    """The shape for this path, or None."""
    path = path.partition("?")[0]
    for name, shape in described()[kind].items():
        if re.fullmatch(re.escape(name).replace("ID", "[^/]+"), method + path):
            return shape
    return None


def misfit(shape, value, path="answer"):
    """Where `value` departs from `shape`, or None. The same rules as the page's lib/shape.ts."""
    kind = shape["kind"]
    if kind == "any":
        return None
    if kind == "number":
        return None if isinstance(value, (int, float)) and not isinstance(value, bool) else path
    if kind in SIMPLE:
        return None if isinstance(value, SIMPLE[kind]) else path
    if kind == "literal":
        return None if value in shape["values"] else path
    if kind == "null-or":
        return None if value is None else misfit(shape["of"], value, path)
    if kind == "list":
        return first(shape["of"], enumerate(value), path) if isinstance(value, list) else path
    if not isinstance(value, dict):
        return path
    if kind == "map":
        return first(shape["of"], value.items(), path)
    if kind == "object":
        return fields(shape["fields"], value, path)
    assert kind == "variants", kind
    for one in shape["of"]:
        if misfit(one["fields"]["type"], value.get("type"), "") is None:
            return misfit(one, value, path)
    return path + ".type"


def first(shape, items, path):
    for key, item in items:
        wrong = misfit(shape, item, "%s[%s]" % (path, key))
        if wrong:
            return wrong
    return None


def fields(described_fields, value, path):
    for name, shape in described_fields.items():
        if shape["kind"] == "optional":
            if name not in value:
                continue
            shape = shape["of"]
        elif name not in value:
            return "%s.%s" % (path, name)
        wrong = misfit(shape, value[name], "%s.%s" % (path, name))
        if wrong:
            return wrong
    return None


def check(shape, value, path):
    wrong = misfit(shape, value, path) if shape else None
    assert wrong is None, "not as worker/web/src/protocol.ts describes it: %s in %s" % (
        wrong, json.dumps(value)[:500])

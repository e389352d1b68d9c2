"""The stand-in and the real command: the same words in, the same statuses and keys out."""
import json
import time

from harness import STANDIN, Place
from report import call, case, real, same

RUN, DONE, GONE = "lab-a", "lab-b", "lab-none"

# Arguments, and what is compared beside the status: "keys" of the JSON, "text", or nothing.
CALLS = [
    ("runs list --json", "keys"), ("runs list", None), ("runs list x", None),
    ("runs list --backend nope", "err"), ("runs", None),
    ("runs bogus", None), ("bogus", None), ("", None), ("--version", None),
    ("runs inspect %s --json" % RUN, "keys"), ("runs inspect --json %s" % DONE, "keys"),
    ("runs inspect %s" % RUN, "names"), ("runs inspect %s" % GONE, "err"),
    ("runs inspect latest", None), ("runs inspect LATEST", None), ("runs inspect -x", None),
    ("runs inspect a/b", None), ("runs inspect " + "x" * 65, None), ("runs inspect", None),
    ("runs inspect %s %s" % (RUN, DONE), None),
    ("runs logs %s" % GONE, "err"), ("runs logs %s --follow" % DONE, None),
    ("runs logs --follow=1 %s" % DONE, None), ("runs logs %s --json" % RUN, None),
    ("runs stop %s" % GONE, "err"), ("runs stop %s" % DONE, None),
    ("runs stop --grace x %s" % DONE, None), ("runs stop --grace 1 %s" % DONE, None),
    ("runs stop --grace=-1 %s" % DONE, None), ("runs stop %s --grace" % DONE, None),
    ("runs remove %s" % GONE, "err"), ("runs remove", None),
    ("runs endpoint %s 4263 --json" % RUN, "keys"), ("runs endpoint --json %s 4263" % RUN, "keys"),
    ("runs endpoint %s 0" % RUN, None), ("runs endpoint %s 65536" % RUN, None),
    ("runs endpoint %s x" % RUN, None), ("runs endpoint %s" % RUN, None),
    ("runs endpoint %s +80" % RUN, None), ("runs endpoint %s 4263" % GONE, "err"),
    ("runs endpoint %s 4263" % DONE, "err"),
    ("runs exec %s -- echo hello" % RUN, "text"), ("runs exec %s -- sh -c exit\\ 7" % RUN, "text"),
    ("runs exec %s echo hello" % RUN, "text"), ("runs exec %s" % RUN, None),
    ("runs exec %s --" % RUN, None), ("runs exec %s -- echo x" % GONE, "err"),
    ("runs exec --stdin --env NOPE %s -- echo hello" % RUN, "text"),
    ("runs exec %s --stdin -- echo hello" % RUN, "text"),
    ("runs exec %s -- /no/such" % RUN, None), ("runs exec %s -- no-such" % RUN, None), ("runs exec --workdir / %s -- pwd" % RUN, None),
    ("runs exec %s -- echo x" % DONE, None),
    ("runs results --json", "keys"), ("runs results --json --dir /nowhere", "text"),
    ("runs results --backend docker", None), ("runs results x", None), ("runs results", None),
    ("run", None), ("run --agent=codex", None), ("run --task=t", None),
    ("run --agent=codex --task=t --mode=x", None), ("run --agent=codex --task=t --difficulty=9", None),
    ("run --agent=codex --task=t --difficulty=x", None), ("run --agent=codex --task=t --timeout=x", None),
    ("run --agent=codex --task=t --egress=x", None), ("run --agent=codex --task=t --run-id=latest", None),
    ("run --agent=codex --task=t --run-id=a/b", None), ("run --agent=codex --task=t --nope", None),
    ("run --agent=codex --task=t", None), ("run --agent=none-such --model=m --task=t", None),
    ("run --agent=codex --model=none-such --task=t", None),
    ("run --agent=codex --model=m --task=t --mode=sidecar --plugin=x", None),
    ("doctor --nope", None), ("doctor --json", "doctor"),
    ("runs remove %s" % DONE, "out"), ("runs stop %s --grace 1" % RUN, "out"),
    ("runs endpoint %s 4263" % RUN, "err"), ("runs remove %s" % RUN, "out"),
    ("runs remove %s" % RUN, "err"),
]


def keys_of(value):
    """The shape of a document: names in order, types below them."""
    if isinstance(value, dict):
        if value and all(k.startswith("ssebench.") for k in value):
            return "labels"
        return [(k, keys_of(v)) for k, v in value.items()]
    if isinstance(value, list):
        return [keys_of(value[0])] if value else []
    return type(value).__name__


def seen(how, answer):
    status, out, err = answer
    if how == "keys":
        return status, keys_of(json.loads(out)) if out else out
    if how == "names":
        return status, [line.partition(":")[0] for line in out.splitlines()]
    if how == "doctor":
        report = json.loads(out)
        return list(report), sorted(report["checks"][0])
    if how == "text":
        return status, out
    if how == "out":
        return status, out, err
    if how == "err":
        return status, out, err.count("\n"), err.strip().split(": ")[0] if status > 1 else ""
    return status


def split(text):
    return [w.replace("\0", " ") for w in text.replace("\\ ", "\0").split(" ") if w]


def compare(world, text, how):
    argv = split(text)
    got = call([STANDIN, *argv], cwd=world.checkout, env=world.env())
    want = real(*argv, cwd=world.checkout)
    try:
        same(seen(how, got), seen(how, want), "stand-in and real")
    except AssertionError as wrong:
        raise AssertionError("%s (stderr: %r, real %r)" % (wrong, got[2][-200:], want[2][-200:])) from None


def cases(docker):
    if docker.why:
        print("SKIP standin: %s" % " ".join(docker.why.split()), flush=True)
        return
    docker.clear()
    world = Place()
    try:
        docker.run(RUN, "one")
        docker.run(DONE, "two", "echo over")
        world.start_run(RUN, agent_seconds=60)
        world.start_run(DONE, agent_seconds=0.1)
        time.sleep(1)  # started, not only created
        call([STANDIN, "runs", "stop", DONE], cwd=world.checkout, env=world.env())
        time.sleep(1)
        for text, how in CALLS:
            case("standin: " + (text or "(nothing)"), compare, world, text, how)
    finally:
        world.close()

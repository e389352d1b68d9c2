"""One line a case, and how the lab calls commands."""
import json
import os
import subprocess

REAL = "/opt/ssebench/bin/ssebench"
failed = 0


class Skip(Exception):
    """The case cannot be tried here, and why."""


def case(name, check, *args):
    """Run a check: nothing raised is PASS."""
    global failed
    try:
        check(*args)
    except Skip as why:
        print("SKIP %s: %s" % (name, why), flush=True)
    except Exception as wrong:  # whatever it is, the other cases go on
        failed += 1
        text = str(wrong) or type(wrong).__name__
        print("FAIL %s: %s" % (name, " ".join(text.split())[:1500]), flush=True)
    else:
        print("PASS %s" % name, flush=True)


def skip_all(names, why):
    for name in names:
        print("SKIP %s: %s" % (name, " ".join(why.split())), flush=True)


def same(got, want, what=""):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def call(argv, cwd="/", env=None, timeout=120, stdin=subprocess.DEVNULL):
    """(status, stdout, stderr) of a command."""
    p = subprocess.run(argv, cwd=cwd, env={**os.environ, **(env or {})}, timeout=timeout,
                       stdin=stdin, capture_output=True)
    return (p.returncode, p.stdout.decode("utf-8", "replace"),
            p.stderr.decode("utf-8", "replace"))


def must(argv, **more):
    status, out, err = call(argv, **more)
    if status != 0:
        raise AssertionError("%s: status %d: %s" % (" ".join(argv), status, (err or out)[-900:]))
    return out


def real(*argv, **more):
    return call([REAL, *argv], **more)


def real_json(*argv, **more):
    return json.loads(must([REAL, *argv], **more))

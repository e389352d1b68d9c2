"""Entry: records the call, applies the knobs of the tests, finds the verb."""
import os
import sys
import time

from . import state
from .options import Usage

RUNS_VERBS = ("list", "inspect", "logs", "stop", "remove", "endpoint", "exec", "results")


class Failure(Exception):
    """One line on stderr, stdout empty, a status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def verb_of(argv):
    if argv[:1] == ["runs"] and len(argv) > 1:
        return argv[1]
    return argv[0] if argv else ""


def main(argv):
    state.record_call(argv)
    verb = verb_of(argv)
    status = apply_knobs(verb)
    if status is not None:
        return status
    try:
        return dispatch(argv, verb)
    except Usage as wrong:
        sys.stderr.write("usage: ssebench %s\nssebench: error: %s\n" % (verb, wrong))
        return 2
    except Failure as wrong:
        sys.stderr.write("%s\n" % wrong)
        return wrong.status
    except BrokenPipeError:
        return quiet_end()


def dispatch(argv, verb):
    if verb == "run" and argv[0] == "run":
        from . import run
        return run.main(argv[1:])
    if argv[:1] == ["runs"] and verb in RUNS_VERBS:
        from . import runs
        return getattr(runs, "verb_" + verb)(argv[2:])
    if verb == "doctor":
        from . import doctor
        return doctor.main(argv[1:])
    if verb == "standin-reset":
        from . import runs
        return runs.reset()
    if verb == "--version":
        print("ssebench 1.1.0")
        return 0
    if not argv:
        print("usage: ssebench COMMAND ...")
        return 1
    raise Usage("invalid choice: %r" % verb)


def quiet_end():
    """The reader closed the pipe: status 0, and no complaint while Python flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def apply_knobs(verb):
    """Faults that need no understanding of the verb. A status, or None: carry on."""
    delay = state.knob("delay", 0)
    if isinstance(delay, dict):
        delay = delay.get(verb, 0)
    if delay:
        time.sleep(delay)
    if verb in state.knob("hang_hard", []):
        hang_hard()
    if verb in state.knob("hang", []):
        while True:
            time.sleep(60)
    if verb in state.knob("crash", {}):
        os.kill(os.getpid(), int(state.knob("crash")[verb]))
    if verb in state.knob("fail", {}):
        status, text = state.knob("fail")[verb]
        sys.stderr.write(text + "\n")
        return status
    if verb in state.knob("rubbish", {}):
        sys.stdout.write(state.knob("rubbish")[verb])
        return 0
    if verb in state.knob("flood", {}):
        return flood(int(state.knob("flood")[verb]))
    return None


def hang_hard():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    while True:
        time.sleep(60)


def flood(left):
    block = b"x" * 65536
    try:
        while left > 0:
            left -= os.write(1, block[:left])
    except BrokenPipeError:
        return quiet_end()
    return 0

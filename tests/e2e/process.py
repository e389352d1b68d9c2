"""Looking at processes through /proc: who belongs to whom, and what a process may do."""
import contextlib
import ctypes
import os
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper():
    """Orphans of what we start become our children, so that none escapes the leak check."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read(pid, name):
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as f:
            return f.read()
    except OSError:
        return b""


def stat(pid):
    """Fields of /proc/<pid>/stat after the name: [0] state, [1] parent, [19] start time."""
    return read(pid, "stat").rpartition(b")")[2].split()


def alive(pid):
    fields = stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def all_pids():
    return [int(n) for n in os.listdir("/proc") if n.isdigit()]


def families():
    """Parent -> its children, of all processes. Looked at again when a parent ended meanwhile:
    its children have another one by then."""
    for _ in range(10):
        parents = {p: int(fields[1]) for p in all_pids() if (fields := stat(p))}
        if all(parent in parents or parent == 0 for parent in parents.values()):
            break
    found = {}
    for p, parent in parents.items():
        found.setdefault(parent, []).append(p)
    return found


def children(pid):
    return families().get(pid, [])


def descendants(pid):
    """Nearest first; one that is born meanwhile may be missing."""
    family, found = families(), [pid]
    for p in found:
        found += family.get(p, [])
    return found[1:]


def command(pid):
    return [w.decode("utf-8", "replace") for w in read(pid, "cmdline").split(b"\0") if w]


def status(pid):
    """/proc/<pid>/status as a dictionary."""
    found = {}
    for line in read(pid, "status").decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        found[key] = value.strip()
    return found


def namespace(pid, name):
    try:
        return os.readlink("/proc/%d/ns/%s" % (pid, name))
    except OSError:
        return ""


def descriptors(pid):
    """number -> what it is ("socket:[1]", "/a/path")."""
    found = {}
    try:
        names = os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return found
    for n in names:
        try:
            found[int(n)] = os.readlink("/proc/%d/fd/%s" % (pid, n))
        except OSError:
            pass
    return found


def rss_kib(pid):
    return int(status(pid).get("VmRSS", "0").split()[0])


def wait_for(condition, seconds=20, what="condition"):
    """Poll until `condition()` is truthy; its value. Generous: the machine is shared."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError("not within %d s: %s" % (seconds, what))
        time.sleep(0.03)


@contextlib.contextmanager
def held(master, pids):
    """They stand still meanwhile, and so does their master, which would let them go on."""
    stopped = [master, *pids]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


@contextlib.contextmanager
def frozen(pid):
    """It stands still, and its master is not told. Needs root."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def ask(request):
        if ptrace(request, pid, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
    ask(PTRACE_SEIZE)
    ask(PTRACE_INTERRUPT)
    os.waitpid(pid, 0)  # until it stands
    try:
        yield
    finally:
        if alive(pid):
            ask(PTRACE_DETACH)


def reap():
    """Collect ended children we adopted."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def limit_address_space(pid, room):
    """Room in bytes above what is used now; None: the old limit again. As the process's own account,
    which needs no capability for it. False: it is gone."""
    uid = int((status(pid).get("Uid") or "0").split()[0])
    limits = read(pid, "limits").decode()
    hard = next((x.split()[4] for x in limits.splitlines() if x.startswith("Max address space")), "")
    if not hard:
        return False
    used = int(status(pid).get("VmSize", "0").split()[0]) << 10
    soft = hard if room is None else str(used + room)
    who = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 and uid else {}
    done = subprocess.run(["prlimit", "--pid", str(pid), "--as=%s:%s" % (soft, hard)],
                          capture_output=True, text=True, check=False, **who)
    assert done.returncode == 0 or not alive(pid), done.stderr
    return done.returncode == 0


def found_in_memory(pid, canaries):
    """Which of these stand somewhere in what this process may write? Needs root."""
    found = set()
    try:
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            areas = [line.split()[:2] for line in f]
        with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
            for area, rights in areas:
                if "rw" not in rights:
                    continue
                begin, end = (int(x, 16) for x in area.split("-"))
                try:
                    memory.seek(begin)
                    data = memory.read(end - begin)
                except (OSError, OverflowError):
                    continue
                found |= {c for c in canaries if c.encode() in data}
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        return set()  # not ours to read, or gone
    return found

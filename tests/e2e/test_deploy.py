"""An installation: programs found from anywhere, manual, units held against systemd's own tools."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

import harness
import process
from http_client import Connection, head
from launch_help import launch
from screen import Screen

pytestmark = pytest.mark.once
TOP = pathlib.Path(harness.TOP)
EXPOSURE_MOST = 15  # tenths, by systemd's own count


def need(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        pytest.skip("%s is not installed" % program)
    return path


def run(*argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **more)


@pytest.fixture(scope="module")
def installed():
    """Root of a staged installation; the prefix is below it."""
    meson = need("meson")
    top = tempfile.mkdtemp(prefix="ssebench-install-")
    os.chmod(top, 0o755)
    r = run(meson, "install", "-C", harness.BUILD, "--no-rebuild", "--destdir", top)
    assert r.returncode == 0, r.stdout + r.stderr
    found = list(pathlib.Path(top).rglob("bin/ssebench-webui"))
    assert len(found) == 1, found
    yield found[0].parents[1]
    shutil.rmtree(top)


def files(prefix, pattern):
    found = sorted(prefix.rglob(pattern))
    assert found, pattern
    return found


def test_installed_server_runs(installed, start, monkeypatch):
    """Also one that was moved after the build: the role programs are found beside it."""
    monkeypatch.setattr(harness, "SERVER", str(installed / "bin" / "ssebench-webui"))
    server = start()
    assert server.json("/api/health")["status"] == "ok"
    for pid in server.workers() + [server.broker()]:
        assert os.readlink("/proc/%d/exe" % pid).startswith(str(installed)), pid


def test_programs_are_not_to_be_read(installed):
    """tests/attack/test_peers.py says what that is good for."""
    programs = [installed / "bin/ssebench-webui", *files(installed / "libexec", "ssebench-webui-*")]
    assert len(programs) == 6
    assert {p: oct(p.stat().st_mode & 0o777) for p in programs} == {p: "0o711" for p in programs}


@pytest.mark.parametrize("section", ["1", "8"])
def test_manual_lists_every_setting_and_command(installed, section):
    page, = files(installed, "ssebench-webui.%s*" % section)
    r = run(need("man"), "--warnings", "-l", str(page), env={**os.environ, "MANWIDTH": "200"})
    assert r.returncode == 0 and r.stderr == "", r.stderr
    shown = re.sub(".\x08|\x1b\\[[0-9;]*m", "", r.stdout)
    names = re.findall(r"^\| `([^`]+)`", run(harness.SERVER, "--settings-markdown").stdout, re.M)
    assert len(names) > 20
    for name in names:
        assert name in shown, name
    for words in ("token add NAME --role", "token list", "token revoke NAME", "status [--json]",
                  "export --results DIR --out DIR", "--check", "--expires"):
        assert words in shown, words
    assert "@" not in re.sub(r"ssebench-webui@NAME|user@", "", shown), "everything was filled in"


def test_completion_offers_the_options(installed):
    script, = files(installed, "bash-completion/completions/ssebench-webui")
    r = run("bash", "-c", '. "$1"; COMP_WORDS=(ssebench-webui --ch); COMP_CWORD=1; '
            '_ssebench_webui; echo "${COMPREPLY[@]}"', "bash", str(script))
    assert r.stdout.strip() == "--check", r
    for words, wanted in (("token ''", "add list revoke"), ("token add x --role o", "operate"),
                          ("token add --", "--role --expires"), ("status -", "--json")):
        r = run("bash", "-c", '. "$1"; COMP_WORDS=(ssebench-webui %s); '
                'COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _ssebench_webui; echo "${COMPREPLY[@]}"'
                % words, "bash", str(script))
        assert r.stdout.strip() == wanted, (words, r)
    offered = run("bash", "-c", '. "$1"; COMP_WORDS=(ssebench-webui -); COMP_CWORD=1; '
                  '_ssebench_webui; echo "${COMPREPLY[@]}"', "bash", str(script)).stdout.split()
    for option in offered:
        assert option in run(harness.SERVER, "--help").stdout, option


def unit(installed, name, where):
    """A copy of an installed unit that names the staged program."""
    text = (installed / "lib/systemd" / where / name).read_text()
    text = re.sub(r"^ExecStart=\S+", "ExecStart=%s" % (installed / "bin/ssebench-webui"), text,
                  flags=re.M)
    path = installed / name.replace("@", "@one")
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["ssebench-webui.service", "ssebench-webui@.service"])
def test_system_units(installed, name):
    analyze = need("systemd-analyze")
    path = unit(installed, name, "system")
    r = run(analyze, "verify", "--man=no", path)
    assert r.returncode == 0 and r.stderr == "", r.stderr
    assert "\nRestrictSUIDSGID=yes" not in pathlib.Path(path).read_text(), "it takes openat2() away"
    r = run(analyze, "security", "--offline=true", "--threshold=%d" % EXPOSURE_MOST, path)
    assert r.returncode == 0, r.stdout


def test_namespaces_drop_in(installed):
    """What gives the workers their namespaces back is well formed, and rated as it says."""
    path = unit(installed, "ssebench-webui.service", "system")
    text, = files(installed, "examples/namespaces.conf")
    with open(path, "a", encoding="utf-8") as f:
        f.write(text.read_text())
    analyze = need("systemd-analyze")
    assert run(analyze, "verify", "--man=no", path).returncode == 0
    r = run(analyze, "security", "--offline=true", "--threshold=23", path)
    assert r.returncode == 0, r.stdout


def calls_of(path):
    """Names of the calls that a unit's SystemCallFilter= lines allow."""
    allowed = set()

    def expand(name):
        if not name.startswith("@"):
            return {name}
        listed = run("systemd-analyze", "syscall-filter", name).stdout.splitlines()[1:]
        found = [w.strip() for w in listed if w.strip() and not w.strip().startswith("#")]
        return set().union(*(expand(w) for w in found))
    lines = ["@default"] + re.findall(r"^SystemCallFilter=(.*)", pathlib.Path(path).read_text(), re.M)
    for line in lines:
        names = set().union(*(expand(w) for w in line.lstrip("~").split()))
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed


def test_server_under_the_units_filter(installed, start, place):
    """With the calls that the unit allows, as an ordinary account, and no namespaces: it starts,
    says what is missing, and lists, launches and opens shells."""
    need("systemd-analyze")
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another account")
    calls = calls_of(unit(installed, "ssebench-webui.service", "system"))
    assert len(calls) > 200 and not calls & {"chroot", "capset", "mount"}
    path = pathlib.Path(place.top, "calls")
    path.write_text("\n".join(calls))
    narrow = shutil.copy2(os.path.join(harness.BUILD, "tests/attack/narrow"), place.top)
    place.give_to(65534, 65534)
    server = start(uid=65534, under=[narrow, str(path)])
    fences = [line for line in server.out if line.startswith("[Server] Fences: ")][0]
    missing = fences.partition("missing: ")[2].partition("; broker")[0]
    assert "namespaces (" in missing and "account (" in missing and "empty-root (" in missing
    for fence in ("no-new-privs", "limits", "not-dumpable", "seccomp"):
        assert fence in fences.partition("; missing")[0], fences
    run_id = launch(server, "tinyjson-overflow-12", keepContainer=True)
    process.wait_for(lambda: [r for r in server.runs() if r["id"] == run_id and
                              r["status"] == "running"], 60, "the launched run")
    screen = Screen(server, "/api/pty/" + run_id)
    screen.type("echo shell-$((20+3))\r")
    screen.shows("shell-23")
    screen.close()
    assert server.post("/api/containers/%s/remove" % run_id).status == 200


def test_socket_unit(installed):
    unit(installed, "ssebench-webui.service", "system")
    shutil.copy(installed / "lib/systemd/system/ssebench-webui.socket", installed)
    r = run(need("systemd-analyze"), "verify", "--man=no",
            str(installed / "ssebench-webui.socket"))
    assert r.returncode == 0 and r.stderr == "", r.stderr


def test_user_unit(installed):
    path = unit(installed, "ssebench-webui.service", "user")
    runtime = tempfile.mkdtemp()
    r = run(need("systemd-analyze"), "--user", "verify", "--man=no", path,
            env={**os.environ, "XDG_RUNTIME_DIR": runtime})
    shutil.rmtree(runtime)
    assert r.returncode == 0 and r.stderr == "", r.stderr


def test_sysusers_and_tmpfiles(installed):
    root = tempfile.mkdtemp()
    try:
        os.mkdir(root + "/etc")
        r = run(need("systemd-sysusers"), "--root=" + root,
                str(files(installed, "sysusers.d/*.conf")[0]))
        assert r.returncode == 0, r.stderr
        assert "ssebench-webui" in pathlib.Path(root, "etc/passwd").read_text()
        if os.geteuid() != 0:
            pytest.skip("tmpfiles need root, to give a folder away")
        r = run(need("systemd-tmpfiles"), "--create", "--root=" + root,
                str(files(installed, "tmpfiles.d/*.conf")[0]))
        assert r.returncode == 0, r.stderr
        assert os.stat(root + "/etc/ssebench-webui").st_mode & 0o7777 == 0o750
    finally:
        shutil.rmtree(root)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_socket_activation_and_notification(installed, place):
    """What the units rely on, by systemd's own tool: a handed socket, READY=1, STOPPING=1."""
    activate = need("systemd-socket-activate")
    port = free_port()
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(place.top + "/notify")
    manager.settimeout(30)
    env = place.env()
    passed = ["--setenv=%s=%s" % kv for kv in env.items()] + [
        "--setenv=NOTIFY_SOCKET=" + place.top + "/notify", "--setenv=WATCHDOG_USEC=2000000",
        "--setenv=SSEBENCH_WEBUI_WORKERS=2"]
    p = subprocess.Popen([activate, "-l", "127.0.0.1:%d" % port, *passed,
                          str(installed / "bin/ssebench-webui")], cwd=place.checkout, env=env,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    try:
        process.wait_for(lambda: b"Listening" in p.stderr.readline(), what="the socket")
        with Connection(("127.0.0.1", port), 30) as c:
            c.send(head("GET", "/api/health", [("Host", "127.0.0.1:%d" % port),
                                               ("Connection", "close")]))
            assert c.response("GET").json()["status"] == "ok"
        said = [manager.recv(4096), manager.recv(4096)]
        assert b"READY=1" in said[0] and b"WATCHDOG=1" in said[1], said
        p.send_signal(signal.SIGHUP)
        said = []
        while not said or said[-1] != b"READY=1":
            said.append(manager.recv(4096))
        assert any(s.startswith(b"RELOADING=1") for s in said), said
        p.send_signal(signal.SIGTERM)
        while manager.recv(4096) != b"STOPPING=1":
            pass
        assert p.wait(30) == 0
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
        p.stderr.close()
        manager.close()


def test_purge_forgets_tokens(tmp_path):
    """Those of ssebench-webui@NAME as well; what is no token is left to whoever wrote it."""
    script = (TOP / "deploy/debian/postrm").read_text(encoding="ascii")
    etc = tmp_path / "etc"
    for kept in ((), ("two.conf",)):
        etc.mkdir()
        for name in ("token", "tokens", ".tokens.lock", ".tokens.new", "two.token", "two.tokens",
                     *kept):
            (etc / name).touch()
        done = run("sh", "-c", script.replace("/etc/ssebench-webui", str(etc)), "postrm", "purge")
        assert done.returncode == 0, done.stderr
        assert (sorted(os.listdir(etc)) if etc.exists() else None) == (list(kept) or None)


# What tools/prepare.sh installs packages with, but for a file that a test may write.
INSTALL = """. "$0/tools/prepare.sh"
policy=$1
as_root() { "$@"; }
shift
without_services "$@"
"""


@pytest.mark.parametrize("sent", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
def test_interrupted_install_allows_services_again(tmp_path, sent):
    policy = tmp_path / "policy-rc.d"
    with subprocess.Popen(["sh", "-uc", "top=$0\n" + INSTALL, TOP, policy, "sleep", "300"],
                          start_new_session=True) as installing:
        process.wait_for(policy.exists, 20, "services are forbidden")
        os.killpg(installing.pid, sent)
        installing.wait(20)
    process.wait_for(lambda: not policy.exists(), 20, "services are allowed again")


def test_install_and_services(tmp_path):
    """Forbidden while it runs, its status is told, and what somebody else forbade stays."""
    policy = tmp_path / "policy-rc.d"
    argv = ["sh", "-uc", "top=$0\n" + INSTALL, TOP, policy, policy]
    assert run(*argv).returncode == 101 and not policy.exists()
    policy.write_text("#!/bin/sh\nexit 102\n")
    policy.chmod(0o755)
    assert run(*argv).returncode == 102 and policy.exists()

"""The Debian package: built from the release's tarball without npm by Debian's own tools, on Debian
12 and 13; then installed, asked, upgraded, removed and purged in folders that hold nothing else."""
import glob
import os
import re
import shutil
import signal
import tarfile

import process
import systemd_cases
from folder import Folder
from http_client import Connection, head
from report import Skip, case, must, same

RELEASE = "/opt/release.tar.gz"
PORT = 3999
OURS = re.compile(r"ssebench")
# Compilations are the same in every run.
CCACHE = {"CCACHE_DIR": "/tmp/ccache", "CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": "/tmp",
          "TMPDIR": "/tmp"}
SERVER = {"SSEBENCH_WEBUI_TOKEN_FILE": "/etc/ssebench-webui/token", "PORT": str(PORT),
          "SSEBENCH_WEBUI_STATE_DIR": "/var/lib/ssebench-webui/launches",
          "SSEBENCH_WEBUI_USER": "ssebench-webui", "SSEBENCH_PATH": "/srv/ssebench",
          "SSEBENCH_CLI": "/bin/false"}


def release_file(name):
    with tarfile.open(RELEASE) as tar:
        top = tar.getnames()[0].split("/")[0]
        return tar.extractfile(top + "/" + name).read()


class Package:
    """One Debian release's package on its way. `deb` is None until it is built."""

    def __init__(self, number):
        self.number, self.deb, self.out = number, None, "/tmp/deb%d" % number
        self.server = None

    def build(self):
        os.makedirs(self.out)
        folder = Folder("build%d" % self.number) if self.number != 13 else None
        command = ["/tmp/build", "/tmp/out", "/tmp/release.tar.gz"]
        try:
            tmp = folder.path("/tmp") if folder else "/tmp"
            os.makedirs("/var/lab/ccache%d" % self.number, exist_ok=True)
            os.makedirs(tmp + "/ccache", exist_ok=True)
            must(["mount", "--bind", "/var/lab/ccache%d" % self.number, tmp + "/ccache"])
            shutil.copy("/src/deploy/debian/build", tmp + "/build")
            shutil.copy(RELEASE, tmp + "/release.tar.gz")
            if folder:
                assert folder.try_run("sh", "-c", "command -v npm || command -v node")[0] != 0
                folder.run(*command, env=CCACHE)
            else:
                assert shutil.which("npm") is None and shutil.which("node") is None
                must(command, env=CCACHE, timeout=900)
            self.lint(folder)
            for path in glob.glob(tmp + "/out/*"):
                shutil.copy(path, self.out)
        finally:
            must(["umount", tmp + "/ccache"])
            shutil.rmtree(tmp + "/out", ignore_errors=True)
            if folder:
                folder.close()
        self.deb, = [p for p in glob.glob(self.out + "/*.deb") if "dbgsym" not in p]

    def lint(self, folder):
        argv = ["sh", "-c", "lintian --tag-display-limit 0 --fail-on error,warning /tmp/out/*.changes"]
        if folder:
            folder.run(*argv)
        else:
            must(argv)

    def install(self, deb):
        shutil.copy(deb, self.folder.path("/tmp/new.deb"))
        self.folder.run("dpkg", "--install", "/tmp/new.deb")

    def get(self, path, **headers):
        with Connection(("127.0.0.1", PORT)) as c:
            c.send(head("GET", path, {"Host": "127.0.0.1:%d" % PORT, "Connection": "close",
                                      **headers}.items()))
            return c.response()

    def token(self):
        with open(self.folder.path("/etc/ssebench-webui/token"), encoding="ascii") as f:
            return f.read().strip()

    def start(self):
        self.server = self.folder.start("/usr/bin/ssebench-webui", env=SERVER)
        for line in self.server.stdout:
            if b"Listening on" in line:
                return
        raise AssertionError("it does not start")

    def stop(self):
        if self.server is None:
            return
        self.server.send_signal(signal.SIGTERM)
        same(self.server.wait(40), 0, "status at the end")
        self.server.stdout.close()
        self.server = None

    def answers(self):
        same((self.get("/healthz").status, self.get("/api/health").status), (200, 401), "status")
        same(self.get("/api/health", Authorization="Bearer " + self.token()).status, 200, "token")
        same(self.get("/").body.split(b"<script")[-1],
             release_file("worker/web/page/index.html").split(b"<script")[-1], "the page")


def builds(package):
    if not os.path.exists(RELEASE):
        raise Skip("no tarball: this tree is no git repository")
    package.build()


def installs(package):
    package.folder = Folder("fresh%d" % package.number)
    package.before = package.folder.files()
    package.install(package.deb)
    mode = os.stat(package.folder.path("/etc/ssebench-webui/token")).st_mode & 0o7777
    same((oct(mode), len(package.token())), ("0o600", 64), "the token")
    programs = [package.folder.path("/usr/bin/ssebench-webui"),
                *glob.glob(package.folder.path("/usr/libexec/ssebench-webui") + "/*")]
    same({oct(os.stat(p).st_mode & 0o7777) for p in programs}, {"0o711"}, "the programs' mode")
    state, checkout = (package.folder.path(p) for p in ("/var/lib/ssebench-webui", "/srv/ssebench"))
    for path in (state, checkout):
        os.makedirs(path, exist_ok=True)
    package.folder.run("chown", "ssebench-webui:", "/var/lib/ssebench-webui")
    package.start()
    package.answers()
    uids = {process.status(p)["Uid"].split()[0] for p in process.children(package.server.pid)}
    account = package.folder.run("id", "-u", "ssebench-webui").strip()
    same(uids, {account}, "whose processes")


def upgrades(package):
    """Over a running server, which goes on; the next start is the new one's."""
    token = package.token()
    unpacked, newer = package.out + "/new", package.out + "/new.deb"
    must(["dpkg-deb", "--raw-extract", package.deb, unpacked])
    control = unpacked + "/DEBIAN/control"
    with open(control, encoding="utf-8") as f:
        text = f.read()
    with open(control, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^Version: .*", "Version: 1:9", text, flags=re.M))
    must(["dpkg-deb", "--root-owner-group", "--build", unpacked, newer])
    package.install(newer)
    same(package.folder.run("dpkg-query", "-W", "-f", "${Version} ${db:Status-Abbrev}",
                            "ssebench-webui").strip(), "1:9 ii", "installed")
    package.answers()
    package.stop()
    package.start()
    package.answers()
    same(package.token(), token, "the token")
    package.stop()


def left(package):
    now = package.folder.files()
    return {p for p in now if p not in package.before and not p.startswith(
        ("/var/lib/dpkg/", "/var/log/", "/var/cache/"))}


def removes(package):
    """Programs go, settings stay; purged, the state stays with the account that owns it."""
    package.folder.run("dpkg", "--remove", "ssebench-webui")
    stays = left(package)
    assert "/etc/ssebench-webui/token" in stays, stays
    same({p for p in stays if p.startswith("/usr")}, set(), "programs")
    package.folder.run("touch", "/etc/ssebench-webui/two.token", "/etc/ssebench-webui/two.tokens")
    package.folder.run("dpkg", "--purge", "ssebench-webui")
    stays = {p for p in left(package) if OURS.search(p) and not p.startswith("/srv/")}
    same({p for p in stays if not p.startswith("/var/lib/ssebench-webui")}, set(), "left")
    assert "/var/lib/ssebench-webui" in stays
    package.folder.run("id", "ssebench-webui")
    others = {p for p in left(package) if not OURS.search(p)}
    same(others - {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-",
                   "/etc/subuid-", "/etc/subgid-", "/etc/.pwd.lock"}, set(), "others' files")


def cases(numbers=(12, 13)):
    for number in numbers:
        package = Package(number)
        name = "debian%d package: " % number
        case(name + "built from the tarball without npm, lintian content", builds, package)
        if package.deb is None:
            continue
        package.folder = None
        try:
            case(name + "installed in a fresh folder, it serves the tarball's page", installs, package)
            case(name + "upgraded under a running server", upgrades, package)
            case(name + "removed, purged, and what stays", removes, package)
        finally:
            if package.server is not None:
                package.server.kill()
                package.server.wait()
            if package.folder is not None:
                package.folder.close()
        if number == 13:
            systemd_cases.cases(package.deb)

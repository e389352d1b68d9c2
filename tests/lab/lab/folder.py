"""A throw-away copy of a prepared Debian folder: what is done in it is gone afterwards."""
import os
import subprocess
import tempfile

from report import call, must

FOLDERS = "/var/lab/folders"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}


class Folder:
    """An overlay whose changes lie in memory."""

    def __init__(self, name):
        self.place = tempfile.mkdtemp(prefix="folder-")
        self.top = os.path.join(self.place, "top")
        for below in ("top", "upper", "work"):
            os.mkdir(os.path.join(self.place, below), 0o755)
        must(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s/%s,upperdir=%s/upper,"
              "workdir=%s/work" % (FOLDERS, name, self.place, self.place), self.top])
        must(["mount", "-t", "proc", "proc", self.top + "/proc"])
        must(["mount", "--rbind", "/dev", self.top + "/dev"])
        for below in ("run", "tmp"):
            must(["mount", "-t", "tmpfs", "tmpfs", os.path.join(self.top, below)])

    def path(self, inside):
        return self.top + inside

    def argv(self, argv, env=None):
        words = ["%s=%s" % kv for kv in {**ENVIRONMENT, **(env or {})}.items()]
        return ["chroot", self.top, "env", "-i", *words, *argv]

    def run(self, *argv, env=None, timeout=900):
        return must(self.argv(argv, env), timeout=timeout)

    def try_run(self, *argv):
        return call(self.argv(argv))

    def start(self, *argv, env=None):
        return subprocess.Popen(self.argv(argv, env), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def files(self):
        """Path -> mode, owner and content's size of all but what is mounted."""
        found = {}
        for folder, below, names in os.walk(self.top):
            if folder == self.top:
                below[:] = sorted(set(below) - {"proc", "dev", "run", "tmp", "sys"})
            for name in below + names:
                path = os.path.join(folder, name)
                s = os.lstat(path)
                found[path[len(self.top):]] = (s.st_mode, s.st_uid, s.st_gid)
        return found

    def unmount_below(self):
        """Only the folder itself is left, for something that mounts its own."""
        for below in ("run", "tmp", "dev", "proc"):
            must(["umount", "--recursive", os.path.join(self.top, below)])

    def close(self):
        must(["umount", "--recursive", self.top])
        must(["rm", "-rf", self.place])

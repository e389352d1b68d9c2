"""An image with what people run in a terminal: programs of this Debian, with what they load."""
import os
import re
import shutil
import subprocess

from report import must

IMAGE = "lab/terminal:1"
PROGRAMS = {"bash": "/bin/bash", "vim": "/usr/bin/vim.tiny", "less": "/usr/bin/less",
            "tmux": "/usr/bin/tmux", "htop": "/usr/bin/htop", "top": "/usr/bin/top",
            "tput": "/usr/bin/tput", "seq": "/usr/bin/seq"}
APPLETS = ("sh", "sleep", "cat", "tr", "grep", "mkdir", "rm", "rmdir", "kill", "stty", "yes",
           "env", "ps", "id", "printf", "head", "ls", "od", "wc", "dd", "setsid", "nohup", "touch")
TREES = ("/usr/share/terminfo", "/usr/lib/terminfo", "/usr/lib/locale/C.utf8")
# The size at the very beginning, before anything could have changed it.
BASHRC = "echo first=$(stty size)=\nPS1='lab# '\nHISTFILE=\n"


def libraries(path):
    return re.findall(r"(/\S+) \(0x", must(["ldd", path]))


def put(place, path, name):
    target = place + name
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.exists(target):
        shutil.copy2(path, target)  # what a link leads to


def fill(place):
    for folder in ("bin", "root", "tmp", "etc"):
        os.makedirs(os.path.join(place, folder))
    put(place, "/usr/bin/busybox", "/bin/busybox")
    for name in APPLETS:
        os.symlink("busybox", os.path.join(place, "bin", name))
    for name, path in PROGRAMS.items():
        put(place, path, "/bin/" + name)
        for library in libraries(path):
            put(place, library, library)
    for tree in TREES:
        if os.path.isdir(tree):
            shutil.copytree(tree, place + tree, symlinks=True)
    for path, text in (("/etc/passwd", "root:x:0:0::/root:/bin/bash\n"), ("/root/.bashrc", BASHRC),
                       ("/root/.vimrc", "set nocompatible encoding=utf-8\n")):
        with open(place + path, "w", encoding="utf-8") as f:
            f.write(text)


def make(place="/tmp/terminal-image"):
    fill(place)
    tar = subprocess.Popen(["tar", "-C", place, "-c", "."], stdout=subprocess.PIPE)
    p = subprocess.run(["docker", "import", "--change", "ENV PATH=/bin", "-", IMAGE],
                       stdin=tar.stdout, capture_output=True, timeout=120)
    tar.wait()
    if p.returncode != 0:
        raise AssertionError("docker import: " + p.stderr.decode("utf-8", "replace"))

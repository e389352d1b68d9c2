"""A copy of the programs whose worker and broker are started with a library of ours, and the
mapped file by which a test tells that library what to do."""
import mmap
import os
import shutil

import harness


class Preloaded:
    def __init__(self, place, library, variable, size=64):
        self.top = os.path.join(place.top, "installed")
        path = os.path.join(place.top, "orders")
        with open(path, "wb") as f:
            f.write(bytes(size))
        os.chmod(path, 0o666)  # workers started by root are another account's
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), size)
        self.env = {"LD_PRELOAD": os.path.join(harness.BUILD, "tests", "attack", library),
                    variable: path}
        for role in (".", "worker", "broker"):
            os.makedirs(os.path.join(self.top, role), exist_ok=True)
            for name in os.listdir(os.path.join(harness.BUILD, role)):
                source = os.path.join(harness.BUILD, role, name)
                if name.startswith("ssebench-webui") and os.path.isfile(source):
                    shutil.copy2(source, os.path.join(self.top, role, name))
        # A worker's environment is empty: a script in its place sets what is needed.
        for role in ("worker", "broker"):
            program = os.path.join(self.top, role, "ssebench-webui-" + role)
            os.rename(program, program + ".real")
            with open(program, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\nexport %s\nexec %s.real \"$@\"\n" % (
                    " ".join("%s=%s" % kv for kv in self.env.items()), program))
            os.chmod(program, 0o755)
        self.program = os.path.join(self.top, "ssebench-webui")

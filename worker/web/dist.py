#!/usr/bin/env python3
"""For `meson dist`: the built page goes into the tarball, so that building from it needs no npm.
dist.py PAGE TARGET: the folder of the page; what ninja makes to bring it up to date, if anything."""

import os
import pathlib
import shutil
import subprocess
import sys


def main():
    page, targets = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if targets:
        subprocess.run(["ninja", "-C", os.environ["MESON_BUILD_ROOT"], *targets], check=True)
    into = pathlib.Path(os.environ["MESON_DIST_ROOT"], "worker", "web", "page")
    shutil.copytree(page, into, ignore=shutil.ignore_patterns("*.map"))


if __name__ == "__main__":
    main()

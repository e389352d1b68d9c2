#!/usr/bin/env python3
"""Build the page if asked to, then turn its files into a table (C) and bytes (assembler)."""

import argparse
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
# A name as the bundler writes it: something, a hash of at least six characters, a suffix.
HASHED = re.compile(r"^/assets/.+[-.][A-Za-z0-9_-]{6,}\.[a-z0-9]+$")
SAFE = re.compile(r"^/[A-Za-z0-9._/-]+$")


def collect(dist):
    """All files of the page, refused unless each one's type and name are known."""
    if not (dist / "index.html").is_file():
        sys.exit(f"{dist}: no index.html: is the page built?")
    for path in dist.rglob("*"):
        if path.is_dir() or path.suffix == ".map":
            continue
        name = "/" + path.relative_to(dist).as_posix()
        if path.suffix not in TYPES or not SAFE.match(name):
            sys.exit(f"{path}: a kind of file that the server has no content type for")
        yield name, path


def compress(data):
    """The gzip form, the same for the same input; None if it saves less than a tenth."""
    packed = gzip.compress(data, 9, mtime=0)
    return packed if len(packed) < len(data) * 0.9 else None


def build(web, out):
    """Run the page's own build, into a folder of this build."""
    if shutil.which("npm") is None:
        sys.exit("the page needs npm (or give a built one: meson setup -Dpage=FOLDER)")
    if not (web / "node_modules").is_dir():
        sys.exit(f"{web}/node_modules is missing: run `npm ci` in {web} (tools/run does it)")
    done = subprocess.run(
        ["npm", "run", "--silent", "build", "--", str(out.resolve())],
        cwd=web,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        sys.exit(f"the page's build failed with status {done.returncode}")
    return out


def describe(web, out):
    """protocol.json, against which the server's tests check what the server says."""
    subprocess.run(["node", "build.mjs", "--protocol", str(out.resolve())], cwd=web, check=True)


def sources(web):
    """What the page is made of, folders too: a new file changes its folder's time."""
    for folder, folders, files in os.walk(web):
        folders[:] = sorted(set(folders) - {"node_modules", "dist", "__pycache__"})
        yield pathlib.Path(folder)
        for name in sorted(files):
            yield pathlib.Path(folder) / name


def write_embedded(assets, args):
    """Write the table and the assembler file."""
    rows, externs = [], []
    # Without the note of cet.h the linker takes the mark for control-flow protection away.
    blobs = ["#ifdef __CET__\n#include <cet.h>\n#endif\n", '    .section .rodata.page, "a"\n']

    def embed(symbol, data):
        path = args.work / symbol
        path.write_bytes(data)
        externs.append(f"extern const unsigned char {symbol}[], {symbol}_end[];\n")
        blobs.append(
            f"    .balign 16\n    .globl {symbol}, {symbol}_end\n"
            f"    .hidden {symbol}, {symbol}_end\n"
            f'{symbol}:\n    .incbin "{path.resolve()}"\n{symbol}_end:\n    .byte 0\n'
        )

    for number, (name, path) in enumerate(sorted(assets)):
        data = path.read_bytes()
        etag = hashlib.sha256(data).hexdigest()[:20]
        embed(f"page_{number}", data)
        packed = compress(data)
        gzip_columns = "NULL, NULL"
        if packed is not None:
            embed(f"page_{number}_gz", packed)
            gzip_columns = f"page_{number}_gz, page_{number}_gz_end"
        immutable = "true" if HASHED.match(name) else "false"
        rows.append(
            f'    {{"{name}", "{TYPES[path.suffix]}", "\\"{etag}\\"", '
            f"page_{number}, page_{number}_end,\n     {gzip_columns}, {immutable}}},\n"
        )

    args.table.write_text(
        "/* Made by worker/web/embed.py. */\n"
        '#include "worker/page_assets.h"\n\n'
        + "".join(externs)
        + "\nconst struct page_asset page_assets[] = {\n"
        + "".join(rows)
        + f"}};\nconst size_t n_page_assets = {len(rows)};\n"
    )
    blobs.append('    .section .note.GNU-stack, "", %progbits\n')
    args.bytes.write_text("".join(blobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=pathlib.Path, help="a page that is already built")
    parser.add_argument("--web", type=pathlib.Path, help="build the page in this folder")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--depfile", type=pathlib.Path, required=True)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("bytes", type=pathlib.Path)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)

    if args.dist is not None:
        assets = list(collect(args.dist))
        inputs = [path for _, path in assets]
        write_embedded(assets, args)
    else:
        inputs = list(sources(args.web))
        write_embedded(collect(build(args.web, args.work / "dist")), args)
        describe(args.web, args.work)
    names = " ".join(str(path.resolve()).replace(" ", "\\ ") for path in inputs)
    args.depfile.write_text(f"{args.table} {args.bytes}: {names}\n")


if __name__ == "__main__":
    main()

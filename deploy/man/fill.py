"""Fills a manual page's template: fill.py TEMPLATE OUTPUT VERSION SERVER."""
import subprocess
import sys

template, output, version, server = sys.argv[1:]
settings = subprocess.run([server, "--settings-man"], check=True, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL).stdout
with open(template, encoding="utf-8") as f:
    page = f.read()
with open(output, "w", encoding="utf-8") as f:
    f.write(page.replace("@VERSION@", version).replace("@SETTINGS@\n", settings))

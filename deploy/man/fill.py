"""Fills a manual page's template: fill.py TEMPLATE OUTPUT VERSION SERVER. What both pages say of
options and commands stands beside the template, the settings in the server itself."""
import os
import subprocess
import sys

template, output, version, server = sys.argv[1:]


def beside(name):
    with open(os.path.join(os.path.dirname(template), name), encoding="utf-8") as part:
        return part.read()


settings = subprocess.run([server, "--settings-man"], check=True, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL).stdout
with open(template, encoding="utf-8") as f:
    page = f.read()
for name, text in (("SETTINGS", settings), ("OPTIONS", beside("options.in")),
                   ("COMMANDS", beside("commands.in"))):
    page = page.replace("@%s@\n" % name, text)
with open(output, "w", encoding="utf-8") as f:
    f.write(page.replace("@VERSION@", version))

"""The README's settings table is the program's own."""
import pathlib
import subprocess

import harness

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_settings_table_is_generated():
    readme = (TOP / "README.md").read_text()
    table = readme.split("tests compare the two -->\n")[1].split("<!-- end of settings -->")[0]
    made = subprocess.run([harness.SERVER, "--settings-markdown"], capture_output=True,
                          text=True, check=True, stdin=subprocess.DEVNULL).stdout
    assert table == made, "paste `ssebench-webui --settings-markdown` into README.md"

#!/usr/bin/python3
"""Adds up the reports of tools/test: names what was skipped and failed, counts, decides."""
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []


def add_units(path, count):
    with open(path, encoding="utf-8") as f:
        for line in f:
            test = json.loads(line)
            name = "unit " + test["name"]
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                count.passed += 1
            elif test["result"] == "SKIP":
                count.skipped.append((name, "the test asked for it"))
            else:
                count.failed.append((name, test["result"]))


def add_suite(path, count):
    suite = os.path.splitext(os.path.basename(path))[0]
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except ElementTree.ParseError:
        cases = []
    if not cases:
        count.failed.append((suite, "no test ran"))
    for case in cases:
        name = "%s %s.%s" % (suite, case.get("classname"), case.get("name"))
        wrong = [e for e in case if e.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if wrong:
            count.failed.append((name, (wrong[0].get("message") or "").split("\n")[0][:200]))
        elif skipped is not None:
            count.skipped.append((name, skipped.get("message") or ""))
        else:
            count.passed += 1


def add_lines(path, count):
    suite = os.path.splitext(os.path.basename(path))[0]
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = re.match(r"(PASS|FAIL|SKIP) ([^:\n]*):? ?(.*)", line)
            if not m:
                continue
            name = suite + " " + m.group(2)
            if m.group(1) == "PASS":
                count.passed += 1
            elif m.group(1) == "FAIL":
                count.failed.append((name, m.group(3)))
            else:
                count.skipped.append((name, m.group(3)))


def main():
    folder, count = sys.argv[1], Count()
    for name in sorted(os.listdir(folder)):
        add = {".json": add_units, ".xml": add_suite, ".txt": add_lines}[
            os.path.splitext(name)[1]]
        add(os.path.join(folder, name), count)
    for name, reason in count.skipped:
        print("skipped: %s: %s" % (name, reason))
    for name, reason in count.failed:
        print("failed: %s: %s" % (name, reason))
    print("%d passed, %d failed, %d skipped"
          % (count.passed, len(count.failed), len(count.skipped)))
    return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())

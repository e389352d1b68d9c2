"""`ssebench doctor`: the report of contract 3 about the working directory."""
import os
import shutil

from . import checkout
from .options import Usage, parse
from .runs import print_json


def main(argv):
    options, words, _ = parse(argv, (), ("json", "verify-keys"))
    if words:
        raise Usage("unrecognized arguments: %s" % " ".join(words))
    home = os.path.isdir("models") and os.path.isdir("agents")
    models = model_keys() if home else {}
    checks = report(home, models)
    if options.get("json"):
        print_json({"checks": checks, "models": models}, indent=2)
    else:
        for c in checks:
            print("[%s] %s: %s" % (c["status"], c["name"], c["detail"]))
    return 1 if any(c["status"] == "fail" for c in checks) else 0


def model_keys():
    have = checkout.dotenv()
    return {name: {"keys": keys, "missing": [k for k in keys if not have.get(k)]}
            for name, keys in checkout.models().items()}


def report(home, models):
    def row(name, status, detail, fix=""):
        return {"name": name, "status": status, "detail": detail, "fix": fix}

    engine = [row("Docker", "ok", "stand-in: runs are local processes"),
              row("buildx", "ok", "stand-in"), row("Compose", "ok", "stand-in"),
              row("CPU", "ok", "%d cores" % (os.cpu_count() or 1))]
    if not home:
        return engine + [row("SSEBench home", "fail", "no models/ and agents/ here",
                             "run this in a checkout")]
    free = shutil.disk_usage(".").free // 2**30
    missing = sorted({k for m in models.values() for k in m["missing"]})
    there = os.path.isfile(".env")
    return [row("SSEBench home", "ok", os.getcwd()), *engine,
            row("Disk", "fail" if free < 10 else "warn" if free < 50 else "ok",
                "%d GiB free" % free, "free some space" if free < 50 else ""),
            row(".env", "ok" if there else "warn", "found" if there else "not found",
                "" if there else "copy .env.example to .env"),
            row("LiteLLM", "ok", "stand-in"),
            row("Provider keys", "warn" if missing else "ok",
                "missing: " + ", ".join(missing) if missing else "all there",
                "add them to .env" if missing else "")]

"""The lab's cases, in order; with arguments only those groups. Runs as root of the Debian 13
folder, tree at /src."""
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "e2e")]
BUILD = "/var/lab/build"
os.environ["SSEBENCH_BUILD"] = BUILD

import build  # noqa: E402
import report  # noqa: E402


def own_server():
    if not build.cases(BUILD):
        return
    import containers
    import launch_cases
    import real_run
    import results
    import standin_cases
    import terminal_cases
    results.cases()
    launch_cases.cases()
    with containers.Docker() as docker:
        containers.cases(docker)
        standin_cases.cases(docker)
        terminal_cases.cases(docker)
        real_run.cases(docker)


def live():
    import containers
    import live_cases
    build.compiles(BUILD)
    with containers.Docker() as docker:
        live_cases.cases(docker)


def packages():
    import package_cases
    package_cases.cases()


def image():
    import containers
    import image_cases
    with containers.Docker() as docker:
        image_cases.cases(docker)


GROUPS = {"server": own_server, "live": live, "packages": packages, "image": image}


def main():
    for name in sys.argv[1:] or GROUPS:
        try:
            GROUPS[name]()
        except Exception:  # the other groups go on
            traceback.print_exc()
            report.failed += 1
            print("FAIL group %s: ended early, see above" % name, flush=True)
    return 1 if report.failed else 0


sys.exit(main())

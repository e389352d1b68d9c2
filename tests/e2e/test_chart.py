"""The Helm chart: what its manifests say, over a matrix of values. Needs helm, skipped without."""
import os
import pathlib
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.once
CHART = pathlib.Path(harness.TOP, "deploy", "helm", "ssebench-webui")
GOLDEN = pathlib.Path(harness.TOP, "tests", "data", "helm")
HELM = os.environ.get("HELM") or shutil.which("helm")

MATRIX = {
    "default": [],
    "operate": ["webui.hosted=false", "webui.terminal=true", "auth.existingSecret=mine",
                "runs.namespace=bench-runs"],
    "public": ["auth.existingSecret=mine", "webui.replicas=3", "webui.basePath=/bench",
               "ingress.enabled=true", "ingress.host=bench.example.org",
               "ingress.tlsSecret=bench-tls", "webui.corsOrigins={https://bench.example.org}",
               "persistence.enabled=true", "persistence.accessMode=ReadWriteMany"],
}
REFUSED = {
    "replicas that launch": ["webui.hosted=false", "webui.replicas=2"],
    "a wildcard origin": ["webui.corsOrigins={*}"],
    "an unknown value": ["webui.host=0.0.0.0"],
    "a word for a switch": ["webui.hosted=maybe"],
    "a base path without a slash": ["webui.basePath=bench"],
    "an ingress without a host": ["ingress.enabled=true"],
}


def helm(*argv):
    if HELM is None:
        pytest.skip("helm is not installed")
    home = os.environ.get("HOME", "/")
    return subprocess.run([HELM, *argv], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "HOME": home})


def template(values):
    sets = [word for v in values for word in ("--set", v)]
    return helm("template", "bench", str(CHART), "--namespace", "bench", *sets)


def test_lint():
    r = helm("lint", "--strict", str(CHART))
    assert r.returncode == 0, r.stdout + r.stderr


@pytest.mark.parametrize("name", MATRIX)
def test_golden(name):
    """HELM_GOLDEN=1 writes the files anew."""
    r = template(["auth.existingSecret=mine"] + MATRIX[name] if name == "default" else MATRIX[name])
    assert r.returncode == 0, r.stderr
    path = GOLDEN / (name + ".yaml")
    if os.environ.get("HELM_GOLDEN"):
        path.write_text(r.stdout)
    assert r.stdout == path.read_text(), "see HELM_GOLDEN"


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_refused(values):
    assert template(values).returncode != 0


def test_defaults_are_the_security_models():
    text = template([]).stdout
    assert '{name: SSEBENCH_WEBUI_HOSTED, value: "1"}' in text
    assert '{name: SSEBENCH_WEBUI_TERMINAL, value: "0"}' in text
    assert "LITELLM_MASTER_KEY" not in text and "pods/exec" not in text and "create, get" not in text
    assert "kind: Secret" in text and "kind: NetworkPolicy" in text and "runAsNonRoot: true" in text
    assert "docker.sock" not in text


def test_terminal_needs_a_server_that_is_not_hosted():
    assert '{name: SSEBENCH_WEBUI_TERMINAL, value: "0"}' in template(["webui.terminal=true"]).stdout
    assert '{name: SSEBENCH_WEBUI_TERMINAL, value: "1"}' in template(
        ["webui.terminal=true", "webui.hosted=false"]).stdout

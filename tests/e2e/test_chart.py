"""The Helm chart: what its manifests say, over a matrix of values. Needs what tools/chart-tools gets;
skipped by name without."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.once
CHART = pathlib.Path(harness.TOP, "deploy", "helm", "ssebench-webui")
GOLDEN = pathlib.Path(harness.TOP, "tests", "data", "helm")
TOOLS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "ssebench-webui", "chart")
SEARCHED = "%s:%s" % (TOOLS, os.environ.get("PATH", ""))
HELM = os.environ.get("HELM") or shutil.which("helm", path=SEARCHED)
KUBECONFORM = shutil.which("kubeconform", path=SEARCHED)
# The oldest and the newest release that the schemas are for.
KUBERNETES = ["1.27.0", "1.37.0"]

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


def conform(release, manifests):
    if KUBECONFORM is None or not (TOOLS / "schemas").is_dir():
        pytest.skip("kubeconform or the schemas of Kubernetes are missing: tools/chart-tools")
    where = "%s/schemas/{{.NormalizedKubernetesVersion}}/{{.ResourceKind}}{{.KindSuffix}}.json" % TOOLS
    return subprocess.run([KUBECONFORM, "-strict", "-summary", "-output", "json",
                           "-kubernetes-version", release, "-schema-location", where],
                          input=manifests, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("release", KUBERNETES)
@pytest.mark.parametrize("name", MATRIX)
def test_manifests_are_what_kubernetes_reads(name, release):
    manifests = template(MATRIX[name]).stdout
    r = conform(release, manifests)
    counts = json.loads(r.stdout)["summary"]
    assert r.returncode == 0, r.stdout + r.stderr
    assert counts["valid"] == len(re.findall(r"^kind: ", manifests, re.M)) > 5, counts


@pytest.mark.parametrize("wrong", [("readOnlyRootFilesystem:", "readOnlyRootFileSystem:"),
                                   ("replicas: 1", "replicas: one")], ids=["a key", "a value"])
def test_what_kubernetes_refuses_is_found(wrong):
    manifests = template([]).stdout
    assert wrong[0] in manifests
    assert conform(KUBERNETES[-1], manifests.replace(*wrong)).returncode == 1


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

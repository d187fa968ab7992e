"""The manifests for Kubernetes: rendered by kustomize, valid by its schemas, consistent, and accepted by the server."""

import base64
import os
import re
import subprocess

import kubernetes_validate
import pytest
import yaml

from stack import DEPLOY, ROLES, run

KUSTOMIZE = os.environ.get("KUSTOMIZE")
PROBES = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
COMPONENT = "app.kubernetes.io/component"

pytestmark = pytest.mark.skipif(not KUSTOMIZE, reason="no kustomize could be built on this machine")


@pytest.fixture(scope="module")
def objects():
    """Everything that the example makes of the base, by kind and name."""
    rendered = run([KUSTOMIZE, "build", str(DEPLOY / "kustomize" / "example")])
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(rendered)}


def of_kind(objects, *kinds):
    return {name: one for (kind, name), one in objects.items() if kind in kinds}


def pods(objects):
    """The template of each workload."""
    return {name: one["spec"]["template"] for name, one in of_kind(objects, "Deployment", "StatefulSet").items()}


def container(pod):
    (only,) = pod["spec"]["containers"]
    return only


def image_variables():
    """What the image sets."""
    file = (DEPLOY / "Dockerfile").read_text()
    return dict(re.findall(r"\b(TRESTLE__\w+)=(\S+)", file))


def test_every_object_is_valid(objects):
    version = kubernetes_validate.latest_version()
    checked = 0
    for (kind, name), one in objects.items():
        assert kind in ("Namespace",) or one["metadata"]["namespace"] == "trestle", (kind, name)
        # A type of the Prometheus operator, which has no schema there.
        if kind != "ServiceMonitor":
            kubernetes_validate.validate(one, version, strict=True)
            checked += 1
    assert checked > 10


@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_probes_a_budget_and_stays_apart_from_others(objects, role):
    pod = pods(objects)[role]
    only = container(pod)
    ports = {port["name"] for port in only["ports"]}
    for probe, path in PROBES.items():
        assert only[probe]["httpGet"]["path"] == path
        assert only[probe]["httpGet"]["port"] in ports
    budget = of_kind(objects, "PodDisruptionBudget")[role]["spec"]["selector"]["matchLabels"]
    assert budget.items() <= pod["metadata"]["labels"].items()
    apart = pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selector = apart[0]["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selector.items() <= pod["metadata"]["labels"].items()
    assert only["securityContext"]["readOnlyRootFilesystem"]
    mounts = {mount["mountPath"] for mount in only["volumeMounts"]}
    assert ("/data" in mounts) == (role != "gateway")


def test_services_lead_to_ports_of_their_pods(objects):
    services = of_kind(objects, "Service")
    assert sorted(services) == sorted(ROLES)
    for name, service in services.items():
        pod = pods(objects)[name]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ports = {port["name"] for port in container(pod)["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for variable in container(pods(objects)["gateway"])["env"]:
        if endpoint := re.fullmatch(r"http://(\w+):(\d+)", variable["value"]):
            assert int(endpoint[2]) in {port["port"] for port in services[endpoint[1]]["spec"]["ports"]}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_exports_what_the_staging_stack_exports(objects, role):
    staging = yaml.safe_load((DEPLOY / "compose.staging.yaml").read_text())["x-environment"]
    variables = {one["name"]: one["value"] for one in container(pods(objects)[role])["env"]}
    for name in ("LOG_FORMAT", "METRICS_BY_METHOD"):
        name = f"TRESTLE__TELEMETRY__{name}"
        assert variables[name] == staging[name]


def test_the_monitor_scrapes_every_role_with_the_labels_of_the_dashboards(objects):
    (monitor,) = of_kind(objects, "ServiceMonitor").values()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert [rule["targetLabel"] for rule in endpoint["relabelings"]] == ["role"]
    for service in of_kind(objects, "Service").values():
        labels = service["metadata"]["labels"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert labels[monitor["spec"]["jobLabel"]] == "trestle"
        assert labels[COMPONENT] in ROLES
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


@pytest.mark.parametrize("role", ROLES)
def test_a_server_accepts_the_settings_of_each_role(objects, tmp_path, role):
    variables = {one["name"]: one["value"] for one in container(pods(objects)[role])["env"]}
    if "TRESTLE_CONFIG" in variables:
        (secret,) = of_kind(objects, "Secret").values()
        file = tmp_path / "trestle.toml"
        file.write_bytes(base64.b64decode(secret["data"]["trestle.toml"]))
        variables["TRESTLE_CONFIG"] = str(file)
    command = [os.environ["TRESTLE_BIN"], "config", "check"]
    done = subprocess.run(
        command, env={**image_variables(), **variables}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

"""The manifests for Kubernetes: rendered by kustomize, valid by its schemas, consistent, and accepted by the server."""

import base64
import os
import re
import shutil
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
def objects(tmp_path_factory):
    """Everything that the example makes of the base, by kind and name, with secrets of its script."""
    copied = tmp_path_factory.mktemp("overlay")
    example = copied / "kustomize" / "example"
    made = shutil.ignore_patterns("acme.key", "gateway.secret")
    shutil.copytree(DEPLOY / "kustomize", copied / "kustomize", ignore=made)
    without = subprocess.run([KUSTOMIZE, "build", example], capture_output=True)
    assert without.returncode != 0, "no manifest without secrets of its own"
    run([example / "secrets.sh"])
    rendered = run([KUSTOMIZE, "build", example])
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
    mounts = {one["name"]: one["mountPath"] for one in container(pods(objects)[role])["volumeMounts"]}
    text = "".join(variables.values())
    for volume in pods(objects)[role]["spec"].get("volumes", []):
        secret = of_kind(objects, "Secret")[volume["secret"]["secretName"]]
        folder = tmp_path / volume["name"]
        folder.mkdir()
        for name, data in secret["data"].items():
            content = base64.b64decode(data).replace(b"/etc/trestle/", f"{folder}/".encode())
            (folder / name).write_bytes(content)
        place = mounts[volume["name"]]
        assert f"{place}/" in text, volume
        variables = {key: value.replace(f"{place}/", f"{folder}/") for key, value in variables.items()}
    command = [os.environ["TRESTLE_BIN"], "config", "check"]
    done = subprocess.run(
        command, env={**image_variables(), **variables}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("role", [role for role in ROLES if role != "gateway"])
def test_a_role_accepts_no_caller_without_the_secret_of_gateways(objects, role):
    every = pods(objects)
    variables = {one["name"]: one["value"] for one in container(every[role])["env"]}
    assert variables["TRESTLE__SERVER__TRUST_CALLERS"] == "true"
    of_gateway = {one["name"]: one["value"] for one in container(every["gateway"])["env"]}
    name = "TRESTLE__SERVER__GATEWAY_SECRET_FILE"
    assert variables[name] == of_gateway[name]
    volumes = [next(one for one in every[pod]["spec"]["volumes"] if one["name"] == "gateway-secret")
               for pod in (role, "gateway")]
    assert volumes[0] == volumes[1]

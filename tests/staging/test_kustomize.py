"""The manifests for Kubernetes: rendered by kustomize, valid by its schemas, consistent, and accepted by the server."""

import base64
import os
import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

from stack import DEPLOY, ROLES, endpoints, run

KUSTOMIZE = os.environ.get("KUSTOMIZE")
PROBES = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
COMPONENT = "app.kubernetes.io/component"
EXAMPLE, DISTRIBUTED = DEPLOY / "kustomize" / "example", DEPLOY / "kustomize" / "distributed"
# The workloads of each overlay.
OVERLAYS = {EXAMPLE: ROLES, DISTRIBUTED: ("trestle",)}
# What a script or a user puts beside an overlay.
AUTHORITIES = ("database-ca.pem", "bucket-ca.pem")
SECRETS = ("acme.key", "gateway.secret", "database.password", "bucket.env", *AUTHORITIES)

pytestmark = pytest.mark.skipif(not KUSTOMIZE, reason="no kustomize could be built on this machine")
each_overlay = pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
each_workload = pytest.mark.parametrize(
    ("overlay", "role"),
    [(overlay, role) for overlay, roles in OVERLAYS.items() for role in roles],
    ids=lambda part: getattr(part, "name", part),
)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Everything that each overlay makes, by kind and name, with secrets of its script."""
    copied = tmp_path_factory.mktemp("overlay") / "kustomize"
    shutil.copytree(DEPLOY / "kustomize", copied, ignore=shutil.ignore_patterns(*SECRETS))
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made += ["-subj", "/CN=authority", "-keyout", "/dev/null"]
    for authority in AUTHORITIES:
        run([*made, "-out", copied / DISTRIBUTED.name / authority])
    rendered = {}
    for overlay in OVERLAYS:
        folder = copied / overlay.name
        without = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True)
        assert without.returncode != 0, "no manifest without secrets of its own"
        run([folder / "secrets.sh"])
        every = yaml.safe_load_all(run([KUSTOMIZE, "build", folder]))
        rendered[overlay] = {(one["kind"], one["metadata"]["name"]): one for one in every}
    return rendered


@pytest.fixture
def overlay():
    """The one of a test that is for no other."""
    return EXAMPLE


@pytest.fixture
def objects(rendered, overlay):
    return rendered[overlay]


def of_kind(objects, *kinds):
    return {name: one for (kind, name), one in objects.items() if kind in kinds}


def pods(objects):
    """The template of each workload."""
    return {name: one["spec"]["template"] for name, one in of_kind(objects, "Deployment", "StatefulSet").items()}


def container(pod):
    (only,) = pod["spec"]["containers"]
    return only


def environment(pod, objects=None):
    """The variables of a pod, as one with an address has them; with `objects` also those of its secrets."""
    found = {one["name"]: one.get("value", "10.0.0.5") for one in container(pod)["env"]}
    for source in container(pod).get("envFrom", []) if objects else []:
        secret = objects["Secret", source["secretRef"]["name"]]
        found |= {name: base64.b64decode(data).decode() for name, data in secret["data"].items()}
    return {name: re.sub(r"\$\((\w+)\)", lambda use: found[use[1]], value) for name, value in found.items()}


def image_variables():
    """What the image sets."""
    file = (DEPLOY / "Dockerfile").read_text()
    return dict(re.findall(r"\b(TRESTLE__\w+)=(\S+)", file))


@each_overlay
def test_every_object_is_valid(objects):
    version = kubernetes_validate.latest_version()
    checked = 0
    for (kind, name), one in objects.items():
        assert kind in ("Namespace",) or one["metadata"]["namespace"] == "trestle", (kind, name)
        # A type of the Prometheus operator, which has no schema there.
        if kind != "ServiceMonitor":
            kubernetes_validate.validate(one, version, strict=True)
            checked += 1
    assert checked > 5


@each_workload
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
    assert ("/data" in mounts) == (role in of_kind(objects, "StatefulSet"))


@each_overlay
def test_services_lead_to_ports_of_their_pods(objects, overlay):
    services = of_kind(objects, "Service")
    assert sorted(services) == sorted(OVERLAYS[overlay])
    for name, service in services.items():
        pod = pods(objects)[name]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ports = {port["name"] for port in container(pod)["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for value in [value for pod in pods(objects).values() for value in environment(pod).values()]:
        if endpoint := re.fullmatch(r"http://(\w+):(\d+)", value):
            assert int(endpoint[2]) in {port["port"] for port in services[endpoint[1]]["spec"]["ports"]}


def test_the_gateway_reaches_every_role(objects):
    expected, reached = endpoints({name: environment(pod) for name, pod in pods(objects).items()})
    assert reached == expected and "log" in reached


@each_workload
def test_each_role_exports_what_the_staging_stack_exports(objects, role):
    staging = yaml.safe_load((DEPLOY / "compose.staging.yaml").read_text())["x-environment"]
    variables = environment(pods(objects)[role])
    for name in ("LOG_FORMAT", "METRICS_BY_METHOD"):
        name = f"TRESTLE__TELEMETRY__{name}"
        assert variables[name] == staging[name]


@each_overlay
def test_the_monitor_scrapes_every_role_with_the_labels_of_the_dashboards(objects, overlay):
    (monitor,) = of_kind(objects, "ServiceMonitor").values()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert [rule["targetLabel"] for rule in endpoint["relabelings"]] == ["role"]
    for service in of_kind(objects, "Service").values():
        labels = service["metadata"]["labels"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert labels[monitor["spec"]["jobLabel"]] == "trestle"
        assert labels[COMPONENT] in OVERLAYS[overlay]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


@each_workload
def test_a_server_accepts_the_settings_of_each_role(objects, tmp_path, role):
    variables = environment(pods(objects)[role], objects)
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
    variables = environment(every[role])
    assert variables["TRESTLE__SERVER__TRUST_CALLERS"] == "true"
    of_gateway = environment(every["gateway"])
    name = "TRESTLE__SERVER__GATEWAY_SECRET_FILE"
    assert variables[name] == of_gateway[name]
    volumes = [next(one for one in every[pod]["spec"]["volumes"] if one["name"] == "gateway-secret")
               for pod in (role, "gateway")]
    assert volumes[0] == volumes[1]


def test_processes_over_a_database_are_what_the_compose_file_starts(rendered):
    objects = rendered[DISTRIBUTED]
    compose = yaml.safe_load((DEPLOY / "compose.distributed.yaml").read_text())["services"]
    processes = [service for name, service in compose.items() if name.startswith("trestle-")]
    (workload,) = of_kind(objects, "Deployment").values()
    pod = workload["spec"]["template"]
    assert workload["spec"]["replicas"] == len(processes)
    azure = {port["containerPort"] for port in container(pod)["ports"] if port["name"].startswith("azure-")}
    for process in processes:
        # All of them.
        assert "TRESTLE__SERVER__ROLES" not in environment(pod).keys() | process["environment"].keys()
        published = {int(port.rsplit(":", 1)[1]) for port in process["ports"]}
        assert azure == {port for port in published if 10_000 <= port <= 10_002}


def test_processes_over_a_database_have_the_key_of_the_bucket_from_a_secret(rendered):
    objects = rendered[DISTRIBUTED]
    (pod,) = pods(objects).values()
    from_secrets = environment(pod, objects).keys() - environment(pod).keys()
    assert from_secrets == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    # The image has no certificates of a system.
    accounts, file = objects["Secret", "trestle-accounts"], environment(pod)["SSL_CERT_FILE"]
    assert file.removeprefix("/etc/trestle/") in accounts["data"]


def test_processes_over_a_database_have_no_volume_and_reach_each_other(rendered):
    (workload,) = of_kind(rendered[DISTRIBUTED], "Deployment").values()
    pod = workload["spec"]["template"]
    assert all("secret" in volume for volume in pod["spec"]["volumes"])
    ports = {port["name"]: port["containerPort"] for port in container(pod)["ports"]}
    (address,) = [one["name"] for one in container(pod)["env"] if "valueFrom" in one]
    assert environment(pod)["TRESTLE__SERVER__PEER_ADDRESS"] == f"http://{environment(pod)[address]}:{ports['grpc']}"


def test_two_of_three_processes_stay_while_pods_are_replaced(rendered):
    objects = rendered[DISTRIBUTED]
    (workload,) = of_kind(objects, "Deployment").values()
    (budget,) = of_kind(objects, "PodDisruptionBudget").values()
    assert workload["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == budget["spec"]["maxUnavailable"] == 1
    assert workload["spec"]["replicas"] > 2

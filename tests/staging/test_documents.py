"""What docs/staging.md and deploy/.env.example document is what the compose files have."""

import re
import shlex
import stat

import pytest
import yaml

from stack import DEPLOY, endpoints, run, ENGINE

COMPOSE = [DEPLOY / f"compose{name}.yaml" for name in ("", ".staging", ".mtls", ".distributed")]
STAGING = (DEPLOY.parent / "docs" / "staging.md").read_text()
# Set by the suite or by scripts, and by no operator.
INTERNAL = {"TRESTLE_REVISION", "TRESTLE_CERTIFICATES", "TRACES_ENDPOINT", "COLLECTOR_DEBUG", "AWS_REGION"}
INTERNAL |= {f"{name}_IMAGE" for name in ("COLLECTOR", "JAEGER", "PROMETHEUS", "GRAFANA", "S3", "POSTGRES")}
# Without a default: the stack does not start without them, and deploy/secrets.sh makes them.
SECRETS = {"TRESTLE_GATEWAY_SECRET", "GRAFANA_ADMIN_PASSWORD"}


def read_by_compose():
    """Each variable that a compose file reads, with its default."""
    found = {}
    for path in COMPOSE:
        text = re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.M)
        found |= dict(re.findall(r"\$\{(\w+):-([^}]*)\}", text))
        found |= {name: "" for name in re.findall(r"\$\{(\w+):\?[^}]*\}", text)}
        # Variables without a value are passed on.
        found |= {name: "" for name in re.findall(r"^ +(TRESTLE__\w+):$", text, re.M)}
    return found


def test_every_variable_is_documented_with_its_default():
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    shown = dict(line.lstrip("#").split("=", 1) for line in lines if re.match(r"#?[A-Z_0-9]+=", line))
    known = read_by_compose()
    assert shown.keys() <= known.keys(), shown.keys() - known.keys()
    assert {name: shown[name] for name in shown if known[name]} == {
        name: known[name] for name in shown if known[name]
    }
    settings = {name for name in known if name.startswith("TRESTLE__")}
    assert known.keys() - settings - INTERNAL <= shown.keys()


def test_secrets_have_no_default_and_are_made():
    files = [*COMPOSE, DEPLOY / ".env.example"]
    for name in SECRETS:
        uses = [use for path in files for use in re.findall(rf"\$\{{{name}(.*?)\}}", path.read_text())]
        assert uses and all(use == ":?deploy/secrets.sh makes it" for use in uses), (name, uses)
        assert f"{name}=\n" in (DEPLOY / ".env.example").read_text()


def test_the_script_makes_secrets_once(tmp_path):
    file = tmp_path / ".env"
    file.write_text("TRESTLE_PORT=1\nTRESTLE_GATEWAY_SECRET=\n")
    run([DEPLOY / "secrets.sh", file])
    made, password = file.read_text(), tmp_path / "secrets" / "database.password"
    made_password = password.read_text()
    run([DEPLOY / "secrets.sh", file])

    assert file.read_text() == made
    assert password.read_text() == made_password
    variables = dict(line.split("=", 1) for line in made.splitlines())
    assert variables.keys() == SECRETS | {"TRESTLE_PORT"}
    assert len({variables[name] for name in SECRETS}) == len(SECRETS)
    assert all(re.fullmatch("[0-9a-f]{64}", secret) for secret in [made_password, *map(variables.get, SECRETS)])
    # Containers read the file as users of their own, and nobody else enters the folder.
    assert [stat.S_IMODE(path.stat().st_mode) for path in (password, password.parent)] == [0o444, 0o700]


def test_the_dashboards_need_a_password():
    grafana = yaml.safe_load((DEPLOY / "compose.staging.yaml").read_text())["services"]["grafana"]["environment"]
    assert grafana["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert grafana["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_ADMIN_PASSWORD:?")


def test_database_and_bucket_are_not_published_and_the_password_is_from_the_file_of_the_processes():
    file = yaml.safe_load((DEPLOY / "compose.distributed.yaml").read_text())
    others = [file["services"].pop(name) for name in ("database", "s3", "bucket")]
    internal = {name for name, network in file["networks"].items() if (network or {}).get("internal")}
    for other in others:
        assert "ports" not in other and internal.issuperset(other["networks"])
    database = others[0]
    place = "/run/secrets/database.password"
    assert database["environment"]["POSTGRES_PASSWORD_FILE"] == place
    assert "POSTGRES_PASSWORD" not in database["environment"]
    for process in file["services"].values():
        assert process["environment"]["TRESTLE__STORAGE__ENGINE_PASSWORD_FILE"] == place
        assert process["secrets"] == database["secrets"] == ["database.password"]


def test_processes_start_once_the_database_answers_and_the_bucket_is_made():
    services = yaml.safe_load((DEPLOY / "compose.distributed.yaml").read_text())["services"]
    for name in ("trestle-1", "trestle-2", "trestle-3"):
        conditions = {other: waits["condition"] for other, waits in services[name]["depends_on"].items()}
        assert conditions == {"database": "service_healthy", "bucket": "service_completed_successfully"}
    # It ends, and is not started again.
    assert services["bucket"].get("restart", "no") == "no"


def test_no_role_trusts_callers_by_their_address():
    file = yaml.safe_load((DEPLOY / "compose.staging.yaml").read_text())
    for role, service in file["services"].items():
        variables = service.get("environment") or {}
        if variables.get("TRESTLE__SERVER__TRUST_CALLERS") == "true":
            assert variables["TRESTLE__SERVER__GATEWAY_SECRET"].startswith("${TRESTLE_GATEWAY_SECRET:?"), role
    secured = yaml.safe_load((DEPLOY / "compose.mtls.yaml").read_text())["services"]
    for role in ("table", "queue", "blob"):
        variables = secured[role]["environment"]
        assert variables["TRESTLE__TLS__CLIENT_CERTIFICATES"] == "required"
        assert variables["TRESTLE__SERVER__TRUST_CALLERS"] == "false"


def test_the_gateway_reaches_every_role_in_plain_text_and_with_mutual_tls():
    services = yaml.safe_load((DEPLOY / "compose.staging.yaml").read_text())["services"]
    variables = {name: one.get("environment") or {} for name, one in services.items()}
    expected, reached = endpoints({name: one for name, one in variables.items() if "TRESTLE__SERVER__ROLES" in one})
    assert reached == expected and "log" in reached
    secured = yaml.safe_load((DEPLOY / "compose.mtls.yaml").read_text())["services"]["gateway"]["environment"]
    for role, endpoint in reached.items():
        assert secured[f"TRESTLE__GATEWAY__{role.upper()}_ENDPOINT"] == endpoint.replace("http:", "https:")


def test_only_the_certificate_of_the_gateway_has_its_name(tmp_path):
    run([DEPLOY / "certificates.sh", tmp_path])
    secured = yaml.safe_load((DEPLOY / "compose.mtls.yaml").read_text())["services"]
    name = secured["table"]["environment"]["TRESTLE__TLS__GATEWAY_NAMES"]
    has_name = {}
    for file in ("gateway", "role"):
        shown = run(["openssl", "x509", "-in", tmp_path / f"{file}.pem", "-noout", "-ext", "subjectAltName"])
        has_name[file] = f"DNS:{name}" in re.split(r"[,\s]+", shown)
    assert has_name == {"gateway": True, "role": False}


def test_the_documented_load_runs_in_the_gateway(stack):
    (command,) = re.findall(r"exec gateway \\\n *(.*)\n", STAGING)
    words = shlex.split(command)
    words[words.index("--duration") + 1] = "1s"

    printed = run([ENGINE, "exec", stack.container("gateway"), *words])

    # A line for each kind of error, so none.
    assert re.search(r"^ops\t[1-9]", printed, re.M), printed
    assert not re.search(r"^errors", printed, re.M), printed


def test_the_documented_upgrade_has_the_order_that_is_tested():
    from test_upgrade import ORDER

    assert f"for role in {' '.join(ORDER)}; do" in STAGING


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_ports_are_published_on_loopback_only(path):
    published = re.findall(r"[\"' ]((?:[\d.]+:)?\$\{\w+:-\d+\}:\d+)", path.read_text())
    assert all(port.startswith("127.0.0.1:") for port in published), published

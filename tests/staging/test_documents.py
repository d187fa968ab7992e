"""What docs/staging.md and deploy/.env.example document is what the compose files have."""

import re
import shlex

import pytest

from stack import DEPLOY, run, ENGINE

COMPOSE = [DEPLOY / "compose.yaml", DEPLOY / "compose.staging.yaml", DEPLOY / "compose.mtls.yaml"]
STAGING = (DEPLOY.parent / "docs" / "staging.md").read_text()
# Set by the suite or by scripts, and by no operator.
INTERNAL = {"TRESTLE_REVISION", "TRESTLE_CERTIFICATES", "TRACES_ENDPOINT", "COLLECTOR_DEBUG", "AWS_REGION"}
INTERNAL |= {f"{name}_IMAGE" for name in ("COLLECTOR", "JAEGER", "PROMETHEUS", "GRAFANA", "S3")}
INTERNAL |= {"TRESTLE_TRUST_CALLERS"}


def read_by_compose():
    """Each variable that a compose file reads, with its default."""
    found = {}
    for path in COMPOSE:
        text = re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.M)
        found |= dict(re.findall(r"\$\{(\w+):-([^}]*)\}", text))
        # Variables without a value are passed on.
        found |= {name: "" for name in re.findall(r"^ +(TRESTLE__\w+):$", text, re.M)}
    return found


def test_every_variable_is_documented_with_its_default():
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    shown = dict(line.lstrip("#").split("=", 1) for line in lines if re.match(r"#?[A-Z_]+=", line))
    known = read_by_compose()
    assert shown.keys() <= known.keys(), shown.keys() - known.keys()
    assert {name: shown[name] for name in shown if known[name]} == {
        name: known[name] for name in shown if known[name]
    }
    settings = {name for name in known if name.startswith("TRESTLE__")}
    assert known.keys() - settings - INTERNAL <= shown.keys()


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

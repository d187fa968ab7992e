"""Prometheus scrapes every role, and has each metric and label that a panel or an alert requests."""

import json
import re

import grpc
import pytest
import yaml

from stack import DEPLOY, ROLES, until

# Words of PromQL before a parenthesis are functions; these are the others.
KEYWORDS = {"by", "without", "and", "or", "unless", "on", "ignoring", "group_left", "group_right", "bool", "offset"}
# What alerts have and no process exports: recorded by rules.
RECORDED = re.compile(r"^role:")
# Labels with values that occur only when something fails; of the others, each value that is requested must occur.
OF_FAILURES = {"rpc_response_status_code", "trestle_retry_outcome"}
# What a process exports only with `backup.target`, which no role of the stack has: tests/commands/backup/scheduled.rs
# and continuous.rs start servers with it and look for them.
OF_SCHEDULED_BACKUPS = {
    "trestle_backup_age_seconds",
    "trestle_backup_interval_seconds",
    "trestle_backup_lag_seconds",
    "trestle_backup_gaps_total",
}
# What a process exports only with a store in a database, which no role of the stack has: tests/commands/database.rs and
# dashboards.rs start servers with one and look for them.
OF_DATABASE = {
    "db_client_connection_count",
    "db_client_connection_max",
    "trestle_storage_commit_retries_total",
    "trestle_storage_commit_unknown_total",
    "trestle_storage_database_durable",
    "trestle_storage_database_primary",
    "trestle_storage_database_standbys",
    "trestle_storage_snapshot_age_seconds",
    "trestle_store_forwarded_total",
    "trestle_store_jobs",
    "trestle_store_processes",
    "trestle_store_processes_changes_total",
    "trestle_store_renewal_age_seconds",
}
# What a process exports only with TLS, which the stack has at none of its listeners: tests/commands/observed.rs and
# services/server/tests/it/serving.rs start servers with it and look for them.
OF_TLS = {"trestle_tls_certificate_expiry_seconds", "trestle_tls_handshake_failures_total"}


def expressions():
    """Each expression of a panel or a rule, with its origin."""
    for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]
    for path in sorted((DEPLOY / "prometheus" / "rules").glob("*.yaml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                yield f"{path.name}: {rule.get('alert', rule.get('record'))}", rule["expr"]


def selectors(expression):
    """Of each metric in an expression its name, the labels that are requested of it, and its matchers."""
    bare = re.sub(r"\[[^\]]*\]", "", expression)
    grouped = {
        label.strip()
        for labels in re.findall(r"\bby\s*\(([^)]*)\)", bare)
        for label in labels.split(",")
    }
    bare = re.sub(r"\b(by|on)\s*\([^)]*\)", "", bare)
    # Values of matchers may contain words, so each is replaced by its number meanwhile.
    values = []
    bare = re.sub(r'"[^"]*"', lambda value: f'"{values.append(value[0]) or len(values) - 1}"', bare)
    found = []
    for name, matchers in re.findall(r"\b([a-zA-Z_:][\w:]*)\b(?!\s*\()(?:\{([^}]*)\})?", bare):
        if name not in KEYWORDS:
            parts = re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"(\d+)"', matchers)
            parts = {label: label + operator + values[int(value)] for label, operator, value in parts}
            found.append((name, parts.keys() | grouped, parts))
    return found


def test_selectors_have_metrics_and_labels():
    expression = 'histogram_quantile(0.9, sum by (le, role) (rate(a_bucket{x=~"b(c|d)", y!="e"}[5m]))) > 1 and b == 2'
    matchers = {"x": 'x=~"b(c|d)"', "y": 'y!="e"'}
    expected = [("a_bucket", {"x", "y", "le", "role"}, matchers), ("b", {"le", "role"}, {})]
    assert selectors(expression) == expected


@pytest.fixture
def prometheus(stack):
    if not stack.has_prometheus:
        pytest.skip("no Prometheus on this machine")
    return stack


def provoke(stack, stores, channel):
    """What counts only once it happens: credentials that fail, a call over a quota."""
    with grpc.insecure_channel(f"127.0.0.1:{stack.grpc}") as anonymous:
        call = anonymous.unary_unary("/trestle.table.v1.TableService/ListTables")
        with pytest.raises(grpc.RpcError) as failed:
            call(b"", timeout=10)
    assert failed.value.code() == grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(grpc.RpcError) as throttled:
        for number in range(100):
            stores.table.write(f"large-{number}", size=900_000, partition="hot")
    assert throttled.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    # A role that ends within a call: the gateway sends the call again.
    stack.engine("restart", "queue", "--time", "30")
    stack.until_healthy("queue")
    stores.queue.write("0-1")
    stores.blob.write("0-1")
    stores.blob.read("0-1")
    stores.log.write("0-1")
    assert stores.log.lost(["0-1"]) == []


def test_every_role_is_scraped(prometheus):
    def scraped():
        return {labels["role"] for labels, value in prometheus.query('up{job="trestle"} == 1')}

    until(lambda: scraped() == set(ROLES), "every role is scraped")


def test_a_running_stack_has_each_metric_and_label_of_panels_and_alerts(
    prometheus, stores, channel
):
    provoke(prometheus, stores, channel)
    requested = [
        (origin, *selector)
        for origin, expression in expressions()
        for selector in selectors(expression)
        if selector[0] not in OF_SCHEDULED_BACKUPS | OF_DATABASE | OF_TLS
    ]
    assert len(requested) > 90

    def series(name, matchers):
        """The labels that series of a metric have."""
        match = name + "{" + ", ".join(matchers) + "}"
        return {label for one in prometheus.prometheus("series", **{"match[]": match}) for label in one}

    def missing():
        absent = []
        for origin, name, labels, matchers in requested:
            expected = sorted(text for label, text in matchers.items() if label not in OF_FAILURES)
            known = series(name, []) if RECORDED.match(name) else series(name, expected)
            if not known:
                absent.append(f"{origin}: no metric {name} with {expected}")
            elif not RECORDED.match(name) and not labels <= known:
                absent.append(f"{origin}: {name} has no {labels - known}")
        return absent

    until(lambda: not missing(), lambda: "\n".join(missing()), 60)

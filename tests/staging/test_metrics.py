"""Prometheus scrapes every role, and has each metric and label that a panel or an alert requests."""

import json
import re

import grpc
import pytest
import yaml

from stack import DEPLOY, ROLES, until

# Words of PromQL before a parenthesis are functions; these are the others.
KEYWORDS = {"by", "without", "and", "or", "unless", "on", "ignoring", "group_left", "group_right", "bool"}
# What alerts have and no process exports: recorded by rules.
RECORDED = re.compile(r"^role:")


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
    """Pairs of a metric and the labels that an expression requests of it."""
    bare = re.sub(r"\[[^\]]*\]", "", expression)
    grouped = {
        label.strip()
        for labels in re.findall(r"\bby\s*\(([^)]*)\)", bare)
        for label in labels.split(",")
    }
    bare = re.sub(r"\b(by|on)\s*\([^)]*\)", "", bare)
    found = []
    for name, matchers in re.findall(r"\b([a-zA-Z_:][\w:]*)\b(?!\s*\()(\{[^}]*\})?", _unquoted(bare)):
        if name not in KEYWORDS:
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            found.append((name, labels | grouped))
    return found


def _unquoted(expression):
    """An expression without the values of its matchers."""
    return re.sub(r'"[^"]*"', '""', expression)


def test_selectors_have_metrics_and_labels():
    expression = 'histogram_quantile(0.9, sum by (le, role) (rate(a_bucket{x=~"b(c|d)", y!="e"}[5m]))) > 1 and b == 2'
    assert selectors(expression) == [("a_bucket", {"x", "y", "le", "role"}), ("b", {"le", "role"})]


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


def test_every_role_is_scraped(prometheus):
    def scraped():
        return {labels["role"] for labels, value in prometheus.query('up{job="trestle"} == 1')}

    until(lambda: scraped() == set(ROLES), "every role is scraped")


def test_a_running_stack_has_each_metric_and_label_of_panels_and_alerts(
    prometheus, stores, channel
):
    provoke(prometheus, stores, channel)
    requested = [
        (origin, metric, labels)
        for origin, expression in expressions()
        for metric, labels in selectors(expression)
    ]
    assert len(requested) > 60

    def missing():
        known, absent = {}, []
        for origin, metric, labels in requested:
            if metric not in known:
                series = prometheus.prometheus("series", **{"match[]": metric})
                known[metric] = {label for one in series for label in one}
            if not known[metric]:
                absent.append(f"{origin}: no metric {metric}")
            elif not RECORDED.match(metric) and not labels <= known[metric]:
                absent.append(f"{origin}: {metric} has no {labels - known[metric]}")
        return absent

    until(lambda: not missing(), lambda: "\n".join(missing()), 60)

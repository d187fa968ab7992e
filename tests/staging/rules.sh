#!/usr/bin/env bash
# Checks the rules of Prometheus, runs their unit tests, and compares the runbook with the alerts.
#
#   tests/staging/rules.sh
#
# Ends with code 0 and a line that begins with SKIPPED where there is no promtool, of the Debian package prometheus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v promtool >/dev/null; then
  echo "SKIPPED: no promtool on this machine"
  exit 0
fi
rules=deploy/prometheus/rules/trestle.yaml
promtool check rules "$rules"
promtool check config deploy/prometheus/prometheus.yaml
promtool test rules tests/staging/rules_test.yaml

# Each alert links to a heading of the runbook, has a unit test, and the runbook has no other heading of an alert.
passed=0
while read -r alert; do
  grep -q "runbook_url: docs/runbook.md#${alert,,}$" "$rules" || { echo "no link to the runbook: $alert"; exit 1; }
  grep -qx "## $alert" docs/runbook.md || { echo "not in docs/runbook.md: $alert"; exit 1; }
  grep -q "alertname: $alert" tests/staging/rules_test.yaml || { echo "no unit test: $alert"; exit 1; }
  passed=$((passed + 1))
done < <(sed -n 's/^ *- alert: //p' "$rules")
while read -r alert; do
  grep -q "alert: $alert$" "$rules" || { echo "in docs/runbook.md, but no alert: $alert"; exit 1; }
done < <(sed -n 's/^## \(Trestle[A-Za-z]*\)$/\1/p' docs/runbook.md)
echo "$passed passed, 0 failed"

#!/usr/bin/env bash
# Runs the official Azure clients against Trestle, each language by its own script.
#
#   tests/clients/azure/run.sh             Python, JavaScript and Rust
#   tests/clients/azure/run.sh --azurite   the same, and against Azurite; prints the differences
#
# Only Trestle's results decide the code at the end. A test holds to what the service of Microsoft
# does; Azurite fails where it does something else, which docs/azure-compatibility.md explains.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"

# Pinned, so that a comparison means the same tomorrow.
AZURITE=3.37.0
# Time limits of Azurite in a run: to install it, and for one suite.
INSTALL_SECONDS=180
SUITE_SECONDS=240

compare=
case "${1:-}" in
  "") ;;
  --azurite) compare=yes ;;
  *) echo "no such option: $1; there is --azurite" >&2; exit 2 ;;
esac

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
debug_binary

code=0
for language in python javascript rust; do
  echo "== $language against Trestle"
  AZURE_RESULTS="$results/trestle-$language" "$script_dir/$language/run.sh" || code=1
done
[ -n "$compare" ] || exit "$code"

if ! command -v npm >/dev/null; then
  echo "SKIPPED: no npm on this machine, so no Azurite to compare with"
  exit "$code"
fi
export AZURITE_HOME="$root/target/clients/azure/azurite"
if [ ! -e "$AZURITE_HOME/.complete-$AZURITE" ]; then
  mkdir -p "$AZURITE_HOME"
  if ! timeout "$INSTALL_SECONDS" npm install --prefix "$AZURITE_HOME" --no-save --no-audit \
    --no-fund --loglevel=error "azurite@$AZURITE"; then
    echo "SKIPPED: Azurite $AZURITE cannot be installed here, so there is no peer to compare with"
    exit "$code"
  fi
  touch "$AZURITE_HOME/.complete-$AZURITE"
fi

# What the suites print is kept: their own sums would be counted as those of Trestle. Rust starts an
# Azurite for each of its files on free ports, so it runs beside the others.
against_azurite() {
  AZURE_TARGET=azurite AZURE_RESULTS="$results/azurite-$1" \
    timeout "$SUITE_SECONDS" "$script_dir/$1/run.sh" >"$results/log-$1" 2>&1 || true
}
echo "== the same against Azurite $AZURITE"
against_azurite rust &
against_azurite python
against_azurite javascript
wait
for language in python javascript rust; do
  if [ ! -s "$results/azurite-$language" ]; then
    echo "$language: no result; the end of its output:"
    # Indented, so that no sum in it is counted as one of Trestle's.
    tail -n 5 "$results/log-$language" | sed 's/^/    /'
  fi
done

echo
echo "== where Azurite $AZURITE and Trestle differ"
cat "$results"/trestle-* >"$results/trestle"
cat "$results"/azurite-* >"$results/azurite" 2>/dev/null || true
awk -F '\t' -f "$script_dir/differences.awk" "$results/azurite" "$results/trestle"
exit "$code"

#!/usr/bin/env bash
# Runs the official Azure clients against Trestle, each language by its own script.
#
#   tests/clients/azure/run.sh             Python, JavaScript and Rust
#   tests/clients/azure/run.sh --azurite   the same, and against Azurite; prints the differences
#
# Only Trestle's results decide the code at the end. A test holds to what the service of Microsoft
# does; Azurite fails where it does something else, which docs/azure-compatibility.md explains.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../setup.sh"

# Pinned, so that a comparison means the same tomorrow.
AZURITE=3.37.0

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
  AZURE_RESULTS="$results/trestle-$language" "$here/$language/run.sh" || code=1
done
[ -n "$compare" ] || exit "$code"

if ! command -v npm >/dev/null; then
  echo "SKIPPED: no npm on this machine, so no Azurite to compare with"
  exit "$code"
fi
export AZURITE_HOME="$root/target/clients/azure/azurite"
if [ ! -e "$AZURITE_HOME/.complete-$AZURITE" ]; then
  mkdir -p "$AZURITE_HOME"
  npm install --prefix "$AZURITE_HOME" --no-save --no-audit --no-fund --loglevel=error \
    "azurite@$AZURITE"
  touch "$AZURITE_HOME/.complete-$AZURITE"
fi
for language in python javascript rust; do
  echo "== $language against Azurite $AZURITE"
  AZURE_TARGET=azurite AZURE_RESULTS="$results/azurite-$language" "$here/$language/run.sh" \
    >"$results/log" 2>&1 || true
  tail -n 3 "$results/log"
done

# The lines that differ: what became of a test with Azurite, with Trestle, and its name.
echo
echo "== where Azurite $AZURITE and Trestle differ"
cat "$results"/trestle-* >"$results/trestle"
cat "$results"/azurite-* >"$results/azurite"
awk -F '\t' '
  FNR == NR { theirs[$1] = $2; next }
  { ours[$1] = $2 }
  END {
    printf "%-8s %-8s %s\n", "Azurite", "Trestle", "test"
    for (test in ours) {
      they = test in theirs ? theirs[test] : "missing"
      if (they == ours[test]) { same++; continue }
      printf "%-8s %-8s %s\n", they, ours[test], test | "sort"
      different++
    }
    close("sort")
    printf "%d tests with the same result, %d with another\n", same, different
  }
' "$results/azurite" "$results/trestle"
exit "$code"

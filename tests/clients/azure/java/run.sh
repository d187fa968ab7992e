#!/usr/bin/env bash
# Runs Microsoft's client of blobs for Java against the binary.
#
#   tests/clients/azure/java/run.sh
#
# Needs a JDK and Maven. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"
source "$script_dir/../../serve.sh"

for tool in javac java mvn; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: no $tool on this machine"
    exit 0
  fi
done
debug_binary

work=$root/target/clients/azure/java
if ! cmp -s "$script_dir/pom.xml" "$work/.complete"; then
  rm -rf "$work"
  mkdir -p "$work"
  mvn --quiet --batch-mode --file "$script_dir/pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$work/lib"
  cp "$script_dir/pom.xml" "$work/.complete"
fi
rm -rf "$work/classes"
javac -cp "$work/lib/*" -d "$work/classes" "$script_dir"/src/*.java

start_server
# Nothing here binds a logger for the client, which notes that on standard error.
java -cp "$work/classes:$work/lib/*" Suite "$azure_blob"

#!/usr/bin/env bash
# Generates a Java client from the unmodified contract and runs a program on it against the real binary.
#
#   tests/clients/java/run.sh
#
# Needs a JDK and Maven, on x86-64 Linux. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"
source "$script_dir/../serve.sh"

for tool in javac java mvn; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: no $tool on this machine"
    exit 0
  fi
done
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "SKIPPED: the plugin of protoc for Java is for Linux on x86-64"
  exit 0
fi
find_protoc
debug_binary

work=$root/target/clients/java
if ! cmp -s "$script_dir/pom.xml" "$work/.complete"; then
  rm -rf "$work"
  mkdir -p "$work"
  mvn --quiet --batch-mode --file "$script_dir/pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$work/lib"
  chmod +x "$work"/lib/protoc-gen-grpc-java-*.exe
  cp "$script_dir/pom.xml" "$work/.complete"
fi
rm -rf "$work/gen" "$work/classes"
mkdir -p "$work/gen" "$work/classes"
plugin=$(echo "$work"/lib/protoc-gen-grpc-java-*.exe)
cd "$root/proto"
# One plain command, as docs/grpc.md has it.
# shellcheck disable=SC2046  # the names have no spaces
"$protoc" -I. --plugin=protoc-gen-grpc-java="$plugin" --java_out="$work/gen" \
  --grpc-java_out="$work/gen" $(find trestle -name '*.proto')
find "$work/gen" "$script_dir/src" -name '*.java' >"$work/sources"
javac -nowarn -cp "$work/lib/*" -d "$work/classes" @"$work/sources"

start_server
java -cp "$work/classes:$work/lib/*" Client "$grpc"

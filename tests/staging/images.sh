# The images of the suite, built from what is on this machine; sourced by run.sh.

KUSTOMIZE_VERSION=v5.8.1

# programs_image NAME PROGRAM...: an image of programs of this machine and their libraries.
programs_image() {
  local name=$1 files=$work/$1 program made
  shift
  made=$(stat --format='%n %s %Y' "$@")
  if [ "$made" = "$(cat "$files/.complete" 2>/dev/null || true)" ] &&
    "$ENGINE" image inspect "localhost/$name:staging-test" >/dev/null 2>&1; then
    return
  fi
  rm -rf "$files"
  mkdir -p "$files/root/etc" "$files/root/tmp" "$files/root/prometheus"
  for program in "$@"; do
    install -D "$program" "$files/root/bin/$(basename "$program")"
    # A static program has none.
    { ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true; } | while read -r library; do
      install -D "$library" "$files/root$library"
    done
  done
  cat >"$files/Dockerfile" <<DOCKERFILE
FROM scratch
COPY root/ /
ENTRYPOINT ["/bin/$(basename "$1")"]
DOCKERFILE
  "$ENGINE" build --quiet --tag "localhost/$name:staging-test" "$files" >/dev/null
  printf '%s\n' "$made" >"$files/.complete"
}

# The binary that deploy/binary.sh has made of these sources; else the debug build, linked again as a static one.
server_image() {
  local binary=$root/target/image/trestle
  local sources=(Cargo.lock proto shared services)
  if [ ! -x "$binary" ] ||
    [ -n "$(cd "$root" && find "${sources[@]}" -newer "$binary" -type f -print -quit)" ]; then
    source "$root/deploy/static.sh"
    # The features of other people's crates are those of the tests, which have compiled them; our own are as released.
    # shellcheck disable=SC2086
    cargo rustc --quiet --locked --manifest-path "$root/Cargo.toml" --package trestle --bin trestle \
      --features tokio/test-util,tonic/gzip,tonic/zstd -- $static_flags
    mkdir -p "$root/target/image/data"
    cp "${CARGO_TARGET_DIR:-$root/target}/debug/trestle" "$binary"
  fi
  export TRESTLE_BIN=$binary
}

# Prometheus of Debian; without it the tests of metrics and alerts are skipped.
prometheus_image() {
  if ! command -v prometheus >/dev/null; then
    echo "SKIPPED: tests of metrics, there is no Prometheus on this machine"
    return
  fi
  programs_image prometheus "$(command -v prometheus)"
  export PROMETHEUS_IMAGE=localhost/prometheus:staging-test
}

# SeaweedFS, of the package that tests/objects runs too, and what the step that makes a bucket calls.
s3_image() {
  local weed
  weed=$(python_environment objects "$root/tests/objects/requirements.txt" >&2 && echo "$(dirname "$python")/weed")
  programs_image seaweedfs "$weed" /bin/sh "$(type -P grep)" "$(type -P sleep)" "$(type -P timeout)"
  export S3_IMAGE=localhost/seaweedfs:staging-test
}

# PostgreSQL of Debian in place of the official image; without it the tests of three processes are skipped.
postgres_image() {
  local version files=$work/postgres sources=$script_dir/postgres program programs=(/bin/sh) made
  version=$({ find /usr/lib/postgresql -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null || true; } |
    sort --version-sort | tail -n 1)
  if [ ! -x "/usr/lib/postgresql/$version/bin/initdb" ]; then
    echo "SKIPPED: tests of three processes over a database, there is no PostgreSQL of Debian on this machine"
    return
  fi
  for program in initdb postgres pg_isready; do
    programs+=("/usr/lib/postgresql/$version/bin/$program")
  done
  programs_image postgres-programs "${programs[@]}"
  made=$(cat "$work/postgres-programs/.complete" "$sources"/*)
  if [ "$made" != "$(cat "$files/.complete" 2>/dev/null || true)" ] ||
    ! "$ENGINE" image inspect localhost/postgres:staging-test >/dev/null 2>&1; then
    rm -rf "$files"
    # The server looks for its libraries in `lib` beside the `bin` that it is in.
    mkdir -p "$files"/root/{etc,lib,usr/share/{postgresql,zoneinfo}} "$files"/owned/{lib/postgresql/data,run/postgresql}
    cp --recursive "/usr/share/postgresql/$version" "$files/root/usr/share/postgresql/"
    find "/usr/lib/postgresql/$version/lib" -maxdepth 1 -name '*.so' ! -name 'llvm*' \
      -exec cp --target-directory "$files/root/lib" {} +
    echo 'postgres:x:999:999::/var/lib/postgresql:/bin/sh' >"$files/root/etc/passwd"
    cp "$sources/entrypoint.sh" "$files/root/"
    cp "$sources/Dockerfile" "$files/"
    "$ENGINE" build --quiet --tag localhost/postgres:staging-test "$files" >/dev/null
    printf '%s\n' "$made" >"$files/.complete"
  fi
  export POSTGRES_IMAGE=localhost/postgres:staging-test
}

# Whether the Go of this machine is new enough for the module in a directory.
has_go_for() { command -v go >/dev/null && (cd "$1" && go list -m >/dev/null 2>&1); }

# kustomize at a pinned version, which the database of checksums verifies; without Go its tests are skipped.
kustomize_binary() {
  has_go_for "$script_dir/collector" || return 0
  local built=$work/bin/kustomize
  if [ "$(cat "$built.complete" 2>/dev/null || true)" != "$KUSTOMIZE_VERSION" ]; then
    GOBIN=$work/bin go install "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE_VERSION"
    echo "$KUSTOMIZE_VERSION" >"$built.complete"
  fi
  export KUSTOMIZE=$built
}

# A real collector, built from its modules; without Go the tests of traces are skipped.
collector_image() {
  if ! has_go_for "$script_dir/collector"; then
    echo "SKIPPED: tests of traces and of the manifests for Kubernetes, there is no recent Go on this machine"
    return
  fi
  local sources=$script_dir/collector built=$work/bin/otelcol expected
  expected=$(cat "$sources/main.go" "$sources/go.sum")
  if [ ! -x "$built" ] || [ "$expected" != "$(cat "$built.complete" 2>/dev/null || true)" ]; then
    (cd "$sources" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$built" .)
    printf '%s\n' "$expected" >"$built.complete"
  fi
  TRACES_ENDPOINT=127.0.0.1:4317 "$built" validate --config "$root/deploy/collector/config.yaml"
  echo "deploy/collector/config.yaml: valid"
  programs_image otelcol "$built"
  export COLLECTOR_IMAGE=localhost/otelcol:staging-test
}

# Ends the script where the engine cannot run a container on a network of its own, as in some sandboxes.
probe_engine() {
  local network=trestle-probe-$$ code=0
  programs_image probe "$(type -P true)"
  { "$ENGINE" network create "$network" &&
    "$ENGINE" run --rm --network "$network" localhost/probe:staging-test; } >"$work/probe.log" 2>&1 || code=$?
  "$ENGINE" network rm "$network" >/dev/null 2>&1 || true
  [ "$code" = 0 ] && return
  echo "SKIPPED: $ENGINE runs no containers here: $(tail -n 1 "$work/probe.log")"
  exit 0
}

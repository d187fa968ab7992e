# The images of the suite, built from what is on this machine; sourced by run.sh.

# programs_image NAME PROGRAM...: an image of programs of this machine and their libraries.
programs_image() {
  local name=$1 files=$work/$1 program
  shift
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
}

# The binary that deploy/binary.sh has made of these sources; else the debug build, linked again as a static one.
server_image() {
  local binary=$root/target/image/trestle
  local sources=(Cargo.lock proto shared services)
  if [ ! -x "$binary" ] ||
    [ -n "$(cd "$root" && find "${sources[@]}" -newer "$binary" -type f -print -quit)" ]; then
    cargo rustc --quiet --locked --manifest-path "$root/Cargo.toml" --package trestle --bin trestle -- \
      -C target-feature=+crt-static -C strip=symbols
    mkdir -p "$root/target/image/data"
    cp "${CARGO_TARGET_DIR:-$root/target}/debug/trestle" "$binary"
  fi
  export TRESTLE_BIN=$binary
}

# Prometheus of Debian; without it the tests of metrics and alerts are skipped.
prometheus_image() {
  command -v prometheus >/dev/null || return 0
  programs_image prometheus "$(command -v prometheus)"
  export PROMETHEUS_IMAGE=localhost/prometheus:staging-test
}

# A real collector, built from its modules; without Go the tests of traces are skipped.
collector_image() {
  command -v go >/dev/null || return 0
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

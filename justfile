# Short names for what CI runs; `just --list` shows them.

# What a change must pass
check:
    bash .ci/run

# Format everything
fmt:
    cargo fmt --all

# Warnings are errors, as in CI
lint:
    bash .ci/run scripts fmt locks lint lint_others doc proto

# Each crate by itself: without the features that another crate of the workspace turns on, such as those for tests
crates:
    for crate in $(cargo tree --workspace --depth 0 --prefix none --locked | cut -d ' ' -f 1 | sort -u); do \
        cargo check --quiet --locked --package "$crate" || exit; done

# Every test that needs nothing but Rust; a hung one is killed and named
test:
    bash .ci/run build test

# Lines of files, tests and code by crate
sizes:
    cargo test --locked --package trestle-tests --test tidy lines_of_tests -- --nocapture

# The conformance suite of the storage contract, on every engine
conform:
    cargo test --locked --package trestle-kv

# Scenarios: in process, over loopback, as separate processes
scenarios *arguments:
    cargo test --locked --package trestle-tests --test scenarios {{arguments}}

# Runs each fuzz target for some seconds
fuzz seconds="10":
    tests/fuzz/run.sh {{seconds}}

# Measures the performance budgets; all, or those whose name contains a word
bench *names:
    cargo bench --locked --package trestle-tests --bench budgets -- {{names}}

# Stores the same records as a log, in a table and in append blobs, and draws docs/logs-chart.svg
logs-chart:
    tests/clients/logs/bench.sh

# Cuts the power of a store under load, so many times; a run with the same seed writes and cuts the same
power-loss cuts="1000" seed=`date +%s`:
    POWER_LOSS={{cuts}} POWER_LOSS_SEED={{seed}} cargo test --locked --package trestle-kv --test power -- --nocapture

# Kills a server under load, so many times
kills count="500":
    CRASH_KILLS={{count}} cargo test --locked --package trestle-tests --test crash kills:: -- --nocapture

# Licences, sources and advisories of the dependencies
deny:
    bash .ci/run deny

# Clients of gRPC and of Azure Storage against the real binary
clients:
    bash .ci/run clients

# Telemetry of separate processes, at an OpenTelemetry receiver
telemetry *arguments:
    tests/telemetry/run.sh {{arguments}}

# The staging stack in containers, broken on purpose: with Docker, or with podman as root
staging-test *arguments:
    tests/staging/run.sh {{arguments}}

# A page in Chromium against the real binary
browser:
    bash .ci/run browser

# The worked example: the Debian package index, imported and queried
walkthrough:
    bash .ci/run walkthrough

# Writes the data directory and the backups that later builds must open; once for each version of their formats
fixture:
    WRITE_FIXTURE=1 cargo test --locked --package trestle-tests --test crash writes_a_data_directory_that_opens
    WRITE_FIXTURE=1 cargo test --locked --package trestle-tests --test commands writes_backups_that_are_restored

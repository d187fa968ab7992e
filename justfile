# Short names for what CI runs; every recipe can be typed by hand as well. `just --list` shows them.

# What a change must pass
check:
    bash .ci/run

# Format everything
fmt:
    cargo fmt --all

# Warnings are errors, as in CI
lint:
    bash .ci/run scripts fmt locks lint proto

# Every test that needs nothing but Rust
test *arguments:
    cargo test --workspace --locked {{arguments}}

# The storage contract, on every engine
conform:
    cargo test --locked --package trestle-kv

# What clients see: in process, over loopback, as processes
scenarios *arguments:
    cargo test --locked --package trestle-tests --test scenarios {{arguments}}

# Each fuzz target for some seconds
fuzz seconds="10":
    tests/fuzz/run.sh {{seconds}}

# The speed budgets, each beside its ceiling; all, or those whose name contains a word
bench *names:
    cargo bench --locked --package trestle-tests --bench budgets -- {{names}}

# Licences, sources and advisories of what we depend on
deny:
    bash .ci/run deny

# Clients of gRPC and of Azure Storage against the real binary
clients:
    bash .ci/run clients

# A real receiver of OpenTelemetry beside separate processes
telemetry *arguments:
    tests/telemetry/run.sh {{arguments}}

# A page in Chromium against the real binary
browser:
    bash .ci/run browser

# The Debian package index in and out of a server
walkthrough:
    bash .ci/run walkthrough

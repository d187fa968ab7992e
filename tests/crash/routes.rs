//! Every route of every listener, called by a client that holds memory of the server as cheaply as it can: calls that
//! never end, calls whose messages become large, calls whose responses are not received. The memory of the process
//! remains within the bound that docs/operations.md has.
//!
//! The routes are those of the descriptors, of the roles and of the admin listener, so a new one is called too.

mod attack;
mod route;

use trestle_tests::Server;

use self::{
    attack::{ATTACKS, hold},
    route::{Route, admin_routes, azure_routes, grpc_routes},
};
use crate::overload::resident_mib;

/// The bound of docs/operations.md for a process, beside the cache.
const BESIDE_CACHE_MIB: f64 = 256.0;
const CACHE_MIB: f64 = 8.0;
const CACHE_BYTES: (&str, &str) = ("TRESTLE__STORAGE__CACHE_BYTES", "8MiB");

/// Calls every route of a server in every way.
async fn walk(server: &Server, routes: Vec<Route>) {
    assert!(!routes.is_empty());
    // The first call of each kind makes what stays: buffers, keyspaces, metrics.
    for route in &routes {
        route.warm_up().await;
    }
    let before = resident_mib(server);
    let bound = CACHE_MIB + BESIDE_CACHE_MIB;
    let mut most = before;
    for route in &routes {
        for attack in ATTACKS {
            let held = hold(server, route, attack).await;
            most = most.max(held);
            assert!(
                held <= bound,
                "{held:.0} MiB of {bound:.0}, {before:.0} before: {attack:?} {route:?}"
            );
        }
    }
    println!("{} routes: {most:.0} MiB of {bound:.0}, {before:.0} before", routes.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_route_takes_memory_beyond_its_bound() {
    let bytes_max = (16 << 20).to_string();
    let server = Server::start(
        &["--ephemeral"],
        &[("TRESTLE__LIMITS__BODY_BYTES_MAX", &bytes_max), CACHE_BYTES],
    );
    let admin = admin_routes(&server).await;
    walk(&server, [grpc_routes(&server), azure_routes(&server), admin].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_route_of_a_role_without_a_gateway_takes_memory_beyond_its_bound() {
    let bytes_max = (16 << 20).to_string();
    for role in trestle::roles::ROLES.iter().filter(|role| role.owns_data()) {
        let server = Server::start(
            &["--ephemeral", "--roles", role.name],
            &[("TRESTLE__LIMITS__BODY_BYTES_MAX", &bytes_max), CACHE_BYTES],
        );
        let is_served = |route: &Route| route.is_open() || route.is_of(role.services);
        walk(&server, grpc_routes(&server).into_iter().filter(is_served).collect()).await;
    }
}

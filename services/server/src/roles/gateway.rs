//! The role `gateway`: accepts calls from outside, by gRPC and by the protocols of Azure Storage, and
//! forwards them to the roles that own the data. It owns none.

use std::sync::Arc;

use trestle_gateway::{CorsStore, IngressStack, cors, gateway};
use trestle_identity::{account::Accounts, credentials::Identity};
use trestle_rpc::cors::Lookup;
use trestle_rpc::quota::{CallQuotas, LiveQuotas};
use trestle_rpc::upstream::Upstream;

use super::{Build, BuildContext, RoleSpec, UpstreamRole};
use crate::{
    identity,
    ingress::{self, AzureIngress, Ingress},
    key_sets::KeySets,
    process_error::ProcessError,
    reload::Reloads,
    settings::{DevelopmentAccount, EndpointText, RoleKey as _},
};

/// See the module.
pub const GATEWAY: RoleSpec = RoleSpec {
    name: "gateway",
    services: &[],
    writes: None,
    keyspaces: &[],
    has_objects: false,
    cors: None,
    build: Build::Ingress(build),
    is_required: false,
    azure: None,
};

fn build(context: &BuildContext<'_>, roles: &[UpstreamRole]) -> Result<Ingress, ProcessError> {
    let BuildContext { settings, deps, quotas, .. } = context;
    let accounts = Accounts::default();
    let key_sets = KeySets::default();
    accounts.replace(identity::read(settings, &key_sets)?);
    let is_open = settings.gateway.development_account != DevelopmentAccount::Off;
    let clock = Arc::clone(&deps.clock);
    let private_hosts = settings.gateway.private_hosts();
    let identity = Identity {
        private_hosts,
        allows_plaintext_keys: settings.gateway.allow_plaintext_keys,
        quotas: Some(CallQuotas::new(LiveQuotas::clone(quotas), &deps.meter)),
        ..Identity::new(accounts.clone(), clock, is_open)
    };
    let stack = IngressStack::new(ingress::limits(&settings.limits), ingress::observe(context));

    let routes = ingress::absent(roles).fold(ingress::routes(roles), |routes, (service, role)| {
        let key = EndpointText::full_key(role);
        routes.without(service, format!("{key} is not set"))
    });
    let calls = gateway(&stack, routes, identity.clone());
    let calls = ingress::beside_peers(context, roles, calls);
    let calls = ingress::beside_health(context, roles, calls)?;
    let store = |role: &UpstreamRole| {
        let service = role.spec.cors?;
        Some(CorsStore { service, lookup: Lookup::new(service, role.upstream.clone()) })
    };
    let stores = roles.iter().filter_map(store).collect();
    let calls = cors(&stack, calls, stores, &names(&accounts));

    let compresses = settings.server.azure_gzip;
    let edge_of = |spec: &RoleSpec, upstream: Upstream| {
        let edge = spec.azure?;
        let deps = trestle_azure::EdgeDeps { upstream, identity: identity.clone(), compresses };
        let calls = (edge.build)(deps, &stack);
        let (headers_max, keeps_header_case) = (edge.headers_max, edge.keeps_header_case);
        Some(AzureIngress { role: spec.name, headers_max, keeps_header_case, calls })
    };
    let azure =
        roles.iter().filter_map(|role| edge_of(&role.spec, role.upstream.clone())).collect();
    let watches = deps.source.clone().map(|source| {
        let reloads = Reloads::new(&deps.meter);
        let watch = identity::watch(&accounts, &key_sets, source.clone(), &reloads);
        let fetch = key_sets.task(source, reloads, watch.waker());
        vec![watch, fetch]
    });
    Ok(Ingress { calls, azure, watches: watches.unwrap_or_default() })
}

/// The names of the accounts at the time of each call.
fn names(accounts: &Accounts) -> trestle_gateway::AccountNames {
    let accounts = accounts.clone();
    Arc::new(move || accounts.now().iter().map(|account| account.name.clone()).collect())
}

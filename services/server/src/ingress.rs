//! The entries of calls into a process, and their layers: those of the gateway, or fewer
//! before roles that only gateways call.

use std::{sync::LazyLock, time::Duration};

use tower::ServiceBuilder;
use trestle_gateway::{CallLimits, CallTelemetry, GrpcOnly, Routes};
use trestle_identity::peer_authentication::{self, PeerTrust};
use trestle_identity::store_peers::StorePeers;
use trestle_rpc::access::AccessLog;
use trestle_rpc::layer::CallService;
use trestle_rpc::layer::admission::AdmissionLayer;
use trestle_rpc::layer::body_bytes::BodyBytesLayer;
use trestle_rpc::layer::call_statistics::StatisticsLayer;
use trestle_rpc::layer::deadline::DeadlineLayer;
use trestle_rpc::layer::methods::Methods;
use trestle_rpc::layer::panic::PanicLayer;
use trestle_rpc::layer::trace::TraceLayer;
use trestle_runtime::{config::ConfigError, health_reflection::HealthReflectionRouter, task::Task};

use crate::{
    gateway_secret,
    process_error::ProcessError,
    roles::{BuildContext, ROLES, RoleSpec, UpstreamRole},
    settings::LimitSettings,
};

/// The services of the listeners for calls.
pub struct Ingress {
    /// gRPC.
    pub calls: CallService,
    /// The protocols of Azure Storage.
    pub azure: Vec<AzureIngress>,
    /// Tasks that watch files.
    pub watches: Vec<Task>,
}

/// The service of a listener of the Azure Storage protocol.
pub struct AzureIngress {
    /// The role whose protocol it is.
    pub role: &'static str,
    /// Most headers of a request; none: as many as fit into its head.
    pub headers_max: Option<usize>,
    /// Whether the names of headers keep their case.
    pub keeps_header_case: bool,
    /// The entry of its requests.
    pub calls: CallService,
}

/// The ingress of roles that only gateways call. No credentials: the gateway authenticates the
/// caller.
///
/// # Errors
/// A secret of gateways that cannot be read, and descriptors that reflection cannot read.
pub(crate) fn direct(
    context: &BuildContext<'_>,
    roles: &[UpstreamRole],
) -> Result<Ingress, ProcessError> {
    let server = &context.settings.server;
    let invalid = |problem| ConfigError::Invalid { problems: vec![problem] };
    let secret = gateway_secret::read(server).map_err(invalid)?;
    let trust = PeerTrust { secret, without_certificate: server.trust_callers };
    let calls = beside_peers(context, roles, trusted(context, roles, trust));
    let calls = beside_health(context, roles, calls)?;
    // A page must not call: there is no cross-origin rule here, and no caller is authenticated.
    let calls = CallService::new(GrpcOnly::new(calls));
    Ok(Ingress { calls, azure: Vec::new(), watches: Vec::new() })
}

/// The calls of the other processes of the store, which have authenticated the caller, beside `calls` of clients.
pub(crate) fn beside_peers(
    context: &BuildContext<'_>,
    roles: &[UpstreamRole],
    calls: CallService,
) -> CallService {
    let peers = context.members.secret().map(|secret| {
        let trust = PeerTrust { secret: Some(secret.clone()), without_certificate: true };
        (secret, trusted(context, roles, trust))
    });
    CallService::new(StorePeers::new(peers, calls))
}

/// The layers before `roles` for calls whose caller a trusted peer authenticated.
fn trusted(context: &BuildContext<'_>, roles: &[UpstreamRole], trust: PeerTrust) -> CallService {
    let (limits, observe) = (limits(&context.settings.limits), observe(context));
    let methods = observe.methods.clone();
    let stack = ServiceBuilder::new()
        // First, so that it sees every call; it continues the trace of the gateway.
        .layer(TraceLayer::new(CallTelemetry { access: AccessLog::off(), ..observe }))
        // Before every layer that may reject: the gateway logs the call with the statistics of this process.
        .layer(StatisticsLayer::default())
        // Before anything that could fail, and after what has to record the failure.
        .layer(PanicLayer::default())
        // The gateway forwards the deadline of the client; this layer enforces it.
        .layer(DeadlineLayer::new(limits.answer_within_max, methods.clone()))
        // Several gateways may call: admission of one of them does not bound all.
        .layer(AdmissionLayer::new(limits.calls_max, methods.clone()))
        // The same for their bytes.
        .layer(BodyBytesLayer::new(limits.bodies(), methods))
        // Last, before the routes: the caller is authenticated behind it.
        .layer(peer_authentication::layer(trust))
        .service(routes(roles));
    CallService::new(stack)
}

/// Every service of these roles.
pub(crate) fn routes(roles: &[UpstreamRole]) -> Routes {
    let services = roles.iter().flat_map(|role| role.spec.services.iter().map(move |s| (s, role)));
    services.fold(Routes::default(), |routes, (service, role)| {
        routes.with(service, role.upstream.clone())
    })
}

/// Health and reflection beside the `calls` of these roles.
pub(crate) fn beside_health(
    context: &BuildContext<'_>,
    roles: &[UpstreamRole],
    calls: CallService,
) -> Result<CallService, ProcessError> {
    let descriptors = trestle_proto::REFLECTION_DESCRIPTOR_SET;
    let absent: Vec<_> = absent(roles).map(|(service, _)| service).collect();
    let (health, within) = (context.health, limits(&context.settings.limits).request_within_max);
    let router = HealthReflectionRouter::new(health, descriptors, &absent, within, calls)?;
    Ok(CallService::new(router))
}

/// The services of the other roles, each with its role.
pub(crate) fn absent(roles: &[UpstreamRole]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_served = |role: &&RoleSpec| roles.iter().any(|served| served.spec.name == role.name);
    let absent = ROLES.iter().filter(move |role| !is_served(role));
    absent.flat_map(|role| role.services.iter().map(move |service| (*service, role.name)))
}

/// How calls are recorded.
pub(crate) fn observe(context: &BuildContext<'_>) -> CallTelemetry {
    let BuildContext { settings, deps, .. } = context;
    CallTelemetry {
        meter: deps.meter.clone(),
        traces: deps.traces.clone(),
        methods: methods(),
        random: deps.random,
        access: deps.access.clone(),
        is_by_method: settings.telemetry.metrics_by_method,
    }
}

/// The methods of the contract: read once, since every stack of layers has them.
pub(crate) fn methods() -> Methods {
    static METHODS: LazyLock<Methods> = LazyLock::new(|| {
        Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors, and reflection serves the same")
    });
    METHODS.clone()
}

/// The bounds of calls.
pub(crate) fn limits(limits: &LimitSettings) -> CallLimits {
    CallLimits {
        calls_max: limits.calls_max,
        body_bytes_max: limits.body_bytes_max,
        message_bytes_max: limits.export_bytes_max,
        request_within_max: Duration::from_secs(limits.request_within_seconds),
        answer_within_max: Duration::from_secs(limits.answer_within_seconds),
    }
}

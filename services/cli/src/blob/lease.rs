//! `lease`: the lease of a blob or a container.

use prost_types::Duration;
use serde_json::json;
use trestle_command::{errors::CliError, output::Context};
use trestle_proto::blob::v1::{
    AcquireLease, BreakLease, Lease, LeaseBlobRequest, LeaseContainerRequest, ReleaseLease,
    RenewLease, lease_blob_request::Action, lease_container_request::Action as ContainerAction,
};

use super::{BlobAddress, LeaseCommand};

/// Runs a command, and prints the id of the lease or how long it remains.
pub(super) async fn run(context: &mut Context, command: LeaseCommand) -> Result<(), CliError> {
    let (address, action, done) = match command {
        LeaseCommand::Acquire { address, duration, lease_id } => {
            let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
            let acquire = AcquireLease { duration, proposed_lease_id: lease_id };
            (address, Action::Acquire(acquire), "acquired")
        }
        LeaseCommand::Renew { address, lease_id } => {
            (address, Action::Renew(RenewLease { lease_id }), "renewed")
        }
        LeaseCommand::Release { address, lease_id } => {
            (address, Action::Release(ReleaseLease { lease_id }), "released")
        }
        LeaseCommand::Break { address, period } => {
            let break_period = period.map(|seconds| Duration { seconds: seconds.into(), nanos: 0 });
            (address, Action::Break(BreakLease { break_period }), "broken")
        }
    };
    let name = address.to_string();
    let (lease_id, remaining) = call(context, address, action).await?;
    let remaining = remaining.map(|duration| duration.seconds);
    let text = match (lease_id.as_str(), remaining) {
        ("", None) => done.to_owned(),
        ("", Some(seconds)) => format!("{done}: remaining_seconds={seconds}"),
        (id, _) => format!("{done}: lease_id={id}"),
    };
    let lease_id = Some(lease_id).filter(|id| !id.is_empty());
    let object = json!({
        "address": name.trim_end_matches('/'), "lease": done, "lease_id": lease_id,
        "remaining_seconds": remaining,
    });
    context.output.either(&text, &object)
}

async fn call(
    context: &Context,
    address: BlobAddress,
    action: Action,
) -> Result<(String, Option<Duration>), CliError> {
    let (container, mut client) = (address.container, context.session.blobs());
    if address.name.is_empty() {
        let action = Some(of_container(action));
        let request = LeaseContainerRequest { container, action, ..Default::default() };
        let leased = client.lease_container(request).await?.into_inner();
        return Ok((leased.lease_id, leased.remaining));
    }
    let (blob, action) = (address.name, Some(action));
    let request = LeaseBlobRequest { container, blob, action, ..Default::default() };
    let leased = client.lease_blob(request).await?.into_inner();
    Ok((leased.lease_id, leased.remaining))
}

fn of_container(action: Action) -> ContainerAction {
    match action {
        Action::Acquire(acquire) => ContainerAction::Acquire(acquire),
        Action::Renew(renew) => ContainerAction::Renew(renew),
        Action::Change(change) => ContainerAction::Change(change),
        Action::Release(release) => ContainerAction::Release(release),
        Action::Break(it) => ContainerAction::Break(it),
    }
}

/// The state of a lease, such as `leased`; none of what has no lease, such as a snapshot or what is deleted.
pub(super) fn state(lease: Option<&Lease>) -> Option<String> {
    let name = lease.map(|lease| lease.state().as_str_name())?;
    Some(name.strip_prefix("LEASE_STATE_").unwrap_or(name).to_ascii_lowercase())
}

//! `policy`: the stored access policies of a table, a queue or a container.

use clap::{Args, Subcommand};
use prost_types::Timestamp;
use serde_json::json;
use trestle_command::{errors::CliError, output::Context};
use trestle_model::time::{Clock as _, SystemClock};
use trestle_proto::{
    blob::v1::{
        GetContainerAccessPoliciesRequest, PublicAccess, SetContainerAccessPoliciesRequest,
    },
    queue::v1::{GetQueueAccessPoliciesRequest, SetQueueAccessPoliciesRequest},
    service::v1::AccessPolicy,
    table::v1::{GetTableAccessPoliciesRequest, SetTableAccessPoliciesRequest},
};

use crate::{datetime, sas};

/// Commands on stored access policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies
    List {
        /// Name of the table, queue or container
        name: String,
    },
    /// Set a policy; it replaces one of that id
    Set(PolicyArgs),
    /// Delete a policy: signatures that name it grant nothing from the next call on
    Delete {
        /// Name of the table, queue or container
        name: String,
        /// Id of the policy
        id: String,
    },
}

/// What has access policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyOwner {
    /// A table.
    Table,
    /// A queue.
    Queue,
    /// A container.
    Container,
}

/// The stored access policies of one resource.
struct FetchedPolicies {
    policies: Vec<AccessPolicy>,
    /// What callers without credentials may read of a container: the call that replaces policies replaces this too.
    public_access: PublicAccess,
}

impl From<Vec<AccessPolicy>> for FetchedPolicies {
    fn from(policies: Vec<AccessPolicy>) -> Self {
        Self { policies, public_access: PublicAccess::Unspecified }
    }
}

/// Arguments of `policy set`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Name of the table, queue or container
    name: String,
    /// Id of the policy, which signatures name
    id: String,
    /// Letters: of a table r read, a add, u update, d delete; of a queue r, a, u, p process; of a container those in
    /// `trestle sas container --help`
    #[arg(long, value_name = "LETTERS")]
    permissions: Option<String>,
    /// When it ends to grant: a time such as 2026-01-31T08:00Z, or from now on 30m, 8h, 7d
    #[arg(long, value_name = "TIME")]
    expiry: Option<String>,
    /// When it begins to grant
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
}

impl PolicyCommand {
    /// The table, queue or container.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::List { name } | Self::Delete { name, .. } => name,
            Self::Set(args) => &args.name,
        }
    }
}

impl PolicyArgs {
    fn policy(&self) -> Result<AccessPolicy, CliError> {
        Ok(AccessPolicy {
            id: self.id.clone(),
            start_time: moment("--start", self.start.clone())?,
            expiry_time: moment("--expiry", self.expiry.clone())?,
            permissions: self.permissions.clone(),
        })
    }
}

/// Shows or changes the policies of a table, a queue or a container.
///
/// The service replaces all policies at once, so two changes at the same time may lose one.
pub(crate) async fn run(
    context: &mut Context,
    of: PolicyOwner,
    command: PolicyCommand,
) -> Result<(), CliError> {
    let name = command.name().to_owned();
    // Malformed times are found before a call.
    let given = match &command {
        PolicyCommand::Set(args) => Some(args.policy()?),
        PolicyCommand::List { .. } | PolicyCommand::Delete { .. } => None,
    };
    let mut stored = get(context, of, name.clone()).await?;
    let policies = &mut stored.policies;
    let (id, verb) = match command {
        PolicyCommand::List { .. } => {
            let records: Vec<_> = policies.iter().map(record).collect();
            context
                .output
                .records(&records, &["id", "permissions", "start_time", "expiry_time"])?;
            return context.output.unless_empty(!records.is_empty(), "no policies");
        }
        PolicyCommand::Set(PolicyArgs { id, .. }) => {
            if let Some(policy) = given {
                match policies.iter_mut().find(|found| found.id == id) {
                    Some(found) => *found = policy,
                    None => policies.push(policy),
                }
            }
            (id, "set")
        }
        PolicyCommand::Delete { id, .. } => {
            let before = policies.len();
            policies.retain(|policy| policy.id != id);
            if policies.len() == before {
                let rule = format!("policy not found: name=`{name}`, id=`{id}`");
                return Err(tonic::Status::not_found(rule).into());
            }
            (id, "deleted")
        }
    };
    set(context, of, name.clone(), stored).await?;
    let text = format!("{verb} policy {id} of {name}");
    context.output.either(&text, &json!({ "name": name, "id": id, verb: true }))
}

async fn get(
    context: &Context,
    of: PolicyOwner,
    name: String,
) -> Result<FetchedPolicies, CliError> {
    let session = &context.session;
    Ok(match of {
        PolicyOwner::Table => {
            let request = GetTableAccessPoliciesRequest { table: name };
            let found = session.table().get_table_access_policies(request).await?;
            found.into_inner().policies.into()
        }
        PolicyOwner::Queue => {
            let request = GetQueueAccessPoliciesRequest { queue: name };
            let found = session.queues().get_queue_access_policies(request).await?;
            found.into_inner().policies.into()
        }
        PolicyOwner::Container => {
            let request = GetContainerAccessPoliciesRequest { container: name };
            let found = session.blobs().get_container_access_policies(request).await?.into_inner();
            let public_access = found.container.unwrap_or_default().public_access();
            FetchedPolicies { policies: found.policies, public_access }
        }
    })
}

async fn set(
    context: &Context,
    of: PolicyOwner,
    name: String,
    FetchedPolicies { policies, public_access }: FetchedPolicies,
) -> Result<(), CliError> {
    match of {
        PolicyOwner::Table => {
            let request = SetTableAccessPoliciesRequest { table: name, policies };
            context.session.table().set_table_access_policies(request).await?;
        }
        PolicyOwner::Queue => {
            let request = SetQueueAccessPoliciesRequest { queue: name, policies };
            context.session.queues().set_queue_access_policies(request).await?;
        }
        PolicyOwner::Container => {
            let request = SetContainerAccessPoliciesRequest {
                container: name,
                policies,
                public_access: public_access.into(),
                ..Default::default()
            };
            context.session.blobs().set_container_access_policies(request).await?;
        }
    }
    Ok(())
}

fn record(policy: &AccessPolicy) -> serde_json::Value {
    json!({
        "id": policy.id,
        "permissions": policy.permissions,
        "start_time": policy.start_time.as_ref().and_then(datetime::format),
        "expiry_time": policy.expiry_time.as_ref().and_then(datetime::format),
    })
}

/// A time, or a duration from now.
fn moment(flag: &'static str, text: Option<String>) -> Result<Option<Timestamp>, CliError> {
    let Some(text) = text else { return Ok(None) };
    let time = sas::moment(flag, text, SystemClock.now());
    let time = time.map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(Some(time.ticks().into()))
}

//! `policy`: the stored access policies of a table or a queue.

use clap::{Args, Subcommand};
use prost_types::Timestamp;
use serde_json::json;
use trestle_proto::{
    queue::v1::{GetQueueAccessPoliciesRequest, SetQueueAccessPoliciesRequest},
    service::v1::AccessPolicy,
    table::v1::{GetTableAccessPoliciesRequest, SetTableAccessPoliciesRequest},
};
use trestle_service::clock::{Clock as _, SystemClock};

use super::DataService;
use crate::{datetime, errors::CliError, output::Context, sas};

/// Commands on stored access policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies
    List {
        /// Name of the table or queue
        name: String,
    },
    /// Set a policy; it replaces one of that id
    Set(PolicyArgs),
    /// Delete a policy: signatures that name it grant nothing from the next call on
    Delete {
        /// Name of the table or queue
        name: String,
        /// Id of the policy
        id: String,
    },
}

/// Arguments of `policy set`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Name of the table or queue
    name: String,
    /// Id of the policy, which signatures name
    id: String,
    /// Letters: of a table r read, a add, u update, d delete; of a queue r, a, u, p process
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
    /// The table or queue.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::List { name } | Self::Delete { name, .. } => name,
            Self::Set(args) => &args.name,
        }
    }
}

/// Shows or changes the policies of a table or a queue.
///
/// The service replaces all policies at once, so two changes at the same time may lose one.
pub(crate) async fn run(
    context: &mut Context,
    of: DataService,
    command: PolicyCommand,
) -> Result<(), CliError> {
    let name = command.name().to_owned();
    let mut policies = get(context, of, name.clone()).await?;
    let (id, verb) = match command {
        PolicyCommand::List { .. } => {
            let records: Vec<_> = policies.iter().map(record).collect();
            context
                .output
                .records(&records, &["id", "permissions", "start_time", "expiry_time"])?;
            return context.output.unless_empty(!records.is_empty(), "no policies");
        }
        PolicyCommand::Set(args) => {
            let policy = AccessPolicy {
                id: args.id.clone(),
                start_time: moment("--start", args.start)?,
                expiry_time: moment("--expiry", args.expiry)?,
                permissions: args.permissions,
            };
            match policies.iter_mut().find(|found| found.id == args.id) {
                Some(found) => *found = policy,
                None => policies.push(policy),
            }
            (args.id, "set")
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
    set(context, of, name.clone(), policies).await?;
    let text = format!("{verb} policy {id} of {name}");
    context.output.either(&text, &json!({ "name": name, "id": id, verb: true }))
}

async fn get(
    context: &Context,
    of: DataService,
    name: String,
) -> Result<Vec<AccessPolicy>, CliError> {
    Ok(match of {
        DataService::Table => {
            let request = GetTableAccessPoliciesRequest { table: name };
            context.session.table().get_table_access_policies(request).await?.into_inner().policies
        }
        DataService::Queue => {
            let request = GetQueueAccessPoliciesRequest { queue: name };
            context.session.queues().get_queue_access_policies(request).await?.into_inner().policies
        }
    })
}

async fn set(
    context: &Context,
    of: DataService,
    name: String,
    policies: Vec<AccessPolicy>,
) -> Result<(), CliError> {
    match of {
        DataService::Table => {
            let request = SetTableAccessPoliciesRequest { table: name, policies };
            context.session.table().set_table_access_policies(request).await?;
        }
        DataService::Queue => {
            let request = SetQueueAccessPoliciesRequest { queue: name, policies };
            context.session.queues().set_queue_access_policies(request).await?;
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

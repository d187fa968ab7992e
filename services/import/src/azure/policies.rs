//! Stored access policies of a table, a queue or a container of an account.

use serde::Deserialize;
use trestle_command::errors::CliError;
use trestle_proto::service::v1::AccessPolicy;

use super::{
    connection::AzureAuthority,
    http::{AzureRequest, Http, Service},
    xml,
};
use crate::{
    plan::{ImportPlan, PolicyDocument, policies},
    progress::Skipped,
};

#[derive(Debug, Deserialize)]
struct Identifiers {
    #[serde(default, rename = "SignedIdentifier")]
    policies: Vec<PolicyDocument>,
}

/// Reads the policies; unreadable ones are skipped in the plan.
pub(super) async fn read(
    http: &Http,
    service: Service,
    path: String,
    whose: &str,
    plan: &mut ImportPlan,
) -> Result<Vec<AccessPolicy>, CliError> {
    let read = match &http.connection.authority {
        AzureAuthority::Signature(_) => {
            Err("a signature may not read them: set them here, or give a key".to_owned())
        }
        AzureAuthority::Key(_) => {
            let query = match service {
                Service::Blobs => "restype=container&comp=acl",
                Service::Tables | Service::Queues => "comp=acl",
            };
            let request = AzureRequest::get(service, path, query.to_owned());
            let answer = http.send(&request, &format!("policies of {whose}")).await?;
            xml::parse(answer.body()).and_then(|read: Identifiers| policies(read.policies))
        }
    };
    Ok(read.unwrap_or_else(|why| {
        plan.skipped.push(Skipped::new(whose, "access policies", why));
        Vec::new()
    }))
}

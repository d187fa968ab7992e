//! `container`: create, list, show and delete containers.

use serde_json::{Value, json};
use tonic::Code;
use trestle_command::{
    confirm::{confirm, require_found},
    errors::CliError,
    output::Context,
};
use trestle_proto::blob::v1::{
    Container, ContainerConditions, CreateContainerRequest, DeleteContainerRequest,
    GetContainerRequest, ListContainersRequest, PublicAccess, UndeleteContainerRequest,
};

use super::{ContainerCommand, args::PublicAccessArg, lease};
use crate::{
    datetime,
    service::{PolicyOwner, run_policy},
};

/// Runs a command.
pub(super) async fn run(context: &mut Context, command: ContainerCommand) -> Result<(), CliError> {
    match command {
        ContainerCommand::Create { container, if_not_exists, public_access } => {
            create(context, container, (if_not_exists, public_access)).await
        }
        ContainerCommand::List { prefix, deleted } => list(context, prefix, deleted).await,
        ContainerCommand::Undelete { container, deleted_version } => {
            undelete(context, container, deleted_version).await
        }
        ContainerCommand::Policy(command) => {
            run_policy(context, PolicyOwner::Container, command).await
        }
        ContainerCommand::Stat { container } => stat(context, container).await,
        ContainerCommand::Delete { container, yes, lease_id } => {
            if !yes {
                let request =
                    GetContainerRequest { container: container.clone(), ..Default::default() };
                require_found(context.session.blobs().get_container(request).await)?;
            }
            confirm(yes, "deleting a container", "container", &container)?;
            delete(context, container, lease_id).await
        }
    }
}

async fn create(
    context: &mut Context,
    name: String,
    (if_not_exists, public_access): (bool, Option<PublicAccessArg>),
) -> Result<(), CliError> {
    let public_access = match public_access {
        None => PublicAccess::Unspecified,
        Some(PublicAccessArg::Blob) => PublicAccess::Blob,
        Some(PublicAccessArg::Container) => PublicAccess::Container,
    };
    let public_access = public_access.into();
    let container = Container { name: name.clone(), public_access, ..Default::default() };
    let request = CreateContainerRequest { container: Some(container) };
    let created = match context.session.blobs().create_container(request).await {
        Ok(_) => true,
        Err(status) if if_not_exists && status.code() == Code::AlreadyExists => false,
        Err(status) => return Err(status.into()),
    };
    let text = match created {
        true => format!("created container {name}"),
        false => format!("container {name} exists already"),
    };
    context.output.either(&text, &json!({ "container": name, "created": created }))
}

async fn list(context: &mut Context, prefix: String, deleted: bool) -> Result<(), CliError> {
    let mut columns = vec!["container", "last_modified", "lease"];
    columns.extend(deleted.then_some(["version", "delete_time"]).into_iter().flatten());
    if !context.output.is_table() {
        columns.extend(["etag", "create_time", "public_access", "metadata"]);
    }
    let (mut page_token, mut printed) = (String::new(), false);
    loop {
        let request = ListContainersRequest {
            prefix: prefix.clone(),
            page_token,
            include_metadata: true,
            include_deleted: deleted,
            ..Default::default()
        };
        let page = context.session.blobs().list_containers(request).await?.into_inner();
        let records: Vec<_> = page.containers.iter().map(record).collect();
        context.output.records(&records, &columns)?;
        printed |= !records.is_empty();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return context.output.unless_empty(printed, "no containers");
        }
    }
}

async fn stat(context: &mut Context, container: String) -> Result<(), CliError> {
    let request = GetContainerRequest { container, ..Default::default() };
    let found = context.session.blobs().get_container(request).await?.into_inner().container;
    let found = found.ok_or_else(|| CliError::Protocol("no container".to_owned()))?;
    context.output.record(["Property", "Value"], &record(&found))
}

async fn delete(
    context: &mut Context,
    container: String,
    lease_id: String,
) -> Result<(), CliError> {
    let conditions = Some(ContainerConditions { lease_id, ..Default::default() });
    let request = DeleteContainerRequest { container: container.clone(), conditions };
    context.session.blobs().delete_container(request).await?;
    let text = format!("deleted container {container}");
    context.output.either(&text, &json!({ "container": container, "deleted": true }))
}

fn record(container: &Container) -> Value {
    json!({
        "container": container.name,
        "etag": container.etag,
        "last_modified": container.last_modified.as_ref().and_then(datetime::format),
        "create_time": container.create_time.as_ref().and_then(datetime::format),
        "lease": lease::state(container.lease.as_ref()),
        "public_access": match container.public_access() {
            PublicAccess::Unspecified => None,
            PublicAccess::Blob => Some("blob"),
            PublicAccess::Container => Some("container"),
        },
        "version": Some(&container.version).filter(|version| !version.is_empty()),
        "delete_time": container.delete_time.as_ref().and_then(datetime::format),
        "metadata": container.metadata,
    })
}

/// Restores a deleted container with its blobs.
async fn undelete(context: &mut Context, name: String, version: String) -> Result<(), CliError> {
    let object = json!({ "container": name, "restored": true });
    let text = format!("restored container {name}");
    let request = UndeleteContainerRequest { container: name, version };
    context.session.blobs().undelete_container(request).await?;
    context.output.either(&text, &object)
}

//! `import trestle`: another server, over gRPC. It is only read.

use std::path::PathBuf;

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tonic::{Code, Response, Status};
use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    retry::{Temporary as _, repeated},
    selection::{Renamed, Selection},
};
use trestle_proto::{service::v1::AccessPolicy, table::v1::GetServiceStatsRequest};

use super::{
    ImportTarget, Source,
    args::{CopyArgs, ImportTrestleArgs},
    plan::ImportPlan,
    progress::Skipped,
};

mod blobs;
mod queues;
mod tables;

use blobs::ServerBlobs;

/// A server to copy from.
pub struct TrestleSource {
    /// Its connection, which is used for reads only.
    pub session: Session,
    /// Names it in errors, and identifies it in the checkpoint: its endpoint, or the backup that it shows.
    pub name: String,
    /// The account of the calls, if it is known.
    pub account: Option<String>,
    /// The default path of the checkpoint.
    pub checkpoint: PathBuf,
}

/// Copies from a server with an open session into the server of `client`, and prints the comparison of both sides.
///
/// The result is that of `trestle import trestle`. Must be called on a Tokio runtime.
///
/// # Errors
/// A selected name that is given twice, or that the source does not have; targets that are not empty, unless `copy`
/// allows them; errors of a server; items that were not copied, after the comparison was printed.
pub async fn import_from(
    server: TrestleSource,
    selection: &Selection,
    copy: &CopyArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    check(selection, copy)?;
    let session = Session::connect(client).await?;
    if server.is_target(&session, client).await {
        selection.check_on_one_server()?;
    }
    let (source, plan) = Trestle::open(server, selection, copy).await?;
    super::import(&source, plan, copy, client, &session).await
}

/// Runs `import trestle`.
pub(super) async fn run(args: ImportTrestleArgs, client: &ClientArgs) -> Result<(), CliError> {
    let ImportTrestleArgs { server, selection, copy } = args;
    check(&selection, &copy)?;
    let server = server.resolve(client)?;
    let session = match Session::connect(&server).await {
        Ok(session) => session,
        Err(error) => return Err(server.of_source(error).await),
    };
    let checkpoint = PathBuf::from(format!("{}.trestle-import", file_name(&server.endpoint)));
    let account = server.account_name();
    let server = TrestleSource { session, name: server.endpoint, account, checkpoint };
    import_from(server, &selection, &copy, client).await
}

fn check(selection: &Selection, copy: &CopyArgs) -> Result<(), CliError> {
    if copy.skip_blobs && !selection.containers.is_empty() {
        return Err(CliError::Usage("--container cannot be used with --skip-blobs".to_owned()));
    }
    selection.check()
}

/// The host and the port of an endpoint, as the name of a file.
fn file_name(endpoint: &str) -> String {
    let (_, authority) = endpoint.split_once("://").unwrap_or(("", endpoint));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    authority.trim_end_matches('/').chars().map(plain).collect()
}

impl TrestleSource {
    /// Whether it is the account of the server that is copied into.
    async fn is_target(&self, session: &Session, client: &ClientArgs) -> bool {
        if let (Some(source), Some(target)) = (&self.account, client.account_name())
            && *source != target
        {
            return false;
        }
        if self.name == client.endpoint {
            return true;
        }
        let (source, target) = tokio::join!(instance(&self.session), instance(session));
        source.is_some() && source == target
    }

    /// Makes a call, and retries temporary errors.
    async fn call<T>(
        &self,
        call: impl AsyncFnMut() -> Result<Response<T>, Status>,
        what: &str,
    ) -> Result<T, CliError> {
        let called = repeated(call).await;
        called.map(Response::into_inner).map_err(|status| self.failed(status, what))
    }

    /// Makes a call on a selected name.
    async fn find<T>(
        &self,
        call: impl AsyncFnMut() -> Result<Response<T>, Status>,
        flag: &str,
        name: &Renamed,
    ) -> Result<T, CliError> {
        match repeated(call).await {
            Ok(found) => Ok(found.into_inner()),
            Err(status) if status.code() == Code::NotFound => Err(CliError::Usage(format!(
                "{flag}: the source does not have it: value=`{name}`, endpoint=`{}`",
                self.name
            ))),
            Err(status) if status.code() == Code::InvalidArgument => {
                Err(CliError::Usage(format!("{flag}: {}: value=`{name}`", status.message())))
            }
            Err(status) => Err(self.failed(status, &format!("{flag}={name}"))),
        }
    }

    /// Reads access policies; those that may not be read are skipped in the plan.
    async fn policies<T>(
        &self,
        call: impl AsyncFnMut() -> Result<Response<T>, Status>,
        whose: &str,
        policies: impl FnOnce(T) -> Vec<AccessPolicy>,
        plan: &mut ImportPlan,
    ) -> Result<Vec<AccessPolicy>, CliError> {
        match repeated(call).await {
            Ok(read) => Ok(policies(read.into_inner())),
            Err(status) if status.code() == Code::PermissionDenied => {
                let why = status.message().to_owned();
                plan.skipped.push(Skipped::new(whose, "access policies", why));
                Ok(Vec::new())
            }
            Err(status) => Err(self.failed(status, &format!("policies of {whose}"))),
        }
    }

    /// The error of a read, with the source: otherwise it would look like one of the target.
    fn failed(&self, error: impl Into<CliError>, what: &str) -> CliError {
        match error.into() {
            CliError::Call(status) => CliError::Source {
                text: format!(
                    "the source rejects {what}: {}: endpoint=`{}`",
                    status.message(),
                    self.name
                ),
                busy: status.is_temporary() || status.code() == Code::DeadlineExceeded,
            },
            CliError::Connect { cause, .. } => CliError::Source {
                text: format!(
                    "the source cannot be reached for {what}: {cause}: endpoint=`{}`",
                    self.name
                ),
                busy: true,
            },
            other => other,
        }
    }
}

/// The process of a server; none where it does not report one.
async fn instance(session: &Session) -> Option<String> {
    let stats = session.table().get_service_stats(GetServiceStatsRequest {}).await.ok()?;
    Some(stats.into_inner().instance_id).filter(|id| !id.is_empty())
}

/// What is copied from a server.
struct Trestle {
    server: TrestleSource,
    /// As it was given, for the checkpoint.
    selection: Selection,
    tables: Vec<Renamed>,
    queues: Vec<Renamed>,
    containers: Vec<Renamed>,
    parallel: usize,
    skip_blobs: bool,
    snapshots: bool,
}

impl Trestle {
    /// Lists what is selected.
    async fn open(
        server: TrestleSource,
        selection: &Selection,
        copy: &CopyArgs,
    ) -> Result<(Self, ImportPlan), CliError> {
        let why_remaining =
            "in the source: it changed meanwhile, or is of a version that shows the first 32";
        let mut plan = ImportPlan { why_remaining, ..ImportPlan::default() };
        let is_all = selection.is_everything();
        let tables = (!is_all).then_some(selection.tables.as_slice());
        let tables = tables::plan(&server, tables, &mut plan).await?;
        let queues = (!is_all).then_some(selection.queues.as_slice());
        let queues = queues::plan(&server, queues, &mut plan).await?;
        let containers = (!is_all).then_some(selection.containers.as_slice());
        let containers = match copy.skip_blobs {
            true => Vec::new(),
            false => blobs::plan(&server, containers, &mut plan).await?,
        };
        let source = Self {
            server,
            selection: selection.clone(),
            tables,
            queues,
            containers,
            parallel: copy.parallel.into(),
            skip_blobs: copy.skip_blobs,
            snapshots: copy.snapshots,
        };
        Ok((source, plan))
    }
}

impl Source for Trestle {
    fn identity(&self) -> Result<Value, CliError> {
        let TrestleSource { name, account, .. } = &self.server;
        let texts = |names: &[Renamed]| names.iter().map(Renamed::to_string).collect::<Vec<_>>();
        let Selection { tables, queues, containers } = &self.selection;
        Ok(json!({
            "server": name, "account": account, "--table": texts(tables), "--queue": texts(queues),
            "--container": texts(containers), "--skip-blobs": self.skip_blobs,
            "--snapshots": self.snapshots,
        }))
    }

    fn checkpoint(&self) -> PathBuf {
        self.server.checkpoint.clone()
    }

    fn bytes(&self) -> Option<u64> {
        None
    }

    async fn copy(&self, target: ImportTarget<'_>, _: &ImportPlan) -> Result<(), CliError> {
        let server = &self.server;
        let (parallel, snapshots) = (self.parallel, self.snapshots);
        let tables = self.tables.iter().map(|name| tables::copy(server, target, name));
        let tables = futures::stream::iter(tables).buffer_unordered(parallel);
        let queues = self.queues.iter().map(|name| queues::copy(server, target, name));
        let queues = futures::stream::iter(queues).buffer_unordered(parallel);
        let blobs = ServerBlobs { server, target, snapshots, parallel };
        tokio::try_join!(
            tables.try_collect::<()>(),
            queues.try_collect::<()>(),
            blobs.copy(&self.containers),
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

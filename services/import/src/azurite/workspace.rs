//! The content of an Azurite workspace, listed by one scan that also verifies that its files are complete: a
//! damaged workspace is rejected before anything is written.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use trestle_command::{errors::CliError, files};
use trestle_model::edm::datetime;

use super::{
    blob_documents::ContainerDocument,
    documents::{QueueDocument, TableDocument},
    loki::{self, Collection},
};
use crate::{
    args::CopyArgs,
    containers,
    plan::{self, ImportPlan, PlannedContainer, PlannedQueue, PlannedTable},
    progress::Skipped,
    queues, tables,
};

const TABLES_FILE: &str = "__azurite_db_table__.json";
const QUEUES_FILE: &str = "__azurite_db_queue__.json";
const BLOBS_FILE: &str = "__azurite_db_blob__.json";
const EXTENTS_FILE: &str = "__azurite_db_blob_extent__.json";
const EXTENTS_DIRECTORY: &str = "__blobstorage__";
const TEXTS_DIRECTORY: &str = "__queuestorage__";
const TABLES: &str = "$TABLES_COLLECTION$";
const QUEUES: &str = "$QUEUES_COLLECTION$";
const CONTAINERS: &str = "$CONTAINERS_COLLECTION$";
const SERVICES: &str = "$SERVICES_COLLECTION$";
/// Messages of all queues.
pub(super) const MESSAGES: &str = "$MESSAGES_COLLECTION$";

/// Blobs of all containers.
pub(super) const BLOBS: &str = "$BLOBS_COLLECTION$";

/// The files of a workspace that hold tables, queues and blobs.
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) directory: PathBuf,
    pub(super) tables: Option<PathBuf>,
    pub(super) queues: Option<PathBuf>,
    pub(super) blobs: Option<PathBuf>,
    /// The list of the files with the content of blobs.
    pub(super) extent_list: Option<PathBuf>,
}

impl Workspace {
    /// Finds the files; without those of blobs where they are skipped.
    pub(super) fn find(directory: &Path, copy: &CopyArgs) -> Result<Self, CliError> {
        let shown = directory.display();
        if shown.to_string().contains("://") {
            return Err(CliError::Usage(
                "Azurite keeps only blobs in an SQL database; its tables and queues are in the \
                 directory that it was given with --location: name that directory"
                    .to_owned(),
            ));
        }
        let directory = directory
            .canonicalize()
            .map_err(CliError::input(format!("cannot read the workspace `{shown}`")))?;
        // What is there and no file is an error when it is read.
        let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
        let file = |name: &str| Some(directory.join(name)).filter(exists);
        let found = Self {
            tables: file(TABLES_FILE),
            queues: file(QUEUES_FILE),
            blobs: file(BLOBS_FILE).filter(|_| !copy.skip_blobs),
            extent_list: file(EXTENTS_FILE).filter(|_| !copy.skip_blobs),
            directory: directory.clone(),
        };
        if found.files().next().is_none() {
            return Err(CliError::Usage(format!(
                "the folder is not an Azurite workspace, which has {TABLES_FILE}, {QUEUES_FILE} or \
                 {BLOBS_FILE} in it: `{shown}`"
            )));
        }
        Ok(found)
    }

    /// The databases.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.tables, &self.queues, &self.blobs].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The files of message texts.
    pub(super) fn texts(&self) -> PathBuf {
        self.directory.join(TEXTS_DIRECTORY)
    }

    /// The files with the content of blobs.
    pub(super) fn extents(&self) -> PathBuf {
        self.directory.join(EXTENTS_DIRECTORY)
    }

    /// Size and time of each database: a change means another workspace.
    pub(super) fn versions(&self) -> Result<Vec<String>, CliError> {
        self.files()
            .map(|path| {
                let found = fs::symlink_metadata(path)
                    .and_then(|found| Ok((found.len(), found.modified()?)));
                let found = found.map_err(CliError::file(files::cannot("read", path)))?;
                let (bytes, time) = (found.0, datetime::format(&found.1.into()));
                Ok(format!("{bytes} bytes of {}", time.unwrap_or_default()))
            })
            .collect()
    }
}

/// The content of a workspace, of every account.
#[derive(Default)]
struct WorkspaceScan {
    tables: Vec<TableDocument>,
    queues: Vec<QueueDocument>,
    containers: Vec<ContainerDocument>,
    /// Accounts with settings of a service.
    settings: BTreeSet<String>,
}

impl WorkspaceScan {
    /// Adds the documents of a collection. Those of others are not looked at, but were complete.
    fn add(&mut self, collection: &Collection<'_>) -> Result<(), CliError> {
        for (number, json) in collection.documents(0) {
            let malformed = |error: serde_json::Error| {
                let what = format!("document {number} of `{}`", collection.name);
                CliError::Usage(format!("{what} is not as Azurite writes it: {error}"))
            };
            match collection.name.as_str() {
                TABLES => self.tables.push(serde_json::from_str(json).map_err(malformed)?),
                CONTAINERS => self.containers.push(serde_json::from_str(json).map_err(malformed)?),
                QUEUES => self.queues.push(serde_json::from_str(json).map_err(malformed)?),
                SERVICES => {
                    let settings: Value = serde_json::from_str(json).map_err(malformed)?;
                    let account = settings.get("accountName").and_then(Value::as_str);
                    self.settings.extend(account.map(str::to_owned));
                }
                _ => break,
            }
        }
        Ok(())
    }
}

/// Reads the content of an account in a workspace, which must be named if there are several.
pub(super) async fn scan(
    workspace: &Workspace,
    account: Option<&str>,
) -> Result<(String, ImportPlan), CliError> {
    let mut scan = WorkspaceScan::default();
    for file in workspace.files() {
        let text = loki::read(file).await?;
        loki::parse(&text, file)?.collections.iter().try_for_each(|found| scan.add(found))?;
    }
    let account = choose(&scan, account)?;
    let plan = plan(scan, &account);
    Ok((account, plan))
}

fn choose(scan: &WorkspaceScan, account: Option<&str>) -> Result<String, CliError> {
    let tables = scan.tables.iter().map(|table| table.account.as_str());
    let queues = scan.queues.iter().map(|queue| queue.account.as_str());
    let containers = scan.containers.iter().map(|container| container.account.as_str());
    let accounts: BTreeSet<&str> = tables.chain(queues).chain(containers).collect();
    let names = || accounts.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (account, accounts.len()) {
        (Some(account), _) if accounts.contains(account) => Ok(account.to_owned()),
        (_, 0) => {
            let rule = "there are no tables, queues and containers in the workspace";
            Err(CliError::Usage(rule.to_owned()))
        }
        (Some(account), _) => {
            let rule =
                "--from-account: the workspace has no tables, queues or containers of this account";
            Err(CliError::Usage(format!("{rule}: `{account}`; it has {}", names())))
        }
        (None, 1) => Ok(accounts.iter().map(ToString::to_string).collect()),
        (None, _) => Err(CliError::Usage(format!(
            "the workspace has several accounts: name one with --from-account: {}",
            names()
        ))),
    }
}

fn plan(scan: WorkspaceScan, account: &str) -> ImportPlan {
    let (mut plan, mut names) = (ImportPlan::default(), BTreeSet::new());
    let policies = |plan: &mut ImportPlan, documents: Option<_>, whose: String| {
        plan::policies(documents.unwrap_or_default()).unwrap_or_else(|why| {
            plan.skipped.push(Skipped::new(whose, "access policies", why));
            Vec::new()
        })
    };
    for table in scan.tables.into_iter().filter(|table| table.account == account) {
        let whose = tables::whose(&table.table);
        if !names.insert(tables::folded(&table.table)) {
            let why = "another table has this name in another case".to_owned();
            plan.skipped.push(Skipped::new(whose, "", why));
            continue;
        }
        let policies = policies(&mut plan, table.policies, whose);
        plan.tables.push(PlannedTable { name: table.table, policies });
    }
    for queue in scan.queues.into_iter().filter(|queue| queue.account == account) {
        let policies = policies(&mut plan, queue.policies, queues::whose(&queue.name));
        let metadata = queue.metadata.unwrap_or_default();
        plan.queues.push(PlannedQueue {
            name: queue.name,
            metadata,
            policies,
            ..PlannedQueue::default()
        });
    }
    for container in scan.containers.into_iter().filter(|it| it.account == account) {
        let policies = policies(&mut plan, container.policies, containers::whose(&container.name));
        let public_access = container.properties.public_access.unwrap_or_default();
        plan.containers.push(PlannedContainer {
            name: container.name,
            metadata: container.metadata.unwrap_or_default(),
            public_access: plan::public_access(&public_access),
            policies,
        });
    }
    if scan.settings.contains(account) {
        let why = "cross-origin rules, logging and metrics are not copied: set them in the target";
        plan.skipped.push(Skipped::new("service properties", "", why.to_owned()));
    }
    plan
}

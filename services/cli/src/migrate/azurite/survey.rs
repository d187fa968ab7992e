//! What an Azurite workspace holds, found out in one reading that also shows that its files are
//! whole: a workspace that is damaged is refused before anything is written.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    documents::{QueueDocument, TableDocument},
    loki::{self, Interest},
};
use crate::{
    errors::CliError,
    migrate::{
        notes::Left,
        plan::{Plan, PlannedQueue, PlannedTable},
        queues, tables,
    },
};

const TABLES_FILE: &str = "__azurite_db_table__.json";
const QUEUES_FILE: &str = "__azurite_db_queue__.json";
const TEXTS_DIRECTORY: &str = "__queuestorage__";
const TABLES: &str = "$TABLES_COLLECTION$";
const QUEUES: &str = "$QUEUES_COLLECTION$";
const SERVICES: &str = "$SERVICES_COLLECTION$";
/// Messages of all queues.
pub(super) const MESSAGES: &str = "$MESSAGES_COLLECTION$";

/// The files of a workspace that hold tables and queues.
#[derive(Debug, Clone)]
pub(super) struct Workspace {
    pub(super) directory: PathBuf,
    pub(super) tables: Option<PathBuf>,
    pub(super) queues: Option<PathBuf>,
}

impl Workspace {
    /// Finds the files.
    ///
    /// # Errors
    /// A directory without them.
    pub(super) fn find(directory: &Path) -> Result<Self, CliError> {
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
        let file = |name: &str| Some(directory.join(name)).filter(|path| path.is_file());
        let found = Self {
            tables: file(TABLES_FILE),
            queues: file(QUEUES_FILE),
            directory: directory.clone(),
        };
        if found.tables.is_none() && found.queues.is_none() {
            return Err(CliError::Usage(format!(
                "is no workspace of Azurite, which has {TABLES_FILE} or {QUEUES_FILE} in it: \
                 `{shown}`"
            )));
        }
        Ok(found)
    }

    /// The databases.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.tables, &self.queues].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The files of message texts.
    pub(super) fn texts(&self) -> PathBuf {
        self.directory.join(TEXTS_DIRECTORY)
    }

    /// Size and time of each database: another one is another workspace.
    ///
    /// # Errors
    /// Files that cannot be looked at.
    pub(super) fn terms(&self) -> Result<Vec<String>, CliError> {
        self.files()
            .map(|path| {
                let what = || format!("cannot read `{}`", path.display());
                let metadata = fs::metadata(path).map_err(|error| CliError::file(what())(error))?;
                let time = metadata.modified().map_err(|error| CliError::file(what())(error))?;
                Ok(format!("{} bytes of {time:?}", metadata.len()))
            })
            .collect()
    }
}

/// What a workspace holds, of every account.
#[derive(Default)]
struct Survey {
    tables: Vec<TableDocument>,
    queues: Vec<QueueDocument>,
    /// Accounts with settings of a service.
    settings: BTreeSet<String>,
    more_bytes: Option<Box<dyn FnMut(u64)>>,
}

impl loki::Reader for Survey {
    fn interest(&mut self, collection: &str) -> Interest {
        match collection {
            TABLES | QUEUES | SERVICES => Interest::After(0),
            // Read over, which shows that it is whole.
            _ => Interest::Skip,
        }
    }

    fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError> {
        let malformed = |error: serde_json::Error| {
            let what = format!("document {number} of `{collection}` is not as Azurite writes it");
            CliError::Usage(format!("{what}: {error}"))
        };
        match collection {
            TABLES => self.tables.push(serde_json::from_str(json).map_err(malformed)?),
            QUEUES => self.queues.push(serde_json::from_str(json).map_err(malformed)?),
            _ => {
                let settings: serde_json::Value = serde_json::from_str(json).map_err(malformed)?;
                let account = settings.get("accountName").and_then(serde_json::Value::as_str);
                self.settings.extend(account.map(str::to_owned));
            }
        }
        Ok(())
    }

    fn bytes(&mut self, more: u64) {
        if let Some(tell) = &mut self.more_bytes {
            tell(more);
        }
    }
}

/// Reads what a workspace holds of an account, which may go unnamed where there is but one.
///
/// # Errors
/// Files that cannot be read or are not whole, and an account that is not told.
pub(super) fn survey(
    workspace: &Workspace,
    account: Option<&str>,
    more_bytes: Box<dyn FnMut(u64)>,
) -> Result<(String, Plan), CliError> {
    let mut survey = Survey { more_bytes: Some(more_bytes), ..Survey::default() };
    for file in workspace.files() {
        loki::read(file, &mut survey)?;
    }
    let account = choose(&survey, account)?;
    let plan = plan(survey, &account);
    Ok((account, plan))
}

fn choose(survey: &Survey, account: Option<&str>) -> Result<String, CliError> {
    let tables = survey.tables.iter().map(|table| table.account.as_str());
    let queues = survey.queues.iter().map(|queue| queue.account.as_str());
    let accounts: BTreeSet<&str> = tables.chain(queues).collect();
    let names = || accounts.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (account, accounts.len()) {
        (Some(account), _) if accounts.contains(account) => Ok(account.to_owned()),
        (_, 0) => {
            Err(CliError::Usage("there are no tables and no queues in the workspace".to_owned()))
        }
        (Some(account), _) => {
            let rule = "--from-account: the workspace holds nothing of this account";
            Err(CliError::Usage(format!("{rule}: `{account}`; it has {}", names())))
        }
        (None, 1) => Ok(accounts.iter().map(ToString::to_string).collect()),
        (None, _) => Err(CliError::Usage(format!(
            "the workspace has several accounts: name one with --from-account: {}",
            names()
        ))),
    }
}

fn plan(survey: Survey, account: &str) -> Plan {
    let mut plan = Plan::default();
    let mut names = BTreeSet::new();
    let left = |plan: &mut Plan, whose: String, which: &str, why: &str| {
        plan.left.push(Left { whose, which: which.to_owned(), why: why.to_owned() });
    };
    for mut table in survey.tables.into_iter().filter(|table| table.account == account) {
        let whose = tables::whose(&table.table);
        if !names.insert(tables::folded(&table.table)) {
            left(&mut plan, whose, "", "another table has this name in another case");
            continue;
        }
        let policies = table.policies().unwrap_or_else(|why| {
            left(&mut plan, whose, "access policies", &why);
            Vec::new()
        });
        plan.tables.push(PlannedTable { name: table.table, policies });
    }
    for mut queue in survey.queues.into_iter().filter(|queue| queue.account == account) {
        let policies = queue.policies().unwrap_or_else(|why| {
            left(&mut plan, queues::whose(&queue.name), "access policies", &why);
            Vec::new()
        });
        let metadata = queue.metadata.unwrap_or_default();
        plan.queues.push(PlannedQueue { name: queue.name, metadata, policies });
    }
    if survey.settings.contains(account) {
        let why = "cross-origin rules, logging and metrics are not copied: set them here";
        left(&mut plan, "service properties".to_owned(), "", why);
    }
    plan
}

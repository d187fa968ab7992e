//! What `trestle backup` needs of the services: which objects a row names, and what a restore changes.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use futures::future::LocalBoxFuture;
use trestle_backup::{
    BackupCommand, DiffArgs, MountedBackup, NamedObject, ObjectAreaName, ObjectName, RestoreArgs,
    StoreRules,
};
use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    outcome::{end_call, finish_call},
    output::{Output, report_line},
};
use trestle_import::{CopyArgs, TrestleSource};
use trestle_kv::Entry;
use trestle_model::name::AccountName;

use crate::{
    args::ConfigFileArgs, process_error::ProcessError, settings::Settings,
    shown_backup::ShownBackup, storage, store_id,
};

/// Most tables, key ranges or blobs that are copied at a time.
const AT_ONCE: u16 = 8;

/// The rules of every service.
#[must_use]
pub fn rules() -> StoreRules {
    StoreRules {
        keyspaces: storage::keyspaces(),
        objects_of,
        restored,
        store_id: |data_dir| {
            store_id::of(data_dir).map(|id| id.to_string()).map_err(std::io::Error::other)
        },
        engine_dir: storage::ENGINE_DIR,
    }
}

/// Sets the data directory that is backed up, by the configuration if no argument names it.
///
/// # Errors
/// Settings that cannot be used.
pub fn locate(
    command: &mut BackupCommand,
    load: impl FnOnce(Option<&Path>, Option<&Path>) -> Result<Settings, ProcessError>,
) -> Result<(), ProcessError> {
    let source = match command {
        BackupCommand::Create(args) => &mut args.source,
        BackupCommand::Follow(source) => source,
        _ => return Ok(()),
    };
    let file = ConfigFileArgs { config: source.config.clone() }.file();
    let settings = load(file.as_deref(), source.data_dir.as_deref())?;
    source.data_dir = Some(settings.storage.data_dir);
    Ok(())
}

/// Copies what is named of a backup into the server of a client. Errors go to standard error: a backup that cannot be
/// read, a name that it has not, targets that are not empty, errors of the server.
pub fn restore_named(args: RestoreArgs, client: &ClientArgs) -> LocalBoxFuture<'_, ExitCode> {
    Box::pin(async move { finish_call(restore_into(args, client).await, client).await })
}

async fn restore_into(args: RestoreArgs, client: &ClientArgs) -> Result<(), CliError> {
    let mounted = args.open(rules()).await?;
    let name = format!("{} of {}", mounted.id, mounted.instant);
    // In the current directory, where copies out of other backups may be at work.
    let checkpoint = PathBuf::from(format!("backup-{}.trestle-import", mounted.id));
    let named = args.named;
    let copy = CopyArgs {
        into_existing: named.into_existing,
        resume: named.resume,
        checkpoint: None,
        skip_blobs: false,
        snapshots: named.snapshots,
        parallel: AT_ONCE,
    };
    let shown = show(mounted, named.from_account, client).await?;
    let account = shown.client.account_name();
    let copied = async {
        let session = Session::connect(&shown.client).await?;
        let server = TrestleSource { session, name, account, checkpoint };
        trestle_import::import_from(server, &named.selection, &copy, client).await
    };
    let copied = copied.await;
    shown.stop().await;
    copied
}

/// Prints what differs between tables of a backup and those of the server of a client. Errors go to standard error: a
/// backup that cannot be read, a table that neither has, errors of the server.
pub fn diff(args: DiffArgs, client: &ClientArgs) -> LocalBoxFuture<'_, ExitCode> {
    Box::pin(async move { end_call(compare_tables(args, client).await, client, true).await })
}

async fn compare_tables(args: DiffArgs, client: &ClientArgs) -> Result<(), CliError> {
    let mounted = args.open(rules()).await?;
    let shown = show(mounted, args.from_account, client).await?;
    let mut output = Output::standard(&client.output);
    let compared = async {
        let (then, now) = (Session::connect(&shown.client).await?, Session::connect(client).await?);
        for table in &args.tables {
            trestle_cli::diff_table((&then, &now), table, &mut output).await?;
        }
        Ok(())
    };
    let compared = compared.await;
    shown.stop().await;
    let printed = output.finish();
    compared.and(printed)
}

/// Shows an account of a backup, that of the client if none is named.
async fn show(
    mounted: MountedBackup,
    account: Option<String>,
    client: &ClientArgs,
) -> Result<ShownBackup, CliError> {
    mounted.notes.iter().for_each(|note| report_line(note));
    let development = || AccountName::development().as_str().to_owned();
    let account = account.or_else(|| client.account_name()).unwrap_or_else(development);
    let shown = ShownBackup::start(mounted, &account, client).await;
    shown.map_err(|error| CliError::Usage(format!("the backup cannot be shown: {error}")))
}

pub(crate) fn objects_of(row: &Entry) -> Result<Vec<NamedObject>, String> {
    let named = |area| move |(path, bytes)| NamedObject { name: ObjectName { area, path }, bytes };
    let contents =
        trestle_blob::backup::objects_of(row)?.into_iter().map(named(ObjectAreaName::Blobs));
    let segment = trestle_log::backup::object_of(row)?.map(named(ObjectAreaName::Logs));
    Ok(contents.chain(segment).collect())
}

fn restored(row: Entry) -> Result<Option<Entry>, String> {
    match trestle_log::backup::is_restored(&row) {
        true => trestle_queue::backup::restored(row).map(Some),
        false => Ok(None),
    }
}

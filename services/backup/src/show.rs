//! `backup list` and `backup show`.

use serde_json::{Value, json};
use trestle_command::{errors::CliError, output::Output};

use crate::{
    args::{DetailArgs, ListArgs},
    coverage::Coverage,
    create::{show_json, with_damage},
    lists::Damage,
    manifest::BackupManifest,
    repository::Repository,
    verify,
};

/// What a list of backups shows.
const COLUMNS: [&str; 7] =
    ["id", "instant", "restorable_until", "rows", "objects", "sent_bytes", "state"];
/// The last instant that a backup and the changes after it can be restored to.
const UNTIL: &str = "restorable_until";

pub(crate) async fn list(args: &ListArgs, out: &mut Output) -> Result<(), CliError> {
    let text = args.target.text()?;
    let repository = Repository::open(text, None).await?;
    let ids = repository.backups().await?;
    let coverage = Coverage::new(repository.windows().await?);
    let mut records = Vec::with_capacity(ids.len());
    for id in &ids {
        records.push(record(id, repository.manifest(id).await, text, &coverage));
    }
    out.records(&records, &COLUMNS)?;
    out.unless_empty(!ids.is_empty(), "no backups")
}

/// A backup in a list, also one whose manifest cannot be read.
fn record(
    id: &str,
    manifest: Result<BackupManifest, String>,
    target: &str,
    coverage: &Coverage,
) -> Value {
    match manifest {
        Ok(manifest) => {
            let mut record = show_json(&manifest, target);
            let state = match manifest.damage.count == 0 {
                true => "complete",
                false => "with damage",
            };
            if let Some(fields) = record.as_object_mut() {
                fields.insert("state".to_owned(), json!(state));
                fields.insert(UNTIL.to_owned(), json!(coverage.until_text(&manifest)));
            }
            record
        }
        Err(reason) => json!({ "id": id, "target": target, "state": reason }),
    }
}

pub(crate) async fn show(args: &DetailArgs, out: &mut Output) -> Result<(), CliError> {
    let text = args.backup.target.text()?;
    let repository = Repository::open(text, args.key.read().await?).await?;
    let id = repository.id(args.backup.id.as_deref()).await?;
    let manifest = read(&repository, &id).await?;
    let mut shown = show_json(&manifest, text);
    if let Some(fields) = shown.as_object_mut() {
        let coverage = Coverage::new(repository.windows().await?);
        fields.insert(UNTIL.to_owned(), json!(coverage.until_text(&manifest)));
    }
    // What is damaged is encrypted with the rest, and the rest is shown without a key.
    let shown = match args.key.is_given() || manifest.recipients.is_empty() {
        true => with_damage(shown, &damage(&repository, &manifest).await?),
        false => shown,
    };
    out.record(["BACKUP", ""], &shown)
}

async fn damage(
    repository: &Repository,
    manifest: &BackupManifest,
) -> Result<Vec<Damage>, CliError> {
    repository.unlock(manifest)?;
    verify::entries(repository, &manifest.damage.lists).await
}

/// A manifest, for a command that cannot do without.
///
/// # Errors
/// One that cannot be read.
pub(crate) async fn read(repository: &Repository, id: &str) -> Result<BackupManifest, CliError> {
    repository.manifest(id).await.map_err(|reason| CliError::Source {
        text: format!("the backup cannot be read: id=`{id}`: {reason}"),
        busy: false,
    })
}

#[cfg(test)]
mod tests;

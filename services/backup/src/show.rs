//! `backup list` and `backup show`.

use serde_json::{Value, json};
use trestle_command::{errors::CliError, output::Output};

use crate::{
    args::{DetailArgs, ListArgs},
    coverage::Coverage,
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
    let manifest = repository.required_manifest(&id).await?;
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

/// The same with what is damaged.
pub(crate) fn with_damage(mut backup: Value, damage: &[Damage]) -> Value {
    if let Some(fields) = backup.as_object_mut() {
        fields.insert("damage".to_owned(), json!(damage));
    }
    backup
}

/// A backup for programs, without the names of what is damaged.
pub(crate) fn show_json(manifest: &BackupManifest, target: &str) -> Value {
    json!({
        "id": manifest.id,
        "target": target,
        "instant": manifest.instant,
        "completed": manifest.completed,
        "version": manifest.version,
        "store_id": manifest.store_id,
        "rows": manifest.rows(),
        "row_bytes": manifest.row_bytes(),
        "objects": manifest.objects.count,
        "object_bytes": manifest.objects.bytes,
        "sent_parts": manifest.sent.parts,
        "sent_bytes": manifest.sent.bytes,
        "seconds": manifest.sent.millis as f64 / 1000.0,
        "lists": manifest.lists().count(),
        "damaged": manifest.damage.count,
        "keys": manifest.recipients,
    })
}

#[cfg(test)]
mod tests;

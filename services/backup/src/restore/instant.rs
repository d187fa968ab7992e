//! `backup restore --to`.

use std::collections::HashMap;

use serde_json::json;
use trestle_command::{
    errors::CliError,
    output::{Output, bytes, counted},
};
use trestle_objects::ObjectsUrl;

use super::{Restore, begin, cannot_write, end, finish, named::InstantContents, replay::replay};
use crate::{
    DataDirectory, ObjectName,
    args::RestoreInstant,
    coverage::{Coverage, NotRestorable, RestorePlan},
    create::{broken, with_damage},
    lists::ObjectRef,
    manifest::{BackupManifest, time_text},
    repository::Repository,
    verify,
};

/// Objects that are named to people.
const DAMAGE_SHOWN: usize = 20;

/// Restores an instant into a directory, with the objects at a URL.
pub(super) async fn run(
    repository: &Repository,
    store: &DataDirectory,
    (to, url): (RestoreInstant, Option<&ObjectsUrl>),
    out: &mut Output,
) -> Result<(), CliError> {
    // In front of the manifests: a backup that is made meanwhile may need later windows.
    let coverage = Coverage::new(repository.windows().await?);
    let bases = bases(repository, out).await?;
    let plan = plan(&coverage, &bases, to)
        .map_err(|error| CliError::Usage(format!("{error}: target=`{}`", repository.text)))?;
    repository.use_backup(plan.base, &store.rules.keyspaces)?;
    let _lock = begin(&store.path, store.rules.engine_dir)?;
    let bar = out.progress(None, 0);
    bar.set_message("rows");
    let job = Restore { repository, manifest: plan.base, store };
    let storage = job.storage(url).await?;
    let objects = base_objects(repository, plan.base).await?;
    let writer = job.filled().await?;
    bar.set_message("changes");
    let (writer, mut replayed) = replay(repository, &plan, &store.rules, writer).await?;
    let mut known = objects;
    known.extend(std::mem::take(&mut replayed.objects));
    bar.set_message("objects");
    let (writer, named) = job.named_objects(writer, known, &storage).await?;
    // Versions that the lost store may have given by then are not given again.
    finish(writer, job.instant()?.max(plan.to).max(replayed.newest)).await?;
    end(store).map_err(cannot_write(&store.path))?;
    bar.finish_and_clear();
    if let Some(bad) = &replayed.unread {
        out.note(&format!(
            "changes that were in progress at the instant are left out, their window cannot be read: {bad}"
        ));
    }
    report(&plan, store, &named, out)
}

/// Every backup whose manifest can be read.
async fn bases(repository: &Repository, out: &Output) -> Result<Vec<BackupManifest>, CliError> {
    let mut bases = Vec::new();
    for id in repository.backups().await? {
        match repository.manifest(&id).await {
            Ok(manifest) => bases.push(manifest),
            Err(reason) => out.note(&format!("a backup is not used: id=`{id}`: {reason}")),
        }
    }
    Ok(bases)
}

fn plan<'a>(
    coverage: &'a Coverage,
    bases: &'a [BackupManifest],
    to: RestoreInstant,
) -> Result<RestorePlan<'a>, NotRestorable> {
    let to = match to {
        RestoreInstant::At(to) => to,
        RestoreInstant::Latest => {
            let ranges = coverage.ranges(bases);
            ranges.last().ok_or(NotRestorable::NoRange)?.until
        }
    };
    coverage.plan(bases, to)
}

/// The objects of a backup by their names.
async fn base_objects(
    repository: &Repository,
    manifest: &BackupManifest,
) -> Result<HashMap<ObjectName, ObjectRef>, CliError> {
    let listed: Vec<ObjectRef> = verify::entries(repository, &manifest.objects.lists).await?;
    let mut objects = HashMap::with_capacity(listed.len());
    for object in listed {
        let name = object.name().ok_or_else(|| {
            broken(&std::io::Error::other("an object of the backup has no known area"))
        })?;
        objects.insert(name, object);
    }
    Ok(objects)
}

fn report(
    plan: &RestorePlan<'_>,
    store: &DataDirectory,
    named: &InstantContents,
    out: &mut Output,
) -> Result<(), CliError> {
    let (id, instant, directory) = (&plan.base.id, time_text(plan.to), store.path.display());
    let human = format!(
        "restored {instant} from {id} and {} into {directory}: {} ({}), {} ({})",
        counted(plan.windows.len() as u64, "window"),
        counted(named.rows, "row"),
        bytes(named.row_bytes),
        counted(named.objects, "object"),
        bytes(named.object_bytes),
    );
    let record = json!({
        "instant": instant,
        "base": id,
        "windows": plan.windows.len(),
        "data_dir": directory.to_string(),
        "rows": named.rows,
        "objects": named.objects,
        "damaged": named.damaged,
    });
    out.either(&human, &with_damage(record, &named.damage))?;
    if named.damaged == 0 {
        return Ok(());
    }
    for damage in named.damage.iter().take(DAMAGE_SHOWN) {
        out.note(&format!("not restored: {}: {}", damage.object, damage.reason));
    }
    out.note(&format!("what rows name and is lacking: {}", counted(named.damaged, "object")));
    Err(CliError::Rejected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        manifest::tests::manifest,
        window::tests::{name, ticks},
    };

    #[test]
    fn latest_is_the_end_of_the_newest_range() {
        let coverage = Coverage::new(vec![name("a", 0, [5, 9, 12])]);
        let bases = [BackupManifest { at: 7, newest: Some(6), ..manifest("a") }];
        let found = plan(&coverage, &bases, RestoreInstant::Latest).unwrap();
        assert_eq!(found.to, ticks(12));
        let empty = Coverage::default();
        let none = plan(&empty, &bases, RestoreInstant::Latest);
        assert_eq!(none, Err(NotRestorable::NoRange));
    }
}

//! `backup restore --to`.

use std::convert::identity;

use serde_json::json;
use trestle_command::{
    errors::CliError,
    output::{Output, bytes, counted},
};
use trestle_objects::ObjectsUrl;

use super::{Restore, begin, cannot_write, end, finish, named::InstantContents};
use crate::{
    coverage::RestorePlan,
    instants::{Instants, base_objects},
    manifest::{BackupManifest, time_text},
    replay::replay,
    repository::Repository,
    restore_instant::RestoreInstant,
    rules::DataDirectory,
    show::with_damage,
};

/// Restores an instant into a directory, from the backup of an id if there is one, with the objects at a URL.
pub(super) async fn run(
    repository: &Repository,
    store: &DataDirectory,
    (to, id, url): (RestoreInstant, Option<&str>, Option<&ObjectsUrl>),
    out: &mut Output,
) -> Result<(), CliError> {
    let instants = Instants::read(repository, id).await?;
    instants.notes.iter().for_each(|note| out.note(note));
    let plan = instants.plan(to)?;
    instants.later(to, &plan).iter().for_each(|note| out.note(note));
    repository.use_backup(plan.base, &store.rules.keyspaces)?;
    let _lock = begin(&store.path, store.rules.engine_dir)?;
    let bar = out.progress(None, 0);
    bar.set_message("rows");
    let job = Restore { repository, manifest: plan.base, store };
    let storage = job.storage(url).await?;
    let objects = base_objects(repository, plan.base).await.map_err(of_base(plan.base))?;
    let writer = job.filled().await.map_err(of_base(plan.base))?;
    bar.set_message("changes");
    let (writer, mut replayed) =
        replay(repository, &plan, &store.rules, (writer, identity)).await?;
    let mut known = objects;
    known.extend(std::mem::take(&mut replayed.objects));
    bar.set_message("objects");
    let (writer, named) = job.named_objects(writer, known, &storage).await?;
    // Versions that the lost store may have given by then are not given again.
    finish(writer, job.instant()?.max(plan.to).max(replayed.newest)).await?;
    end(store).map_err(cannot_write(&store.path))?;
    bar.finish_and_clear();
    if let Some(note) = replayed.left_out() {
        out.note(&note);
    }
    report(&plan, store, &named, out)
}

/// The error of a backup that is damaged, while others may lead to the same instant.
fn of_base(base: &BackupManifest) -> impl Fn(CliError) -> CliError {
    |error| match error {
        CliError::Source { text, busy: false } => CliError::Source {
            text: format!(
                "{text}; id=`{}`: an older backup that leads to the instant may do, name it by --id",
                base.id
            ),
            busy: false,
        },
        error => error,
    }
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
        counted(named.objects.count, "object"),
        bytes(named.objects.bytes),
    );
    let record = json!({
        "instant": instant,
        "base": id,
        "windows": plan.windows.len(),
        "data_dir": directory.to_string(),
        "rows": named.rows,
        "objects": named.objects.count,
        "damaged": named.objects.lost,
    });
    out.either(&human, &with_damage(record, &named.objects.damage))?;
    named.objects.verdict(out)
}

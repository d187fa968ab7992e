//! `backup prune`.

mod windows;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use chrono::{DateTime, Utc};
use object_store::{ObjectMeta, path::Path};
use serde_json::json;
use trestle_command::{
    errors::CliError,
    output::{Output, bytes, counted},
};
use trestle_model::time::{Clock as _, SystemClock, Ticks};

use crate::{
    args::PruneArgs,
    failure::broken,
    manifest::{BackupManifest, KeyspaceRows, ListRef},
    names::{PARTS, PartName},
    repository::{ENTRY_LASTS, PRUNING, RUNNING, Repository, manifest_path},
    verify,
};

/// How far the clock of a server may be ahead of the one here.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60 * 60);

pub(crate) async fn run(args: &PruneArgs, out: &mut Output) -> Result<(), CliError> {
    if args.keep_last.is_none() && args.keep_for.is_none() {
        return Err(CliError::Usage(
            "no rule keeps a backup: give --keep-last, --keep-for, or both".to_owned(),
        ));
    }
    let repository = Repository::open(args.target.text()?, None).await?;
    let entry = match args.dry_run {
        true => None,
        false => {
            let id = uuid::Uuid::new_v4().simple().to_string();
            Some(repository.enter(PRUNING, RUNNING, &id).await?)
        }
    };
    let now = match &entry {
        Some(entry) => repository.written_at(entry).await?,
        None => {
            let (seconds, _) = SystemClock.now().to_unix();
            DateTime::from_timestamp(seconds, 0).unwrap_or_default()
        }
    };
    let pruned = prune(&repository, args, now, out).await;
    if let Some(entry) = entry {
        repository.leave(&entry).await?;
        repository.forget_ended().await?;
    }
    let Pruned { backups, windows, parts, freed } = pruned?;
    let verb = if args.dry_run { "would delete" } else { "deleted" };
    let human = format!(
        "{verb} {}, {} and {} ({})",
        counted(backups.len() as u64, "backup"),
        counted(windows, "window"),
        counted(parts, "part"),
        bytes(freed)
    );
    let record = json!({
        "backups": backups,
        "windows": windows,
        "parts": parts,
        "bytes": freed,
        "dry_run": args.dry_run,
    });
    out.either(&human, &record)
}

struct Pruned {
    backups: Vec<String>,
    windows: u64,
    parts: u64,
    freed: u64,
}

async fn prune(
    repository: &Repository,
    args: &PruneArgs,
    now: DateTime<Utc>,
    out: &Output,
) -> Result<Pruned, CliError> {
    let (begun, began) = (tokio::time::Instant::now(), SystemClock.now());
    let mut kept = Vec::new();
    for id in repository.backups().await? {
        // One that cannot be read may have anything: nothing is deleted beside it.
        kept.push(repository.required_manifest(&id).await?);
    }
    let dropped = dropped(&mut kept, args, SystemClock.now());
    let named = named(repository, &kept).await?;
    // In front of the parts: those of a window that is put from now on are young.
    let windows = windows::prune(repository, &kept, now).await?;
    let is_unnamed = |part: &ObjectMeta| {
        let is_young = windows.young_since.is_some_and(|since| part.last_modified >= since);
        let is_named =
            |name: PartName| named.contains(&name.mark()) || windows.named.contains(&name.mark());
        !is_young && PartName::of_path(part.location.as_ref()).is_some_and(|name| !is_named(name))
    };
    let mut parts = repository.list(PARTS).await?;
    parts.retain(is_unnamed);
    let pruned = Pruned {
        parts: parts.len() as u64,
        windows: windows.count,
        freed: parts.iter().chain(&windows.dropped).map(|part| part.size).sum(),
        backups: dropped.iter().map(|manifest| manifest.id.clone()).collect(),
    };
    if args.dry_run {
        return Ok(pruned);
    }
    let bar = out.progress(None, 0);
    bar.set_message("deleting");
    for manifest in &dropped {
        repository.delete(&Path::from(manifest_path(&manifest.id))).await?;
    }
    for part in windows.dropped.iter().chain(&parts) {
        // A backup that begins later must not meet it.
        // Nor where this machine was suspended, which only one of the clocks counts.
        if begun.elapsed().max(SystemClock.now().since(began)) > ENTRY_LASTS / 2 {
            return Err(broken(&std::io::Error::other(
                "it ran for longer than 12 hours: repeat it",
            )));
        }
        repository.delete(&part.location).await?;
    }
    bar.finish_and_clear();
    Ok(pruned)
}

/// Removes those that no rule keeps; manifests are in the order of their ids, oldest first. The newest ones are counted
/// by those without damage, so that a backup of a broken store does not replace a whole one, and none of the future
/// counts, so that one that an intruder wrote does not either.
fn dropped(
    manifests: &mut Vec<BackupManifest>,
    args: &PruneArgs,
    now: Ticks,
) -> Vec<BackupManifest> {
    let last = usize::try_from(args.keep_last.unwrap_or(1)).unwrap_or(usize::MAX);
    let is_counted = |manifest: &BackupManifest| {
        let at = Ticks::new(manifest.at).unwrap_or(Ticks::MIN);
        manifest.damage.count == 0 && at.since(now) <= CLOCKS_DIFFER
    };
    let mut newer = manifests.iter().filter(|manifest| is_counted(manifest)).count();
    let is_dropped = |manifest: &mut BackupManifest| {
        let is_newest = newer <= last;
        newer -= usize::from(is_counted(manifest));
        // One of the future is not old.
        let age = Ticks::new(manifest.at).map_or(Duration::ZERO, |at| now.since(at));
        !is_newest && args.keep_for.is_none_or(|time| age > time)
    };
    manifests.extract_if(.., is_dropped).collect()
}

/// The names of the parts that backups have, by half of each.
async fn named(
    repository: &Repository,
    manifests: &[BackupManifest],
) -> Result<HashSet<u128>, CliError> {
    let (mut named, mut counts) = (HashSet::new(), HashMap::new());
    for at in manifests.iter().flat_map(BackupManifest::lists) {
        if counts.contains_key(&at) {
            continue;
        }
        // One that cannot be read ends the command: what it names must not be deleted.
        let names = verify::part_names(repository, at).await?.map_err(|bad| broken(&bad))?;
        counts.insert(at, names.len() as u64);
        named.extend(names.into_iter().chain([at.list, at.parts]).map(|name| name.mark()));
    }
    for manifest in manifests {
        if !names_enough(manifest, |at| counts.get(&at).copied().unwrap_or_default()) {
            let text = format!("its lists name fewer parts than it has: id=`{}`", manifest.id);
            return Err(broken(&std::io::Error::other(text)));
        }
    }
    Ok(named)
}

/// Whether lists name at least as many parts as a backup must have: an object has one, and so have rows.
fn names_enough(manifest: &BackupManifest, names: impl Fn(ListRef) -> u64) -> bool {
    let of = |lists: &[ListRef]| lists.iter().map(|at| names(*at)).fold(0, u64::saturating_add);
    let has_rows = |rows: &KeyspaceRows| of(&rows.lists) >= rows.rows.min(1);
    manifest.keyspaces.iter().all(has_rows) && of(&manifest.objects.lists) >= manifest.objects.count
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::manifest::tests::manifest;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: PruneArgs,
    }

    fn args(line: &[&str]) -> PruneArgs {
        Line::try_parse_from([&["prune", "dir"], line].concat()).unwrap().args
    }

    fn days_ago(days: u64) -> BackupManifest {
        let at =
            Ticks::from_unix(1_000_000_000, 0).unwrap().before(Duration::from_secs(days * 86_400));
        BackupManifest { at: at.get(), ..manifest(&format!("{:03}", 100 - days)) }
    }

    #[test]
    fn what_no_rule_keeps_is_dropped() {
        let now = Ticks::from_unix(1_000_000_000, 0).unwrap();
        let dropped = |line: &[&str]| {
            let mut manifests: Vec<_> = [40, 30, 20, 10, 0].map(days_ago).into();
            let dropped = dropped(&mut manifests, &args(line), now);
            (dropped.iter().map(|it| it.id.clone()).collect::<Vec<_>>(), manifests.len())
        };
        assert_eq!(dropped(&["--keep-last", "2"]).0, ["060", "070", "080"]);
        assert_eq!(dropped(&["--keep-for", "25d"]).0, ["060", "070"]);
        assert_eq!(dropped(&["--keep-last", "4", "--keep-for", "1d"]).0, ["060"]);
        assert_eq!(dropped(&["--keep-last", "9"]), (Vec::new(), 5));
        assert_eq!(
            dropped(&["--keep-for", "1s"]),
            (vec!["060".into(), "070".into(), "080".into(), "090".into()], 1)
        );
    }

    #[test]
    fn a_backup_with_damage_replaces_none_without() {
        let now = Ticks::from_unix(1_000_000_000, 0).unwrap();
        let mut manifests: Vec<_> = [30, 20, 10, 0].map(days_ago).into();
        manifests[2].damage.count = 1;
        manifests[3].damage.count = 1;
        let dropped = dropped(&mut manifests, &args(&["--keep-last", "1"]), now);
        assert_eq!(dropped.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["070"]);
    }

    #[test]
    fn one_of_the_future_is_kept_and_replaces_none() {
        let now = Ticks::from_unix(1_000_000_000, 0).unwrap();
        let mut manifests: Vec<_> = [20, 10, 0].map(days_ago).into();
        let at = now.get() + u64::try_from(CLOCKS_DIFFER.as_nanos() / 100).unwrap();
        manifests[2].at = at + 1;
        let dropped_of = |manifests: &[BackupManifest], line: &[&str]| {
            let dropped = dropped(&mut manifests.to_vec(), &args(line), now);
            dropped.iter().map(|it| it.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(dropped_of(&manifests, &["--keep-last", "1"]), ["080"]);
        manifests[2].at = at;
        assert_eq!(dropped_of(&manifests, &["--keep-last", "1"]), ["080", "090"]);
        // Its age is none.
        manifests[2].at = at + 1;
        assert_eq!(dropped_of(&manifests, &["--keep-for", "15d"]), ["080"]);
    }

    #[test]
    fn lists_name_a_part_for_each_object_and_for_rows() {
        let name = |text: &[u8]| crate::names::tests::name(text);
        let at = |text: &[u8]| ListRef { list: name(text), parts: name(text) };
        let mut manifest = days_ago(1);
        let names = |found: ListRef| if found == at(b"full") { 3 } else { 0 };
        assert!(!names_enough(&manifest, names), "rows without a list");
        manifest.keyspaces[0].lists = vec![at(b"empty")];
        assert!(!names_enough(&manifest, names), "rows without a chunk");
        manifest.keyspaces[0].lists.push(at(b"full"));
        assert!(names_enough(&manifest, names));
        manifest.objects.count = 4;
        manifest.objects.lists = vec![at(b"full")];
        assert!(!names_enough(&manifest, names), "four objects, and three pieces");
        manifest.objects.lists.push(at(b"full"));
        assert!(names_enough(&manifest, names));
        manifest.objects.count = u64::MAX;
        assert!(names_enough(&manifest, |_| u64::MAX - 1), "sums have bounds");
        manifest.keyspaces.clear();
        manifest.objects = Default::default();
        assert!(names_enough(&manifest, names), "an empty store");
    }
}

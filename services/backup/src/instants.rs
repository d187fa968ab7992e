//! The instants at a target that can be restored, read for one of them.

use std::collections::HashMap;

use trestle_command::errors::CliError;

use crate::{
    coverage::{Coverage, NotRestorable, RestorePlan},
    failure::broken,
    lists::ObjectRef,
    manifest::{BackupManifest, time_text},
    repository::Repository,
    restore_instant::RestoreInstant,
    rules::ObjectName,
    verify,
};

/// What leads to instants.
pub(crate) struct Instants {
    coverage: Coverage,
    /// Every backup whose manifest can be read.
    bases: Vec<BackupManifest>,
    /// The target, for people.
    target: String,
    /// Why the other backups are not used, in words.
    pub(crate) notes: Vec<String>,
}

impl Instants {
    /// Reads the names of windows and the manifests at a target, or only that of a backup.
    ///
    /// # Errors
    /// A target that cannot be read, or no such backup.
    pub(crate) async fn read(repository: &Repository, id: Option<&str>) -> Result<Self, CliError> {
        // In front of the manifests: a backup that is made meanwhile may need later windows.
        let coverage = Coverage::new(repository.windows().await?);
        let (mut bases, mut notes) = (Vec::new(), Vec::new());
        let ids = match id {
            Some(id) => vec![repository.id(Some(id)).await?],
            None => repository.backups().await?,
        };
        for id in ids {
            match repository.manifest(&id).await {
                Ok(manifest) => bases.push(manifest),
                Err(reason) => notes.push(format!("a backup is not used: id=`{id}`: {reason}")),
            }
        }
        Ok(Self { coverage, bases, target: repository.text.clone(), notes })
    }

    /// How to restore one of them.
    ///
    /// # Errors
    /// Every kind of [`NotRestorable`], with the target.
    pub(crate) fn plan(&self, to: RestoreInstant) -> Result<RestorePlan<'_>, CliError> {
        let to = match to {
            RestoreInstant::At(to) => Ok(to),
            RestoreInstant::Latest => {
                let ranges = self.coverage.ranges(&self.bases);
                ranges.last().map(|range| range.until).ok_or(NotRestorable::NoRange)
            }
        };
        let plan = to.and_then(|to| self.coverage.plan(&self.bases, to));
        plan.map_err(|error| CliError::Usage(format!("{error}: target=`{}`", self.target)))
    }
}

impl Instants {
    /// That there are changes after the last instant that can be restored, in words, if that is the one of a plan.
    pub(crate) fn later(&self, to: RestoreInstant, plan: &RestorePlan<'_>) -> Option<String> {
        let is_latest = to == RestoreInstant::Latest;
        let last = self.coverage.last().filter(|last| is_latest && *last > plan.to)?;
        let last = time_text(last);
        Some(format!(
            "the target has changes up to {last} that nothing leads to, see `trestle backup verify`"
        ))
    }
}

/// The objects of a backup by their names.
///
/// # Errors
/// A list that cannot be read, or has an object of no known area.
pub(crate) async fn base_objects(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        manifest::tests::manifest,
        window::tests::{name, ticks},
    };

    #[test]
    fn latest_is_the_end_of_the_newest_range() {
        let bases = vec![BackupManifest {
            at: 7,
            newest: Some(6),
            line: Some("a".to_owned()),
            ..manifest("b")
        }];
        let coverage = Coverage::new(vec![name("a", 0, [5, 9, 12])]);
        let (target, notes) = ("./there".to_owned(), Vec::new());
        let mut instants = Instants { coverage, bases, target, notes };
        let plan = instants.plan(RestoreInstant::Latest).unwrap();
        assert_eq!((plan.to, instants.later(RestoreInstant::Latest, &plan)), (ticks(12), None));
        let windows = [name("a", 0, [5, 9, 12]), name("a", 2, [9, 20, 22])];
        instants.coverage = Coverage::new(windows.into());
        let plan = instants.plan(RestoreInstant::Latest).unwrap();
        let later = instants.later(RestoreInstant::Latest, &plan).unwrap();
        assert!(plan.to == ticks(12) && later.contains(&time_text(ticks(22))), "{later}");
        assert_eq!(instants.later(RestoreInstant::At(ticks(12)), &plan), None);
        instants.coverage = Coverage::default();
        let error = instants.plan(RestoreInstant::Latest).unwrap_err().to_string();
        assert_eq!(error, format!("{}: target=`./there`", NotRestorable::NoRange));
    }
}

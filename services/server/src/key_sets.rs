//! The key sets of issuers that are at a URL: fetched while the process runs, so that a start does not wait for another
//! server.
//!
//! A set is fetched again after ten minutes, and where a token names a key that it lacks. Whatever fails, the last good
//! set remains in use.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::Uri;
use tokio::{sync::Notify, task::JoinSet};
use tracing::{info, warn};
use trestle_identity::bearer::{JWKS_BYTES_MAX, KeyMisses, PublicKeys};
use trestle_objects::document::{DocumentBounds, DocumentReader};
use trestle_runtime::task::Task;

use crate::reload::{Reloads, SettingsSource};

/// The name of the task, and the subject of the metric.
const NAME: &str = "key-sets";
/// How often the sets are checked for a reason to fetch one.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// How long a set is used before it is fetched again.
const REFRESH_AFTER: Duration = Duration::from_secs(10 * 60);
/// Shortest time between two attempts, where a token names another key or the last one failed: anyone can send such
/// tokens.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// The same before the first success.
const FIRST_RETRY_AFTER: Duration = Duration::from_secs(10);
/// The bounds of a set.
const BOUNDS: DocumentBounds =
    DocumentBounds { bytes_max: JWKS_BYTES_MAX, within: Duration::from_secs(10) };

/// The key sets that were fetched, by their URLs. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeySets(Arc<Mutex<BTreeMap<String, FetchedSet>>>);

/// A set, and the last attempt to fetch it.
#[derive(Debug, Clone, Default)]
struct FetchedSet {
    /// Empty before the first success.
    keys: PublicKeys,
    misses: KeyMisses,
    attempted: Option<Instant>,
    /// Why the last attempt failed.
    problem: Option<String>,
}

/// What an attempt changed.
#[derive(Debug, PartialEq, Eq)]
enum FetchOutcome {
    Applied,
    Unchanged,
    Failed,
    /// As the attempt before.
    FailedAgain,
}

impl FetchedSet {
    /// Whether to fetch the set now.
    fn is_due(&self, now: Instant) -> bool {
        let Some(attempted) = self.attempted else { return true };
        let age = now.saturating_duration_since(attempted);
        let retry_after = if self.keys.is_empty() { FIRST_RETRY_AFTER } else { RETRY_AFTER };
        let has_reason = || self.problem.is_some() || self.misses.is_recorded();
        age >= REFRESH_AFTER || (age >= retry_after && has_reason())
    }
}

impl KeySets {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, FetchedSet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys at a URL, none before they are fetched, and the record of tokens that name another one.
    pub(crate) fn of(&self, url: &str) -> (PublicKeys, KeyMisses) {
        let mut sets = self.lock();
        let set = sets.entry(url.to_owned()).or_default();
        (set.keys.clone(), set.misses.clone())
    }

    /// Those of these URLs whose sets are to be fetched now; the attempt begins. Sets of other URLs are dropped.
    fn begin(&self, urls: &BTreeSet<String>, now: Instant) -> Vec<String> {
        let mut sets = self.lock();
        sets.retain(|url, _| urls.contains(url));
        let mut due = Vec::new();
        for url in urls {
            let set = sets.entry(url.clone()).or_default();
            if set.is_due(now) {
                set.attempted = Some(now);
                set.misses.clear();
                due.push(url.clone());
            }
        }
        due
    }

    /// Stores the result of an attempt.
    fn end(&self, url: &str, fetched: Result<PublicKeys, String>) -> FetchOutcome {
        let mut sets = self.lock();
        // Dropped meanwhile, where it is absent.
        let Some(set) = sets.get_mut(url) else { return FetchOutcome::Unchanged };
        match fetched {
            Ok(keys) => {
                set.problem = None;
                let is_new = set.keys != keys;
                set.keys = keys;
                if is_new { FetchOutcome::Applied } else { FetchOutcome::Unchanged }
            }
            Err(problem) if set.problem.as_ref() == Some(&problem) => FetchOutcome::FailedAgain,
            Err(problem) => {
                set.problem = Some(problem);
                FetchOutcome::Failed
            }
        }
    }

    /// A task that fetches the sets of the issuers in `source`, and wakes `accounts`, which uses them.
    pub(crate) fn task(
        &self,
        source: SettingsSource,
        reloads: Reloads,
        accounts: Arc<Notify>,
    ) -> Task {
        let (sets, reader) = (self.clone(), DocumentReader::default());
        reloads.declare(NAME);
        Task::new(NAME, CHECK_EVERY, move || {
            let (sets, reader, source) = (sets.clone(), reader.clone(), source.clone());
            let (reloads, accounts) = (reloads.clone(), Arc::clone(&accounts));
            async move {
                let issuers = tokio::task::spawn_blocking(move || issuers(&source)).await?;
                // Without settings nothing changes.
                let Some(issuers) = issuers else { return Ok(false) };
                let urls = issuers.keys().cloned().collect();
                let mut attempts = JoinSet::new();
                for url in sets.begin(&urls, Instant::now()) {
                    let reader = reader.clone();
                    attempts.spawn(async move {
                        let fetched = fetch(&reader, &url).await;
                        (url, fetched)
                    });
                }
                while let Some(ended) = attempts.join_next().await {
                    let (url, fetched) = ended?;
                    let issuer = issuers.get(&url).map(String::as_str).unwrap_or_default();
                    let problem = fetched.as_ref().err().cloned().unwrap_or_default();
                    match sets.end(&url, fetched) {
                        FetchOutcome::Applied => {
                            info!(issuer, "fetched the key set of an issuer");
                            reloads.applied(NAME);
                            accounts.notify_one();
                        }
                        FetchOutcome::Unchanged => {}
                        FetchOutcome::Failed => {
                            warn!(issuer, %problem, "key set not fetched; the last one remains");
                            reloads.failed(NAME);
                        }
                        FetchOutcome::FailedAgain => reloads.failed(NAME),
                    }
                }
                Ok(false)
            }
        })
    }
}

/// The URLs of key sets, each with the name of an issuer; none while no settings can be used. Blocks.
fn issuers(source: &SettingsSource) -> Option<BTreeMap<String, String>> {
    let sections = source.usable()?.gateway.issuers.0.into_iter();
    Some(sections.filter_map(|(name, section)| Some((section.jwks_url?, name))).collect())
}

async fn fetch(reader: &DocumentReader, url: &str) -> Result<PublicKeys, String> {
    let uri: Uri = url.parse().map_err(|_| "the URL is malformed".to_owned())?;
    let document = reader.read(uri, BOUNDS).await.map_err(|error| error.to_string())?;
    PublicKeys::parse(&document).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use trestle_identity::bearer::SigningKey;

    use super::*;

    const URL: &str = "https://login.example.com/keys";

    fn keys() -> PublicKeys {
        let pem = SigningKey::generate().expect("a key");
        let set = SigningKey::parse(&pem).expect("its text").key_set();
        PublicKeys::parse(set.as_bytes()).expect("a key set")
    }

    fn urls(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|url| (*url).to_owned()).collect()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_set_is_fetched_at_once_then_each_ten_minutes_and_sooner_for_another_key() {
        let (sets, start) = (KeySets::default(), Instant::now());
        let due = |after: u64| !sets.begin(&urls(&[URL]), start + seconds(after)).is_empty();
        assert!(sets.of(URL).0.is_empty());
        assert!(due(0));
        assert!(!due(5), "one attempt at a time");
        assert_eq!(sets.end(URL, Ok(keys())), FetchOutcome::Applied);
        assert!(!due(599));
        assert!(due(600));
        sets.of(URL).1.record();
        assert!(!due(659), "once a minute at most");
        assert!(due(660));
        assert!(!due(720), "no token named another key since");
        assert!(due(1260));
    }

    #[test]
    fn the_last_good_set_remains_and_a_failure_is_reported_once() {
        let (sets, start, good) = (KeySets::default(), Instant::now(), keys());
        let due = |after: u64| !sets.begin(&urls(&[URL]), start + seconds(after)).is_empty();
        let fails = |text: &str| sets.end(URL, Err(text.to_owned()));
        assert!(due(0));
        assert_eq!(fails("status 500"), FetchOutcome::Failed);
        assert!(!due(9));
        assert!(due(10), "sooner without any set");
        assert_eq!(fails("status 500"), FetchOutcome::FailedAgain);
        assert!(due(20));
        assert_eq!(sets.end(URL, Ok(good.clone())), FetchOutcome::Applied);
        assert!(due(620));
        assert_eq!(fails("status 500"), FetchOutcome::Failed);
        assert_eq!(sets.of(URL).0, good);
        assert!(!due(679));
        assert!(due(680));
        assert_eq!(fails("late"), FetchOutcome::Failed);
        assert!(due(740));
        assert_eq!(sets.end(URL, Ok(good.clone())), FetchOutcome::Unchanged);
        assert!(!due(800));
    }

    #[test]
    fn sets_of_removed_issuers_are_dropped() {
        let (sets, now) = (KeySets::default(), Instant::now());
        let other = "https://other.example.com/keys";
        assert_eq!(sets.begin(&urls(&[URL, other]), now).len(), 2);
        assert_eq!(sets.end(URL, Ok(keys())), FetchOutcome::Applied);
        assert!(sets.begin(&urls(&[other]), now).is_empty());
        assert_eq!(sets.end(URL, Ok(keys())), FetchOutcome::Unchanged);
        assert!(sets.of(URL).0.is_empty());
    }
}

//! The processes that serve one store together. Each renews a row of its own, by the time of the store.
//!
//! The rates of accounts are divided among those that serve tables, and each job in the background is done by one of
//! them. Nothing is correct because of that: what a change depends on is in the change, and a job that two
//! processes do at a time, while one of them is not known to the other yet, does no harm.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use opentelemetry::metrics::Meter;
use serde_json::json;
use tokio::time::timeout;
use tracing::{debug, info};
use trestle_kv::{
    ChangeSpec, CommitError, Domain, DomainRef, Engine, EngineError, Entry, Keyspace, Reads,
    ScanLimit, Span, Version, Writes, transact,
};
use trestle_model::time::Ticks;
use trestle_rpc::{instance::instance_id, quota::LiveQuotas, semconv};
use trestle_runtime::{admin::AdminPage, task::Task};

use crate::{
    compose::NodeDeps,
    roles::{ROLES, TABLE},
    settings::Settings,
};

/// The first byte of the keys of members; the id of the process follows.
const MEMBER: u8 = 0x08;
/// Where members are stored, in a store that several processes can serve.
pub(crate) const KEYSPACE: Keyspace =
    Keyspace { name: "members", kinds: MEMBER..=MEMBER, domain: domain_of };
/// The format of a row.
const FORMAT: u8 = 1;

/// How often a process renews its row.
const EVERY: Duration = Duration::from_secs(2);
/// How long a process counts after that.
const LIFE: Duration = Duration::from_secs(10);
/// How long after that its row is removed.
const KEPT: Duration = Duration::from_secs(60);
/// Longest time that the end of a process waits for the removal of its row.
const LEFT_WITHIN: Duration = Duration::from_secs(1);
/// Most processes that are read.
const ROWS: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// All members are one domain: they are few, and change seldom.
fn domain_of(_: &[u8]) -> DomainRef<'_> {
    DomainRef { group: MEMBER, part: &[] }
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StoreMember {
    /// Its key.
    key: Vec<u8>,
    /// Until when it counts.
    until: Ticks,
    /// The roles that it serves, in the order of [`ROLES`].
    roles: String,
    /// The address of its listener for gRPC.
    address: String,
}

impl StoreMember {
    fn new(id: &str, roles: String, address: String) -> Self {
        let key = [&[MEMBER], id.as_bytes()].concat();
        Self { key, until: Ticks::MIN, roles, address }
    }

    /// The row of a process that renews it at a time.
    fn row(&self, now: Ticks) -> Vec<u8> {
        let until = now.after(LIFE).get().to_be_bytes();
        let text = format!("{} {}", self.roles, self.address);
        [&[FORMAT][..], &until, text.as_bytes()].concat()
    }

    /// None for a row of another version of the program.
    fn decode(entry: &Entry) -> Option<Self> {
        let (until, text) = entry.value.strip_prefix(&[FORMAT])?.split_first_chunk()?;
        let (roles, address) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        Some(Self {
            key: entry.key.to_vec(),
            until: Ticks::new(u64::from_be_bytes(*until))?,
            roles: roles.to_owned(),
            address: address.to_owned(),
        })
    }

    /// Whether it is one of those that do the same at a time.
    fn has_tables(&self) -> bool {
        self.roles.split(',').any(|role| role == TABLE.name)
    }

    fn id(&self) -> &[u8] {
        self.key.get(1..).unwrap_or_default()
    }
}

/// The processes that serve one store, as this one knows them. Clones share what they know.
#[derive(Clone)]
pub(crate) struct StoreMembers(Option<Arc<SharedStore>>);

struct SharedStore {
    engine: Arc<dyn Engine>,
    own: StoreMember,
    quotas: LiveQuotas,
    known: Mutex<Vec<StoreMember>>,
}

impl StoreMembers {
    /// Those of the store of these settings; this process alone where no other one can have it.
    pub(crate) fn new(settings: &Settings, deps: &NodeDeps, quotas: &LiveQuotas) -> Self {
        let engine = deps.engine.as_ref().filter(|_| settings.storage.engine.is_some());
        let Some(engine) = engine.cloned() else { return Self(None) };
        let roles = ROLES.iter().map(|role| role.name);
        let roles: Vec<_> = roles.filter(|role| settings.server.roles.has(role)).collect();
        let address = settings.server.listen.to_string();
        let own = StoreMember::new(instance_id(), roles.join(","), address);
        let store = Arc::new(SharedStore::new(engine, own, quotas.clone()));
        store.observe(&deps.meter);
        Self(Some(store))
    }

    /// Whether this process does a job, among those that serve tables: the others agree once they know the same
    /// processes.
    pub(crate) fn is_ours(&self, job: &str) -> bool {
        let Some(store) = &self.0 else { return true };
        let known = store.known();
        let now = store.engine.now();
        let placed = known.iter().filter(|member| store.counts(member, now));
        let placed = placed.max_by_key(|member| (weight(job, member.id()), &member.key));
        placed.is_none_or(|member| member.key == store.own.key)
    }

    /// Renews the row of this process, and looks at the others.
    pub(crate) fn task(&self) -> Option<Task> {
        let store = Arc::clone(self.0.as_ref()?);
        Some(Task::new("members", EVERY, move || {
            let store = Arc::clone(&store);
            async move {
                store.renew().await?;
                store.look().await?;
                Ok(false)
            }
        }))
    }

    /// Tells the others that this process ends, once its tasks have ended. Takes a second at most.
    pub(crate) async fn leave(&self) {
        let Some(store) = &self.0 else { return };
        if !matches!(timeout(LEFT_WITHIN, store.remove_own()).await, Ok(Ok(()))) {
            debug!("the other processes are not told that this one ends");
        }
    }

    /// The page of the processes.
    pub(crate) fn page(&self) -> Option<AdminPage> {
        let store = Arc::clone(self.0.as_ref()?);
        let about = "the processes that serve the store, as JSON";
        Some(AdminPage { path: "/members", about, json: Arc::new(move || store.json()) })
    }
}

impl SharedStore {
    fn new(engine: Arc<dyn Engine>, own: StoreMember, quotas: LiveQuotas) -> Self {
        Self { engine, own, quotas, known: Mutex::default() }
    }

    /// Reports how many processes are known. Holds the store weakly, so that metrics keep none open.
    fn observe(self: &Arc<Self>, meter: &Meter) {
        let (metric, store) = (semconv::PROCESSES, Arc::downgrade(self));
        let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            if let Some(store) = store.upgrade() {
                observer.observe(store.count(&store.known(), store.engine.now()) as u64, &[]);
            }
        });
        let _ = gauge.build();
    }

    fn known(&self) -> MutexGuard<'_, Vec<StoreMember>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a process has a share of what this one does.
    fn counts(&self, member: &StoreMember, now: Ticks) -> bool {
        member.until > now && member.has_tables() && self.own.has_tables()
    }

    /// How many processes have a share: at least this one.
    fn count(&self, members: &[StoreMember], now: Ticks) -> usize {
        members.iter().filter(|member| self.counts(member, now)).count().max(1)
    }

    async fn renew(&self) -> Result<(), CommitError> {
        let own = self.own.clone();
        // By the time of the commit: the row must not count longer because the commit waited.
        let renew = move |_: &Reads<'_>, version: Version| {
            let mut writes = Writes::new();
            writes.put(own.key.clone(), own.row(version.ticks()));
            Ok::<_, CommitError>((writes, ()))
        };
        transact(&*self.engine, ChangeSpec::new(domain()), renew).await?
    }

    /// Reads the others, and removes the rows of those that are gone for long.
    async fn look(&self) -> Result<(), EngineError> {
        let scanned = self.engine.scan(&Span::prefix(&[MEMBER]), ROWS).await?;
        let now = self.engine.now();
        let members: Vec<_> = scanned.entries.iter().filter_map(StoreMember::decode).collect();
        let is_gone = |member: &&StoreMember| member.until.after(KEPT) < now;
        for gone in members.iter().filter(is_gone) {
            if let Err(error) = self.remove_gone(gone.clone()).await {
                debug!(%error, "the row of a process that is gone remains");
            }
        }
        let count = self.count(&members, now);
        let before = self.quotas.share(count);
        if before != count {
            info!(processes = count, before, "the processes that serve the store changed");
        }
        *self.known() = members;
        Ok(())
    }

    async fn remove_own(&self) -> Result<(), CommitError> {
        let key = self.own.key.clone();
        let remove = move |_: &Reads<'_>, _: Version| {
            let mut writes = Writes::new();
            writes.delete(key.clone());
            Ok::<_, CommitError>((writes, ()))
        };
        transact(&*self.engine, ChangeSpec::new(domain()), remove).await?
    }

    /// Removes a row unless its process renewed it meanwhile.
    async fn remove_gone(&self, gone: StoreMember) -> Result<(), CommitError> {
        let mut spec = ChangeSpec::new(domain());
        let row = spec.read(gone.key.clone());
        let remove = move |reads: &Reads<'_>, _: Version| {
            let mut writes = Writes::new();
            let value = reads.get(row).cloned();
            let entry = value.map(|value| Entry { key: gone.key.clone().into(), value });
            if entry.and_then(|entry| StoreMember::decode(&entry)).as_ref() == Some(&gone) {
                writes.delete(gone.key.clone());
            }
            Ok::<_, CommitError>((writes, ()))
        };
        transact(&*self.engine, spec, remove).await?
    }

    fn json(&self) -> String {
        let now = self.engine.now();
        let rows: Vec<_> = self
            .known()
            .iter()
            .filter(|member| member.until > now)
            .map(|member| {
                json!({
                    "instance_id": String::from_utf8_lossy(member.id()),
                    "roles": member.roles,
                    "address": member.address,
                    "this": member.key == self.own.key,
                })
            })
            .collect();
        format!("{:#}\n", json!({ "members": rows }))
    }
}

fn domain() -> Domain {
    Domain::new(MEMBER, Vec::new())
}

/// How much a job is drawn to a process: the greatest has it, so that a process that comes or goes moves only its own
/// jobs.
fn weight(job: &str, id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (job, id).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;

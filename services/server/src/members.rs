//! The processes that serve one store together. Each renews a row of its own, by the time of the store.
//!
//! The rates of accounts are divided among those that serve tables, each queue is served by one of those that serve
//! queues, and each job in the background is done by one of them. Nothing is correct because of that: what a change
//! depends on is in the change, and what two processes do at a time, while one of them is not known to the other yet,
//! does no harm.

mod address;
mod listed;
mod peers;
mod placement;
mod secret;
mod serving;
mod telemetry;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};
use trestle_identity::gateway_secret::GatewaySecret;
use trestle_kv::{
    ChangeSpec, CommitError, Domain, DomainRef, Engine, EngineError, Entry, Keyspace, ReadId,
    Reads, ScanLimit, Span, Version, Writes, transact,
};
use trestle_model::time::Ticks;
use trestle_rpc::{instance::instance_id, quota::LiveQuotas, upstream::Remote};
use trestle_runtime::task::Task;

pub(crate) use self::serving::{secret_row, serving};
use self::{peers::PeerLinks, secret::SECRET, telemetry::MemberChanges};
use crate::{
    compose::NodeDeps,
    process_error::ProcessError,
    roles::{DrainAction, QUEUE, ROLES, TABLE},
    settings::Settings,
    store_copy::marker,
    upstreams,
};

/// The first byte of the keys of members; the id of the process follows.
const MEMBER: u8 = 0x08;
/// Where members are stored, in a store that several processes can serve.
pub(crate) const KEYSPACE: Keyspace =
    Keyspace { name: "members", kinds: MEMBER..=SECRET, domain: domain_of };
/// The format of a row.
const FORMAT: u8 = 1;

/// How often a process looks at the others.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How soon a look at the demand of a call is another one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
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

/// All of it is one domain: members are few, and change seldom.
fn domain_of(_: &[u8]) -> DomainRef<'_> {
    DomainRef { group: MEMBER, part: &[] }
}

fn domain() -> Domain {
    Domain::new(MEMBER, Vec::new())
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
    /// Where the others reach its listener for gRPC.
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

    fn has(&self, role: &str) -> bool {
        self.roles.split(',').any(|served| served == role)
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
    links: PeerLinks,
    /// Those that counted at the last look, this one included once it has a row.
    known: Mutex<Vec<StoreMember>>,
    changes: MemberChanges,
    jobs: Mutex<Vec<(&'static str, &'static str)>>,
    /// How many queues each process serves, by its key, at the last count; none before the first.
    queues: Mutex<Option<HashMap<Vec<u8>, u64>>>,
    /// When the row was renewed last.
    renewed: Mutex<Option<Instant>>,
    /// When it was looked last. One look at a time.
    looked: tokio::sync::Mutex<Option<Instant>>,
    /// The address of this process as the others see it, until it was tried.
    to_itself: Mutex<Option<Remote>>,
    /// The process ends, and takes nothing more.
    is_leaving: AtomicBool,
}

impl StoreMembers {
    /// Those of the store of these settings; this process alone where no other one can have it. The others know this
    /// process afterwards, which they reach where it listens, and it knows them.
    ///
    /// # Errors
    /// An address that the others cannot call, or a store that cannot be read or written.
    pub(crate) async fn join(
        settings: &Settings,
        deps: &NodeDeps,
        quotas: &LiveQuotas,
    ) -> Result<Self, ProcessError> {
        let engine = deps.engine.as_ref().filter(|_| settings.storage.engine.is_some());
        let Some(engine) = engine.cloned() else { return Ok(Self(None)) };
        let address = address::own(settings, deps.listen.unwrap_or(settings.server.listen))?;
        let secret = secret::of_store(&*engine, deps.random).await?;
        let roles: Vec<_> = settings.local(ROLES).map(|role| role.name).collect();
        let own = StoreMember::new(instance_id(), roles.join(","), address);
        // Certificates that this process cannot use for its own address are of no use for the others.
        let to_itself = match own.has(QUEUE.name) {
            true => Some(upstreams::peer(settings, &own.address, &secret)?),
            false => None,
        };
        let links = PeerLinks::new(settings, secret);
        let mut store = SharedStore::new(engine, own, (quotas.clone(), links));
        store.to_itself = Mutex::new(to_itself);
        let store = Arc::new(store);
        store.observe(&deps.meter);
        let failed = |reason: String| ProcessError::Members { reason };
        let unfinished = store.enter().await.map_err(|error| failed(error.to_string()))?;
        if let Some(copy) = unfinished {
            return Err(ProcessError::Copying { from: marker::shown(&copy) });
        }
        store.read_others(Duration::ZERO).await.map_err(|error| failed(error.to_string()))?;
        Ok(Self(Some(store)))
    }

    /// The proof that a call is from another process of the store.
    pub(crate) fn secret(&self) -> Option<GatewaySecret> {
        self.0.as_ref().map(|store| store.links.secret().clone())
    }

    /// Renews the row of this process, and looks at the others.
    pub(crate) fn task(&self) -> Option<Task> {
        let store = Arc::clone(self.0.as_ref()?);
        Some(Task::new("members", LOOK_EVERY, move || {
            let store = Arc::clone(&store);
            async move {
                if store.is_renewal_due() {
                    store.renew().await?;
                }
                store.read_others(Duration::ZERO).await?;
                store.try_address().await;
                Ok(false)
            }
        }))
    }

    /// Why this process is not what the others take it for: its row was not renewed as long as it counts.
    pub(crate) fn problem(&self) -> Option<String> {
        let store = self.0.as_ref()?;
        let since = store.since_renewal().filter(|since| *since >= LIFE)?;
        Some(format!("the database was not reached for {} s", since.as_secs()))
    }

    /// Has the others take over what this process serves, before its calls have ended.
    pub(crate) fn begin_to_leave(&self) -> Option<DrainAction> {
        let members = self.clone();
        let store = Arc::clone(self.0.as_ref()?);
        Some(Box::new(move || {
            store.is_leaving.store(true, SeqCst);
            store.links.end_waits();
            tokio::spawn(async move { members.leave().await });
        }))
    }

    /// Removes the row of this process, which ends. Takes a second at most.
    pub(crate) async fn leave(&self) {
        let Some(store) = &self.0 else { return };
        store.is_leaving.store(true, SeqCst);
        if !matches!(timeout(LEFT_WITHIN, store.remove_own()).await, Ok(Ok(()))) {
            debug!("the row of this process remains until its time is over");
        }
    }
}

impl SharedStore {
    fn new(
        engine: Arc<dyn Engine>,
        own: StoreMember,
        (quotas, links): (LiveQuotas, PeerLinks),
    ) -> Self {
        Self {
            engine,
            own,
            quotas,
            links,
            known: Mutex::default(),
            changes: MemberChanges::default(),
            jobs: Mutex::default(),
            queues: Mutex::default(),
            renewed: Mutex::default(),
            looked: tokio::sync::Mutex::default(),
            to_itself: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        }
    }

    fn known(&self) -> MutexGuard<'_, Vec<StoreMember>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The jobs of this process, each with its role, whichever process does them.
    fn jobs(&self) -> MutexGuard<'_, Vec<(&'static str, &'static str)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_own(&self, member: &StoreMember) -> bool {
        member.key == self.own.key
    }

    fn renewed(&self) -> Option<Instant> {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the row of this process was not renewed; none before it has one, and once it leaves.
    fn since_renewal(&self) -> Option<Duration> {
        let is_leaving = self.is_leaving.load(SeqCst);
        self.renewed().filter(|_| !is_leaving).map(|renewed| renewed.elapsed())
    }

    fn is_renewal_due(&self) -> bool {
        let is_over = |renewed: Instant| renewed.elapsed() >= EVERY;
        self.renewed().is_none_or(is_over) && !self.is_leaving.load(SeqCst)
    }

    /// Warns once where this process does not reach itself at the address in its row.
    async fn try_address(&self) {
        let untried = self.to_itself.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(remote) = untried else { return };
        if let Some(problem) = remote.problem().await {
            let address = self.own.address.as_str();
            warn!(
                address,
                problem, "the other processes may not reach this one: see server.peer_address"
            );
        }
    }

    /// How many processes share the rates of this one: at least itself.
    fn sharing(&self, members: &[StoreMember]) -> usize {
        let shares = |member: &&StoreMember| member.has(TABLE.name) && self.own.has(TABLE.name);
        members.iter().filter(shares).count().max(1)
    }

    /// Writes the row of this process, or returns the marker of an unfinished copy into the store: a copy looks for
    /// rows once it has put its marker, so one of both sees the other.
    async fn enter(&self) -> Result<Option<String>, CommitError> {
        let mut spec = ChangeSpec::new(domain());
        let (marker, own) = (marker::read(&mut spec), self.own.clone());
        let change = move |reads: &Reads<'_>, version: Version| {
            let (mut writes, copy) = (Writes::new(), reads.get(marker));
            if copy.is_none() {
                writes.put(own.key.clone(), own.row(version.ticks()));
            }
            let copy = copy.map(|text| String::from_utf8_lossy(text).into_owned());
            Ok::<_, CommitError>((writes, copy))
        };
        let unfinished = transact(&*self.engine, spec, change).await??;
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(unfinished)
    }

    async fn renew(&self) -> Result<(), CommitError> {
        let own = self.own.clone();
        // By the time of the commit: the row must not count longer because the commit waited.
        self.change_row(&self.own.key, move |_, now, writes| {
            writes.put(own.key.clone(), own.row(now));
        })
        .await?;
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }

    /// Reads the others, and removes the rows of those that are gone for long, unless that was done within this time.
    async fn read_others(&self, within: Duration) -> Result<(), EngineError> {
        let mut looked = self.looked.lock().await;
        if looked.is_none_or(|looked| looked.elapsed() >= within) {
            self.look_once().await?;
            *looked = Some(Instant::now());
        }
        Ok(())
    }

    async fn look_once(&self) -> Result<(), EngineError> {
        let scanned = self.engine.scan(&Span::prefix(&[MEMBER]), ROWS).await?;
        let now = self.engine.now();
        let members: Vec<_> = scanned.entries.iter().filter_map(StoreMember::decode).collect();
        let is_gone = |member: &&StoreMember| member.until.after(KEPT) < now;
        for gone in members.iter().filter(is_gone) {
            if let Err(error) = self.remove_gone(gone.clone()).await {
                debug!(%error, "the row of a process that is gone remains");
            }
        }
        let (members, silent): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|member| member.until > now);
        let count = self.sharing(&members);
        let before = self.quotas.share(count);
        if before != count {
            info!(processes = count, before, "the processes that serve the store changed");
        }
        self.links.retain(&members, &silent);
        let mut known = self.known();
        self.changes.note(&self.own, &known, &members);
        *known = members;
        Ok(())
    }

    async fn remove_own(&self) -> Result<(), CommitError> {
        let key = self.own.key.clone();
        self.change_row(&self.own.key, move |_, _, writes| {
            writes.delete(key.clone());
        })
        .await
    }

    /// Removes a row unless its process renewed it meanwhile.
    async fn remove_gone(&self, gone: StoreMember) -> Result<(), CommitError> {
        let key = gone.key.clone();
        self.change_row(&key, move |stored, _, writes| {
            if stored.and_then(|entry| StoreMember::decode(&entry)).as_ref() == Some(&gone) {
                writes.delete(gone.key.clone());
            }
        })
        .await
    }

    /// Changes the row of a process, by what is stored and the time of the commit.
    async fn change_row(
        &self,
        key: &[u8],
        decide: impl Fn(Option<Entry>, Ticks, &mut Writes) + Send + Sync + 'static,
    ) -> Result<(), CommitError> {
        let mut spec = ChangeSpec::new(domain());
        let row: ReadId = spec.read(key.to_vec());
        let key = key.to_vec();
        let change = move |reads: &Reads<'_>, version: Version| {
            let mut writes = Writes::new();
            let value = reads.get(row).cloned();
            let stored = value.map(|value| Entry { key: key.clone().into(), value });
            decide(stored, version.ticks(), &mut writes);
            Ok::<_, CommitError>((writes, ()))
        };
        transact(&*self.engine, spec, change).await?
    }
}

#[cfg(test)]
mod tests;

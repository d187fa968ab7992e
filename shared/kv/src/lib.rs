//! Storage behind one small seam: an ordered, transactional, durable map from bytes to bytes.
//!
//! A service needs three things only: a consistent view ([`Engine::snapshot`]), an ordered
//! page of it ([`Snapshot::scan`]), and an atomic change that depends on what is stored
//! ([`Engine::commit`]). `trestle-kv-fjall` keeps the map on disk, [`MemoryEngine`] in memory.
//! The module [`conformance`](#testing) states the contract as functions; an engine is accepted
//! when all of them pass.
//!
//! # The contract
//!
//! **Order.** Keys compare as bytes. The first byte of a key is its *kind*; a [`Span`] stays
//! within the kinds of one [`Keyspace`]. [`order`] makes bytes that compare like the texts and
//! numbers they encode.
//!
//! **Atomicity.** A [`Change`] is written whole or not at all, whatever kinds its keys are of, and
//! also when the process or the machine dies in the middle. Its writes apply in order.
//!
//! **Isolation.** Commits in a domain have one order. A decision is given the newest values of its
//! reads, and no other commit comes between them and its writes: a condition that is checked in
//! the decision holds when the change is written. A snapshot shows every commit that was answered before it
//! was opened, no part of any other but whole, and never changes.
//!
//! **Durability.** `commit` returns when the change is as durable as the engine is configured
//! ([`Durability`]); by default, on stable storage. What a decision saw of other changes is as
//! durable as its own answer.
//!
//! **Failure.** [`CommitError::Unknown`] means that the change may be stored. Every other error
//! means that nothing of it was written. After a failed write or sync an engine takes
//! no more changes and goes on reading. A caller that drops the future of `commit` does not undo
//! the change.
//!
//! **Limits.** [`Engine::limits`] bounds keys, values, changes and scans; [`ScanLimit`] bounds
//! every scan further; the queue of an engine is bounded and rejects changes when it is full. A
//! snapshot is held for a page, not at the pace of a client: old versions stay on disk as long as
//! it is open, and an engine may end it after some seconds ([`EngineError::SnapshotEnded`]).
//!
//! **Domains.** A change names what must be serialised with it: a partition, a queue
//! ([`Domain`]). Each [`Keyspace`] gives every key its domain. A key that a change reads lies in a
//! domain that it names, a key that it writes in one that it holds exclusively; any other change
//! is rejected. A read that must still hold at commit, in what the change does not write, is a
//! [`Lock::Shared`]: that covers keys that are absent too. There are no reads that may be stale
//! in a change, as no service needs them: read such a key before it, from a snapshot.
//!
//! **Versions.** Each change gets a [`Version`] from the engine: a time by its clock that is
//! greater than the version of every change before it, and than the room that those took for
//! several entities, also after a restart with the clock set back. The version of a change that
//! wrote nothing is not kept: after a crash another change may get it.
//!
//! **Time.** [`Engine::now`] is elapsed time that follows the wall clock without ever stepping: it never goes back,
//! also not across handles and a reopening, and the version of a change is never before a time that was read before it
//! was handed over. What is stored may so depend on its order. Where the wall clock steps, [`service_clock`] explains
//! what happens.
//!
//! **Unknown.** After [`CommitError::Unknown`] the change may be stored, now or later. A caller
//! that finds its change already there in a retry, and so decides to write nothing, has only read
//! it, and what it read may still be lost. It confirms it by a commit that writes something in
//! the same domain before it reports success.
//!
//! It is not a place for rules of a data model: an engine has no tables, and expires nothing.
//!
//! # Engines
//!
//! What engines have in common is here: [`keyspace`] and [`decide`] check a change and run its decision,
//! [`service_clock`] and [`version`] make times and versions, [`turns`] orders what waits by owner, [`point`] names
//! where a test may step in.
//!
//! # Decisions
//!
//! The decision of a change is a pure and fast function: an engine runs it on its one commit
//! thread, where every other change waits for it, or runs it again after a conflict. Values it
//! writes should own their bytes: a [`bytes::Bytes`] that is a slice of a large buffer keeps all
//! of it in memory until the row is flushed.
//!
//! ```
//! use trestle_kv::{ChangeSpec, Engine, Keyspace, MemoryEngine, ScanLimit, Span, Writes};
//! use trestle_kv::{DomainRef, transact};
//!
//! /// Keys are a kind and a name; a name is one domain, whatever kinds its keys are of.
//! fn domain_of(key: &[u8]) -> DomainRef<'_> {
//!     DomainRef { group: 1, part: key.get(1..).unwrap_or_default() }
//! }
//! const KEYSPACES: [Keyspace; 1] = [Keyspace { name: "rows", kinds: 1..=2, domain: domain_of }];
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = MemoryEngine::new(KEYSPACES);
//! let key: bytes::Bytes = vec![1, b'a'].into();
//!
//! // Inserts the key if it is absent.
//! for expected in [Ok("inserted"), Err("exists")] {
//!     let mut spec = ChangeSpec::new(trestle_kv::Domain::of_key(&key, domain_of));
//!     let row = spec.read(key.clone());
//!     let inserted = transact(&engine, spec, move |reads, _version| {
//!         if reads.get(row).is_some() {
//!             return Err("exists");
//!         }
//!         let mut writes = Writes::new();
//!         writes.put(reads.key(row).clone(), "value");
//!         Ok((writes, "inserted"))
//!     });
//!     assert_eq!(inserted.await?, expected);
//! }
//!
//! let limit = ScanLimit { rows: 100, bytes: 1024 * 1024 };
//! let page = engine.scan(&Span::prefix(&[1]), limit).await?;
//! assert_eq!(page.entries.len(), 1);
//! assert!(!page.more);
//! # Ok(())
//! # }
//! ```
//!
//! # Testing
//!
//! With the feature `testing`, `conformance` holds the contract as functions over any engine, and
//! `faulty` wraps an engine to fail on purpose, and `pressure` names the points of a commit at which
//! it, or the engine on disk, is delayed, fails or ends the process, by a seed or by count. `stepped`
//! wraps one that waits before each operation, so that a test decides what comes between two.

mod change;
#[cfg(feature = "testing")]
pub mod conformance;
mod count;
pub mod decide;
pub mod disk;
pub mod domain;
mod durable_file;
pub mod engine;
mod error;
mod fault;
#[cfg(feature = "testing")]
pub mod faulty;
mod group_write;
pub mod keyspace;
pub mod limits;
mod memory;
pub mod order;
pub mod point;
#[cfg(feature = "testing")]
pub mod pressure;
mod read_only;
pub mod service_clock;
mod span;
#[cfg(feature = "testing")]
pub mod stepped;
pub mod turns;
pub mod version;

pub use crate::change::{
    Change, ChangeSpec, Decide, ReadId, ReadSet, Reads, Write, Writes, transact,
};
pub use crate::count::{count, scan_in_steps, visit_rows};
pub use crate::disk::{ClaimedSpace, Disk, DiskSpace, SpaceClaim};
pub use crate::domain::{Domain, DomainOf, DomainRef, Lock};
pub use crate::durable_file::replace_file;
pub use crate::engine::{
    DiskStatus, Durability, Engine, EngineStatus, Entry, Scan, ScanLimit, Snapshot,
};
pub use crate::error::{CommitError, EngineError};
pub use crate::group_write::{GroupObserver, GroupWrite};
pub use crate::keyspace::{Keyspace, Keyspaces, key_domain};
pub use crate::limits::Limits;
pub use crate::memory::MemoryEngine;
pub use crate::point::{CommitPoint, PointHook};
pub use crate::read_only::ReadOnlyEngine;
pub use crate::span::{Direction, Span, after_key, after_prefix};
pub use crate::version::Version;

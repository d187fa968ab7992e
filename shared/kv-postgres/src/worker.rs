//! A worker: takes a group, and commits it over its own connection, again where it must be.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use futures::FutureExt as _;
use tokio::time::{Instant, sleep, timeout};
use trestle_kv::{CommitError, CommitPoint, GroupWrite, Version, decide::ChangeRules};

use crate::{
    failure::Failure,
    group::{DecidedGroup, RowsByKeyspace, decide_group, rows_read, rows_written},
    scheduler::{WaitingChange, domains_of},
    session::WriteSession,
    shared::Shared,
    stats::{CountedWhile, RetryReason},
    stuck::end_stuck,
    transaction::{Ended, begin, commit, roll_back},
};

/// How long a group is tried.
const TRIED_FOR: Duration = Duration::from_secs(20);
/// Longest time until a group has its locks and what it reads; a wait for locks ends before.
const BEGUN_WITHIN: Duration = Duration::from_secs(15);
/// How long a single change is tried that has too many locks for the server, beside those of others.
const ALONE_FOR: Duration = Duration::from_secs(5);
/// First pause before another try; each is twice as long, up to the last.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A worker. It ends when the engine is closed and nothing waits.
pub(crate) struct GroupWorker {
    shared: Arc<Shared>,
    session: Option<WriteSession>,
}

/// How a try of a group ended.
enum Tried {
    /// Every decided change is answered; these follow in another group.
    Answered(Vec<WaitingChange>),
    /// Nothing is stored; it is to be tried again, with the versions of these rows.
    Again(Vec<WaitingChange>, Failure, RowsByKeyspace),
    /// Nothing is stored, and trying again is of no use.
    Failed(Vec<WaitingChange>, Failure),
}

impl GroupWorker {
    /// One with a connection, if there is one. It makes another one when it needs it.
    pub(crate) fn new(shared: Arc<Shared>, session: Option<WriteSession>) -> Self {
        Self { shared, session }
    }

    pub(crate) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let is_open = self.session.as_ref().is_some_and(WriteSession::is_open);
            let idle = is_open.then(|| CountedWhile::new(&shared.counters.idle));
            let Some(mut group) = shared.scheduler.next().await else { return };
            drop(idle);
            let _busy = CountedWhile::new(&shared.counters.busy);
            let changes = std::mem::take(&mut group.changes);
            // A panic drops its changes, which answers them, and its connection, which ends the transaction.
            match AssertUnwindSafe(self.commit_group(changes)).catch_unwind().await {
                Ok(rest) => group.put_back(rest),
                Err(_) => tracing::error!(
                    "a commit panicked; its changes are answered, and later ones go on"
                ),
            }
        }
    }

    /// Commits the first changes of a group, and answers them. Returns the others.
    async fn commit_group(&mut self, mut group: Vec<WaitingChange>) -> Vec<WaitingChange> {
        let mut until = Instant::now() + TRIED_FOR;
        let (mut pause, mut rewritten) = (PAUSE, Vec::new());
        let mut later = Vec::new();
        loop {
            let failure = match self.try_group(group, &rewritten).await {
                Tried::Answered(mut rest) => {
                    rest.append(&mut later);
                    return rest;
                }
                Tried::Failed(failed, failure) => {
                    answer_all(failed, &CommitError::from(&failure));
                    return later;
                }
                Tried::Again(again, failure, rows) => {
                    (group, rewritten) = (again, rows);
                    failure
                }
            };
            let reason = failure.retry_reason();
            if reason == Some(RetryReason::LockTable) && group.len() == 1 {
                until = until.min(Instant::now() + ALONE_FOR);
            } else if reason == Some(RetryReason::LockTable) {
                let mut half = group.split_off(group.len().div_ceil(2));
                half.append(&mut later);
                later = half;
            }
            if Instant::now() + pause > until || self.shared.is_down_for_long() {
                answer_all(group, &CommitError::from(&failure));
                return later;
            }
            tracing::debug!(reason = %failure.reason(), "a group of changes is tried again");
            if let Some(reason) = reason {
                self.shared.counters.retried(reason);
            }
            if reason == Some(RetryReason::LockTimeout) {
                self.end_stuck().await;
            }
            // Jittered, so that processes that met do not meet again.
            sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn try_group(
        &mut self,
        mut group: Vec<WaitingChange>,
        rewritten: &RowsByKeyspace,
    ) -> Tried {
        let session = match self.take_session().await {
            Ok(session) => session,
            Err(failure) => return Tried::Again(group, failure, rewritten.clone()),
        };
        let shared = Arc::clone(&self.shared);
        let domains = domains_of(&group);
        let rows = rows_read(&group, &shared.keyspaces);
        // A server that stands still is another one's turn: nothing was written.
        let begun = timeout(BEGUN_WITHIN, begin(&session, &domains, &rows, rewritten)).await;
        let locked = match begun {
            Ok(Ok(locked)) => locked,
            Ok(Err(failure)) => {
                self.end(session).await;
                return after_failure(group, failure, rewritten.clone());
            }
            Err(_) => {
                let failure = Failure::lost("the database does not answer");
                return Tried::Again(group, failure, rewritten.clone());
            }
        };
        let rules = ChangeRules { keyspaces: &shared.keyspaces, limits: &shared.limits };
        let now = shared.clock.time_of(locked.time);
        let decided = {
            let mut versions = shared.clock.versions();
            versions.raise(locked.newest);
            decide_group(&mut group, &locked.values, &rules, &mut versions, now)
        };
        let rest = group.split_off(decided.outcomes.len());
        if decided.writes.is_empty() {
            self.end(session).await;
            answer_decided(group, decided, &Ended::Committed);
            return Tried::Answered(rest);
        }
        self.write(session, group, decided, rest).await
    }

    async fn write(
        &mut self,
        session: WriteSession,
        mut group: Vec<WaitingChange>,
        decided: DecidedGroup,
        rest: Vec<WaitingChange>,
    ) -> Tried {
        let shared = Arc::clone(&self.shared);
        if let Err(reason) = shared.at(CommitPoint::BeforeJournal) {
            self.end(session).await;
            answer_decided(group, decided, &Ended::RolledBack(Failure::Lost(reason)));
            return Tried::Answered(rest);
        }
        let floor = shared.clock.new_floor();
        for (pending, outcome) in group.iter_mut().zip(&decided.outcomes) {
            pending.is_sent = outcome.as_ref().is_ok_and(|one| one.has_written);
        }
        let (changes, bytes) = decided.written();
        let begun = Instant::now();
        let ended = commit(&session, &shared.keyspaces, &decided.writes, floor).await;
        let took = begun.elapsed();
        // A server that takes no changes has become a standby: the next connection finds the primary. After an unknown
        // outcome the transaction may still be there.
        let is_ended = !matches!(ended, Ended::Unknown(_)) && !ended.is_read_only();
        if session.is_open() && is_ended {
            self.session = Some(session);
        }
        let ended = match ended {
            Ended::Committed => {
                shared.down.note(None);
                shared.counters.bytes.fetch_add(bytes, Relaxed);
                (shared.on_group)(GroupWrite { changes, took });
                if let Some(floor) = floor {
                    shared.clock.stored(floor.floor);
                }
                shared.at(CommitPoint::AfterSync).map_or_else(
                    |reason| Ended::Unknown(Failure::Lost(reason)),
                    |()| Ended::Committed,
                )
            }
            Ended::RolledBack(failure) => {
                let rows = match failure.is(RetryReason::Version) {
                    true => rows_written(&decided.writes, &shared.keyspaces),
                    false => Vec::new(),
                };
                for pending in &mut group {
                    pending.is_sent = false;
                }
                group.extend(rest);
                return after_failure(group, failure, rows);
            }
            unknown @ Ended::Unknown(_) => unknown,
        };
        if matches!(ended, Ended::Unknown(_)) {
            shared.counters.unknown.fetch_add(changes, Relaxed);
        }
        // Without an answer a caller finds out by itself.
        if shared.at(CommitPoint::BeforeAnswer).is_ok() {
            answer_decided(group, decided, &ended);
        }
        Tried::Answered(rest)
    }

    /// The connection of the worker, or a new one.
    async fn take_session(&mut self) -> Result<WriteSession, Failure> {
        if let Some(session) = self.session.take().filter(WriteSession::is_open) {
            return Ok(session);
        }
        self.shared.connect().await
    }

    /// Looks whether the lock is held by a process that stands still.
    async fn end_stuck(&mut self) {
        if let Ok(session) = self.take_session().await
            && end_stuck(session.client()).await.is_ok()
        {
            self.session = Some(session);
        }
    }

    /// Ends the transaction of a connection, and keeps it if that succeeds.
    async fn end(&mut self, session: WriteSession) {
        if session.is_open() && roll_back(&session).await.is_ok() {
            self.session = Some(session);
        }
    }
}

/// What follows from a failure before anything was committed.
fn after_failure(group: Vec<WaitingChange>, failure: Failure, rows: RowsByKeyspace) -> Tried {
    match failure.retry_reason() {
        Some(_) => Tried::Again(group, failure, rows),
        None => Tried::Failed(group, failure),
    }
}

fn answer_all(group: Vec<WaitingChange>, error: &CommitError) {
    for pending in group {
        pending.answer(Err(error.clone()));
    }
}

fn answer_decided(group: Vec<WaitingChange>, decided: DecidedGroup, ended: &Ended) {
    for (pending, outcome) in group.into_iter().zip(decided.outcomes) {
        pending.answer(outcome.and_then(|one| of_change(one.version, one.has_written, ended)));
    }
}

/// The outcome of a change that was decided. One that wrote nothing has nothing that may be stored; what it saw of
/// others may not be.
fn of_change(version: Version, has_written: bool, ended: &Ended) -> Result<Version, CommitError> {
    match ended {
        Ended::Committed => Ok(version),
        Ended::Unknown(failure) if has_written => {
            Err(CommitError::Unknown { reason: failure.reason() })
        }
        Ended::Unknown(failure) | Ended::RolledBack(failure) => Err(failure.into()),
    }
}

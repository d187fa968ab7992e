//! Rows that clients insert through a gateway while the table process ends and restarts: the outcome of each call, and
//! whether it was reported correctly.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tonic::Code;
use trestle_tests::{HANG, Table, entity};

use crate::progress::Progress;

/// All errors that a client may get while a role is unreachable: to retry the call as it is, and to retry
/// it if it is idempotent or conditional.
const NOTHING_WRITTEN: (Code, &str) = (Code::Unavailable, "SERVER_UNAVAILABLE");
const UNKNOWN: (Code, &str) = (Code::Unknown, "OUTCOME_UNKNOWN");

/// The outcomes of inserts so far, of one client or of several.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
    pub(crate) written: Progress,
    pub(crate) rejected: Progress,
}

/// The outcome of each row.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) written: BTreeSet<String>,
    pub(crate) rejected: BTreeSet<String>,
    pub(crate) unknown: BTreeSet<String>,
}

impl Outcomes {
    /// Inserts rows, each once, until stopped; every call is answered.
    pub(crate) async fn insert(
        (client, table): (usize, &Table),
        counts: &CallCounts,
        stop: &AtomicBool,
    ) -> Self {
        let mut outcomes = Self::default();
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let row = format!("{client}-{number:06}");
            let call = tokio::time::timeout(HANG, table.insert(entity("p", &row, [])));
            match call.await.expect("every call is answered") {
                Ok(_) => {
                    counts.written.step();
                    outcomes.written.insert(row)
                }
                Err(error) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    match error.kind() {
                        NOTHING_WRITTEN => {
                            counts.rejected.step();
                            outcomes.rejected.insert(row)
                        }
                        UNKNOWN => outcomes.unknown.insert(row),
                        other => panic!("no client can retry {other:?}: {error:?}"),
                    }
                }
            };
        }
        outcomes
    }

    /// The outcomes of all clients.
    pub(crate) fn of_all(clients: Vec<Self>) -> Self {
        let mut all = Self::default();
        for client in clients {
            all.written.extend(client.written);
            all.rejected.extend(client.rejected);
            all.unknown.extend(client.unknown);
        }
        all
    }

    /// Acknowledged rows exist, and rejected ones do not.
    pub(crate) async fn were_true(&self, table: &Table) {
        let rows: BTreeSet<String> = table.rows("").await.unwrap().into_iter().collect();
        let counts = [&self.written, &self.rejected, &self.unknown].map(BTreeSet::len);
        println!("{} written, {} rejected, {} unknown", counts[0], counts[1], counts[2]);
        let lost: Vec<_> = self.written.difference(&rows).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let untrue: Vec<_> = self.rejected.intersection(&rows).collect();
        assert!(untrue.is_empty(), "UNAVAILABLE, and written: {untrue:?}");
    }

    /// Retries what failed, as clients should: a repeated insert reports ALREADY_EXISTS if it has
    /// happened before. Then the rows of `others` exist, every one of these, and no more.
    pub(crate) async fn repeat(&self, table: &Table, others: &[&str]) {
        for row in &self.rejected {
            table.insert(entity("p", row, [])).await.expect("nothing was written");
        }
        for row in &self.unknown {
            if let Err(error) = table.insert(entity("p", row, [])).await {
                assert_eq!(error.kind(), (Code::AlreadyExists, "ENTITY_ALREADY_EXISTS"));
            }
        }
        let rows: BTreeSet<String> = table.rows("").await.unwrap().into_iter().collect();
        let attempted =
            [&self.written, &self.rejected, &self.unknown].into_iter().flatten().cloned();
        let attempted: BTreeSet<_> =
            attempted.chain(others.iter().map(|&row| row.to_owned())).collect();
        let differ: Vec<_> = rows.symmetric_difference(&attempted).collect();
        assert!(differ.is_empty(), "missing after it was repeated, or never attempted: {differ:?}");
    }
}

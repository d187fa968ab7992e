//! The metrics of a store in a database, and of the processes that serve it.

use super::Described;

/// Groups that were tried again, by [`super::ERROR_TYPE`].
pub const COMMIT_RETRIES: Described = Described::new(
    "trestle.storage.commit.retries",
    "{group}",
    "Groups of changes that were tried again: nothing of them was stored before",
);
/// Changes that may be stored.
pub const COMMIT_UNKNOWN: Described = Described::new(
    "trestle.storage.commit.unknown",
    "{change}",
    "Changes whose commit was not confirmed: they may be stored",
);
/// How long the oldest snapshot has been open.
pub const SNAPSHOT_AGE: Described = Described::new(
    "trestle.storage.snapshot.age",
    "s",
    "How long the oldest open snapshot of this process has been open, 0 without one",
);
/// Connections to the database, by [`super::DB_CONNECTION_POOL`] and [`super::DB_CONNECTION_STATE`].
pub const DB_CONNECTIONS: Described = Described::new(
    "db.client.connection.count",
    "{connection}",
    "Connections to the database, by what they are for: in use, or idle",
);
/// Most connections, by [`super::DB_CONNECTION_POOL`].
pub const DB_CONNECTIONS_MAX: Described = Described::new(
    "db.client.connection.max",
    "{connection}",
    "Most connections to the database, by what they are for",
);
/// Whether the database is a primary.
pub const DATABASE_PRIMARY: Described = Described::new(
    "trestle.storage.database.primary",
    "{flag}",
    "1 when the database was reached at the last look and is a primary",
);
/// Whether the database keeps acknowledged changes.
pub const DATABASE_DURABLE: Described = Described::new(
    "trestle.storage.database.durable",
    "{flag}",
    "1 when an acknowledged write survives a crash of the database",
);
/// Standbys that have each acknowledged change.
pub const DATABASE_STANDBYS: Described = Described::new(
    "trestle.storage.database.standbys",
    "{standby}",
    "Standbys that have a write before it is acknowledged: with 0 a failover may lose it",
);
/// Processes that serve a database.
pub const PROCESSES: Described = Described::new(
    "trestle.store.processes",
    "{process}",
    "Processes that serve tables of the database of this one",
);
/// Processes that came or went.
pub const PROCESS_CHANGES: Described = Described::new(
    "trestle.store.processes.changes",
    "{process}",
    "Other processes of the database that came or went: queues and jobs moved each time",
);
/// Jobs in the background.
pub const STORE_JOBS: Described =
    Described::new("trestle.store.jobs", "{job}", "Jobs in the background that this process does");
/// How long ago this process renewed its row.
pub const RENEWAL_AGE: Described = Described::new(
    "trestle.store.renewal.age",
    "s",
    "Time since this process wrote its row in the database; after 10 s others take over its queues",
);

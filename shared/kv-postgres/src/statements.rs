//! The statements of a keyspace, which is a relation by itself.

use trestle_kv::{Direction, Keyspace};

/// The statements of one keyspace.
#[derive(Debug, Clone)]
pub(crate) struct Sql {
    /// The name of its relation.
    pub(crate) relation: String,
    /// The value of a row.
    pub(crate) get: String,
    /// Rows with their versions.
    pub(crate) read: String,
    /// Rows of a range, ascending.
    pub(crate) scan_up: String,
    /// Rows of a range, descending.
    pub(crate) scan_down: String,
    /// The newest version of rows.
    pub(crate) newest: String,
    /// Sets rows. A version that is not greater than the stored one becomes null, which the relation rejects.
    pub(crate) upsert: String,
    /// Adds pointers that are not there, and locks those that are.
    pub(crate) point: String,
    /// Removes rows.
    pub(crate) delete: String,
    /// Removes those of locked pointers whose layers, from $2, inclusive, to $3, exclusive, are empty.
    pub(crate) unpoint: String,
}

impl Sql {
    /// Those of a keyspace.
    pub(crate) fn of(keyspace: &Keyspace) -> Self {
        // Names of keyspaces are of a-z, 0-9 and _.
        let relation = format!("trestle_{}", keyspace.name);
        let scan = |direction| scan(&relation, direction);
        Self {
            get: format!("SELECT v FROM {relation} WHERE k = $1"),
            read: format!("SELECT k, v, ver FROM {relation} WHERE k = ANY($1::bytea[])"),
            scan_up: scan(Direction::Forward),
            scan_down: scan(Direction::Backward),
            newest: format!(
                "SELECT coalesce(max(ver), 0) FROM {relation} WHERE k = ANY($1::bytea[])"
            ),
            upsert: format!(
                "INSERT INTO {relation} AS stored (k, v, ver) \
                 SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) \
                 ON CONFLICT (k) DO UPDATE SET v = excluded.v, \
                 ver = CASE WHEN stored.ver < excluded.ver THEN excluded.ver END"
            ),
            // A condition that is never true: the row is locked, and no other one takes its place.
            point: format!(
                "INSERT INTO {relation} AS stored (k, v, ver) \
                 SELECT k, ''::bytea, 0 FROM unnest($1::bytea[]) AS pointers (k) \
                 ON CONFLICT (k) DO UPDATE SET ver = stored.ver WHERE false"
            ),
            delete: format!("DELETE FROM {relation} WHERE k = ANY($1::bytea[])"),
            unpoint: format!(
                "DELETE FROM {relation} WHERE k = ANY(ARRAY(\
                 SELECT k FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS pointers (k, first, after) \
                 WHERE (SELECT true FROM {relation} AS below WHERE below.k >= first AND below.k < after \
                 ORDER BY below.k LIMIT 1) IS NULL))"
            ),
            relation,
        }
    }

    /// Creates the relation, if it is not there. Rows are changed in place and often: a fifth of each page is left for
    /// that, and what they leave is removed early.
    pub(crate) fn create(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} \
             (k bytea PRIMARY KEY, v bytea NOT NULL, ver bigint NOT NULL) \
             WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, \
             autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0)",
            self.relation
        )
    }
}

/// From $1, inclusive, to $2, exclusive, at most $3 rows, ending with the row that takes the rows to $4 bytes: the
/// lengths are known without reading values that are kept apart.
fn scan(relation: &str, direction: Direction) -> String {
    let order = match direction {
        Direction::Forward => "ASC",
        Direction::Backward => "DESC",
    };
    format!(
        "SELECT k, v FROM (\
         SELECT k, v, coalesce(sum(octet_length(k)::bigint + octet_length(v)) OVER \
         (ORDER BY k {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before \
         FROM (SELECT k, v FROM {relation} WHERE k >= $1 AND k < $2 ORDER BY k {order} LIMIT $3) \
         AS bounded) AS summed WHERE before < $4::bigint ORDER BY k {order}"
    )
}

/// Locks domains in the order of their numbers, each exclusively or shared, until the transaction ends.
pub(crate) const LOCK: &str = "\
SELECT CASE WHEN exclusive THEN pg_advisory_xact_lock(domain) \
ELSE pg_advisory_xact_lock_shared(domain) END \
FROM unnest($1::bigint[], $2::boolean[]) AS domains (domain, exclusive)";

/// The clock of the server, in microseconds since 1970.
pub(crate) const CLOCK: &str = "\
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
(SELECT floor FROM trestle_store WHERE one)";

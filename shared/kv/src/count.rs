//! Rows of a span over many steps: counted without holding them, or collected.

use crate::{Engine, EngineError, Entry, ScanLimit, Span, after_key};

/// What one step reads at most.
const STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// How many rows a span has, up to `rows_max`. Each step has a snapshot of its own: a row that is written meanwhile
/// counts or not.
///
/// # Errors
/// A failed read.
pub async fn count(engine: &dyn Engine, span: Span, rows_max: usize) -> Result<usize, EngineError> {
    let mut rows = 0;
    each_step(engine, span, (STEP, rows_max), |entries| rows += entries.len()).await?;
    Ok(rows.min(rows_max))
}

/// Visits the rows of a span. Each step has a snapshot of its own: a row that is written meanwhile is visited or not.
///
/// # Errors
/// A failed read.
pub async fn visit_rows(
    engine: &dyn Engine,
    span: Span,
    mut visit: impl FnMut(&Entry),
) -> Result<(), EngineError> {
    each_step(engine, span, (STEP, usize::MAX), |entries| entries.iter().for_each(&mut visit)).await
}

/// The rows of a span, in whole steps until there are `rows_max`. Each step has a snapshot of its own.
///
/// # Errors
/// A failed read.
pub async fn scan_in_steps(
    engine: &dyn Engine,
    span: Span,
    step: ScanLimit,
    rows_max: usize,
) -> Result<Vec<Entry>, EngineError> {
    let mut rows = Vec::new();
    each_step(engine, span, (step, rows_max), |entries| rows.extend(entries)).await?;
    Ok(rows)
}

/// Visits the rows of each step, until there were `rows_max`.
async fn each_step(
    engine: &dyn Engine,
    mut span: Span,
    (step, rows_max): (ScanLimit, usize),
    mut visit: impl FnMut(Vec<Entry>),
) -> Result<(), EngineError> {
    let mut rows = 0;
    loop {
        let scan = engine.scan(&span, step).await?;
        rows += scan.entries.len();
        let last = scan.entries.last().filter(|_| scan.more && rows < rows_max);
        let next = last.map(|last| after_key(&last.key));
        visit(scan.entries);
        match next {
            Some(next) => span.start = next.into(),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;

    use super::*;
    use crate::{ChangeSpec, Domain, Keyspace, MemoryEngine, Reads, Writes, key_domain, transact};

    const KEYSPACES: &[Keyspace] = &[Keyspace { name: "t", kinds: 1..=1, domain: key_domain }];

    #[tokio::test]
    async fn counts_every_row_over_many_steps_up_to_the_maximum() {
        let engine = MemoryEngine::new(KEYSPACES.to_vec());
        for row in 0..2500_u16 {
            let key = Bytes::from([&[1], &row.to_be_bytes()[..]].concat());
            let spec = ChangeSpec::new(Domain::of_key(&key, key_domain));
            let write = move |_: &Reads<'_>, _| {
                let mut writes = Writes::default();
                writes.put(key.clone(), Bytes::new());
                Ok::<_, Infallible>((writes, ()))
            };
            transact(&engine, spec, write).await.expect("written").expect("decided");
        }

        for (rows_max, expected) in [(10_000, 2500), (2000, 2000), (10, 10)] {
            let rows = count(&engine, Span::prefix(&[1]), rows_max).await.expect("rows");
            assert_eq!(rows, expected);
        }
        let (mut rows, mut bytes) = (0, 0);
        visit_rows(&engine, Span::prefix(&[1]), |entry| {
            rows += 1;
            bytes += entry.key.len() + entry.value.len();
        })
        .await
        .expect("rows");
        assert_eq!((rows, bytes), (2500, 2500 * 3));
        let step = ScanLimit { rows: 7, bytes: 1024 * 1024 };
        for (rows_max, expected) in [(10_000, 2500), (10, 14), (14, 14), (0, 7)] {
            let rows = scan_in_steps(&engine, Span::prefix(&[1]), step, rows_max).await;
            let rows = rows.expect("rows");
            assert_eq!(rows.len(), expected, "whole steps");
            assert!(rows.is_sorted_by(|one, next| one.key < next.key), "each row once");
        }
        let none = count(&engine, Span::prefix(&[1, 0xFF]), 10).await;
        assert_eq!(none.expect("rows"), 0);
    }
}

//! Counting rows without holding them.

use crate::{Engine, EngineError, ScanLimit, Span, after_key};

/// What one step reads at most.
const STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// How many rows a span has, up to `rows_max`. Each step has a snapshot of its own: a row that is written meanwhile
/// counts or not.
///
/// # Errors
/// A failed read.
pub async fn count(
    engine: &dyn Engine,
    mut span: Span,
    rows_max: usize,
) -> Result<usize, EngineError> {
    let mut rows = 0;
    loop {
        let scan = engine.scan(&span, STEP).await?;
        rows += scan.entries.len();
        match scan.entries.last() {
            Some(last) if scan.more && rows < rows_max => {
                span.start = after_key(&last.key).into();
            }
            _ => return Ok(rows.min(rows_max)),
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
        let none = count(&engine, Span::prefix(&[1, 0xFF]), 10).await;
        assert_eq!(none.expect("rows"), 0);
    }
}

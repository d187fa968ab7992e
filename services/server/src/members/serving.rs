//! What a command learns of the processes of a store that it is none of.

use trestle_kv::{Engine, EngineError, Entry, Span};

use super::{MEMBER, ROWS, StoreMember, secret::SECRET};

/// The addresses of the processes that serve a store now, by its time. One that a later version wrote counts.
///
/// # Errors
/// A failed read.
pub(crate) async fn serving(engine: &dyn Engine) -> Result<Vec<String>, EngineError> {
    let scanned = engine.scan(&Span::prefix(&[MEMBER]), ROWS).await?;
    let now = engine.now();
    let address = |row: &Entry| match StoreMember::decode(row) {
        Some(member) => (member.until > now).then_some(member.address),
        None => Some("unknown".to_owned()),
    };
    Ok(scanned.entries.iter().filter_map(address).collect())
}

/// The row of the secret, by which a store differs from all others; none before its first process.
///
/// # Errors
/// A failed read.
pub(crate) async fn secret_row(engine: &dyn Engine) -> Result<Option<Vec<u8>>, EngineError> {
    Ok(engine.get(&[SECRET]).await?.map(|row| row.to_vec()))
}

#[cfg(test)]
mod tests {
    use trestle_kv::{ChangeSpec, CommitError, MemoryEngine, Reads, Version, Writes, transact};
    use trestle_model::time::Ticks;

    use super::{
        super::{KEYSPACE, LIFE, domain},
        *,
    };

    #[tokio::test]
    async fn processes_count_until_their_time_is_over() {
        let engine = MemoryEngine::new(vec![KEYSPACE]);
        assert_eq!(serving(&engine).await.unwrap(), Vec::<String>::new());
        assert_eq!(secret_row(&engine).await.unwrap(), None);
        let now = engine.now();
        let member = |id: &str| StoreMember::new(id, "table".to_owned(), format!("http://{id}"));
        let long_ago = Ticks::new(now.get() - 2 * LIFE.as_secs() * 10_000_000);
        let rows = [
            (member("alive").key.clone(), member("alive").row(now)),
            (member("gone").key.clone(), member("gone").row(long_ago.unwrap())),
            (member("later").key, vec![0xFF]),
            (vec![SECRET], b"secret".to_vec()),
        ];
        let write = move |_: &Reads<'_>, _: Version| {
            let mut writes = Writes::new();
            for (key, value) in &rows {
                writes.put(key.clone(), value.clone());
            }
            Ok::<_, CommitError>((writes, ()))
        };
        transact(&engine, ChangeSpec::new(domain()), write).await.unwrap().unwrap();

        assert_eq!(serving(&engine).await.unwrap(), ["http://alive", "unknown"]);
        assert_eq!(secret_row(&engine).await.unwrap().as_deref(), Some(&b"secret"[..]));
    }
}

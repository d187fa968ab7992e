//! Stores for tests.

use trestle_kv::{ChangeSpec, Engine, Lock, Reads, Writes, transact};

use crate::{error::TableError, keys};

/// Commits these writes.
pub(crate) async fn commit(engine: &dyn Engine, writes: Writes) {
    let mut domains = writes.as_slice().iter().map(|write| keys::domain(write.key()));
    let mut spec = ChangeSpec::new(domains.next().expect("a write"));
    domains.for_each(|domain| {
        spec.also(domain, Lock::Exclusive);
    });
    let write = move |_: &Reads<'_>, _| Ok::<_, TableError>((writes.clone(), ()));
    transact(engine, spec, write).await.expect("committed").expect("decided");
}

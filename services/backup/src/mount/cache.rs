//! The parts that were read last.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Semaphore;

use crate::names::PartName;

/// Parts that are read at a time: each is twice in memory while it is opened, and other readers may wait for the same.
const AT_ONCE: usize = 2;

/// Parts by their names, the last used ones, up to a number of bytes and one at least.
pub(super) struct PartCache<T> {
    bytes_max: usize,
    turns: Semaphore,
    parts: Mutex<CachedParts<T>>,
}

struct CachedParts<T> {
    /// The last used one is the last.
    parts: VecDeque<(PartName, T, usize)>,
    bytes: usize,
}

impl<T: Clone> PartCache<T> {
    /// Without parts.
    pub(super) fn new(bytes_max: usize) -> Self {
        let parts = CachedParts { parts: VecDeque::new(), bytes: 0 };
        Self { bytes_max, turns: Semaphore::new(AT_ONCE), parts: Mutex::new(parts) }
    }

    /// A part, which is read with its size in bytes if it is not there.
    ///
    /// # Errors
    /// That of the read.
    pub(super) async fn read<E>(
        &self,
        name: PartName,
        read: impl Future<Output = Result<(T, usize), E>>,
    ) -> Result<T, E> {
        if let Some(part) = self.get(name) {
            return Ok(part);
        }
        // It is never closed.
        let _turn = self.turns.acquire().await;
        if let Some(part) = self.get(name) {
            return Ok(part);
        }
        let (part, bytes) = read.await?;
        self.add(name, part.clone(), bytes);
        Ok(part)
    }

    /// A part, if it is there.
    fn get(&self, name: PartName) -> Option<T> {
        let mut cached = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let index = cached.parts.iter().position(|(found, ..)| *found == name)?;
        let part = cached.parts.remove(index)?;
        let value = part.1.clone();
        cached.parts.push_back(part);
        Some(value)
    }

    /// Adds a part of a size in bytes, in place of those that were used longest ago.
    fn add(&self, name: PartName, part: T, bytes: usize) {
        let mut cached = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.parts.iter().any(|(found, ..)| *found == name) {
            return;
        }
        cached.bytes += bytes;
        cached.parts.push_back((name, part, bytes));
        while cached.bytes > self.bytes_max && cached.parts.len() > 1 {
            if let Some((.., bytes)) = cached.parts.pop_front() {
                cached.bytes -= bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::tests::name;

    #[tokio::test]
    async fn readers_of_a_part_wait_for_each_other() {
        let (cache, reads) = (PartCache::new(100), std::sync::atomic::AtomicUsize::new(0));
        let read = async |index: u32| {
            let read = async {
                reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok::<_, ()>((index, 1))
            };
            cache.read(name(b"a"), read).await
        };
        let found = futures::future::join_all((0..100).map(read)).await;
        assert!(found.iter().all(|it| *it == Ok(0) || *it == Ok(1)), "{found:?}");
        assert_eq!(reads.load(std::sync::atomic::Ordering::Relaxed), AT_ONCE);
        let failed = cache.read(name(b"b"), async { Err::<(u32, usize), _>("no") }).await;
        assert_eq!(failed, Err("no"));
        assert_eq!(cache.get(name(b"b")), None);
    }

    #[test]
    fn the_parts_that_were_used_last_stay() {
        let cache = PartCache::new(10);
        let names = [b"a", b"b", b"c", b"d"].map(|it| name(it));
        for name in &names[..3] {
            cache.add(*name, "part", 4);
        }
        let found = |cache: &PartCache<&'static str>| names.map(|name| cache.get(name).is_some());
        assert_eq!(found(&cache), [false, true, true, false]);
        assert_eq!(cache.get(names[1]), Some("part"));
        cache.add(names[1], "again", 4);
        cache.add(names[3], "new", 4);
        assert_eq!(found(&cache), [false, true, false, true]);
        cache.add(names[0], "large", 100);
        assert_eq!(found(&cache), [true, false, false, false]);
    }
}

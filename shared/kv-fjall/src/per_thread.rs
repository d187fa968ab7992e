//! Values that threads seldom share, for what every read changes: two cores that change one value in turns wait for
//! each other's caches.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const VALUES: usize = 16;

/// A value for each thread; those of more threads than there are values share them.
#[derive(Debug, Default)]
pub(super) struct PerThread<T>([OwnLines<T>; VALUES]);

/// A value on cache lines of its own. Processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLines<T>(T);

impl<T> PerThread<T> {
    /// The value of this thread, and its number.
    #[expect(clippy::indexing_slicing, reason = "the number is less than the length")]
    pub(super) fn own(&self) -> (usize, &T) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: usize = NEXT.fetch_add(1, Relaxed) % VALUES;
        }
        let number = NUMBER.with(|number| *number);
        (number, &self.0[number].0)
    }

    /// The value with a number.
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number).map(|value| &value.0)
    }

    /// All values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|value| &value.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_value_and_the_next_ones_have_others() {
        let values = PerThread::<AtomicUsize>::default();
        let add = || {
            let (number, value) = values.own();
            value.fetch_add(1, Relaxed);
            assert!(values.get(number).is_some_and(|it| std::ptr::eq(it, values.own().1)));
            number
        };
        let numbers = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2 * VALUES).map(|_| scope.spawn(add)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });

        assert!(numbers.iter().all(|number| *number < VALUES));
        assert!(numbers.iter().any(|number| *number != numbers[0]));
        assert_eq!(values.iter().map(|value| value.load(Relaxed)).sum::<usize>(), 2 * VALUES);
        assert!(values.get(VALUES).is_none());
    }
}

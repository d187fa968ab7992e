//! A client that appends to a blob, and what must be there after a crash.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use trestle_tests::{CallError, Container};

/// Appends numbered blocks to one blob, over and over.
pub(crate) struct AppendWriter {
    name: String,
    is_created: bool,
    /// How many blocks were acknowledged: all of them are there, and perhaps one more.
    acknowledged: u64,
    /// Acknowledged appends.
    pub(crate) count: u64,
}

/// A block that is recognised by its number: a row, or seldom an object. So the runs of rows are long enough to become
/// objects themselves, which happens with the first sweep after 4 MiB of them, such as that of a start.
fn block(number: u64) -> Bytes {
    let length = match number % 32 {
        31 => 50_000,
        number if number % 4 == 0 => 100,
        _ => 31_000,
    };
    let stamp = format!("{number}\n");
    stamp.bytes().cycle().take(length).collect::<Vec<_>>().into()
}

fn blocks(count: u64) -> Vec<u8> {
    (0..count).flat_map(block).collect()
}

impl AppendWriter {
    /// To a blob of this name, which is absent.
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), is_created: false, acknowledged: 0, count: 0 }
    }

    /// Appends until a call fails, or until `is_over`; an append that ends after that may be lost.
    pub(crate) async fn run_until(
        &mut self,
        container: &Container,
        is_over: &AtomicBool,
    ) -> Option<CallError> {
        loop {
            let appended = match self.is_created {
                true => {
                    let spec = container.appending(&self.name);
                    container.append(spec, block(self.acknowledged)).await.map(drop)
                }
                false => container.create_append(&self.name).await.map(drop),
            };
            if appended.is_err() || is_over.load(Ordering::SeqCst) {
                return appended.err();
            }
            match self.is_created {
                true => self.acknowledged += 1,
                false => self.is_created = true,
            }
            self.count += 1;
        }
    }

    /// Verifies that every acknowledged block is there, in its order, and at most the next one behind them.
    pub(crate) async fn verify(&mut self, container: &Container) {
        let read = match container.read(&self.name).await {
            Ok(read) => read.data,
            Err(error) => {
                assert_eq!((error.reason.as_str(), self.is_created), ("BLOB_NOT_FOUND", false));
                return;
            }
        };
        self.is_created = true;
        let is = |count: u64| read == blocks(count);
        let found = [self.acknowledged, self.acknowledged + 1].into_iter().find(|it| is(*it));
        let expected = self.acknowledged;
        let bytes = read.len();
        self.acknowledged = found.unwrap_or_else(|| {
            panic!("{}: {bytes} bytes are neither {expected} blocks nor one more", self.name)
        });
    }
}

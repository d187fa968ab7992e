//! The budget of bytes that bodies may hold, and the parts that hold them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;

use crate::fault::{Fault, Reason};

/// When a rejected client should retry.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Bytes that bodies may hold.
#[derive(Debug)]
pub(super) struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, used: AtomicUsize::new(0) }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.bytes_max
    }

    /// Reserves bytes of the budget if enough remain.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Reserves bytes that cannot be rejected; new calls are rejected as long as the budget is
    /// overdrawn.
    pub(super) fn overdraw(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes reserved from the budget, as a part that releases them when it is dropped.
    pub(super) fn counted(self: &Arc<Self>, data: Bytes) -> Frame<Bytes> {
        Frame::data(Bytes::from_owner(ReservedBytes { data, budget: Arc::clone(self) }))
    }

    pub(super) fn fault(&self) -> Fault {
        let limit = self.bytes_max;
        let message = format!("messages in flight hold too many bytes: limit=`{limit}`");
        Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER)
    }
}

/// A part of a response that releases its bytes to the budget when it is dropped.
struct ReservedBytes {
    data: Bytes,
    budget: Arc<Budget>,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.budget.release(self.data.len());
    }
}

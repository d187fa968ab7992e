//! The bytes that one request holds of a pool, and why it was rejected if it was.

use crate::status::{DOMAIN, IntoStatus as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonic::Status;

use super::super::shares::{CallHolder, Share, SharePool};
use trestle_model::fault::{Fault, Reason};

/// The bytes that one request holds, returned when the request and its response are dropped. They count for who the
/// call counts for when the first of them arrive: they are read once the caller is known.
#[derive(Debug)]
pub(in crate::layer) struct HeldBytes {
    pool: Arc<SharePool>,
    holder: CallHolder,
    state: Mutex<HeldState>,
}

#[derive(Debug, Default)]
struct HeldState {
    share: Option<Share>,
    /// Why the request was rejected: it did not fit, or was late.
    rejected: Option<Fault>,
}

impl HeldBytes {
    pub(super) fn new(pool: Arc<SharePool>, holder: CallHolder) -> Self {
        Self { pool, holder, state: Mutex::default() }
    }

    /// Holds so many bytes from now on, if they fit. Only the body of the request calls this.
    pub(in crate::layer) fn hold(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        let held = match &mut state.share {
            Some(share) => share.resize(bytes),
            None if bytes == 0 => Ok(()),
            None => {
                let share = self.pool.take(self.holder.holder(), bytes);
                share.map(|share| state.share = Some(share))
            }
        };
        held.map_err(|fault| state.rejected = Some(fault)).is_ok()
    }

    /// A message did not arrive in time.
    pub(super) fn late(&self) {
        let message = "the request took too long to arrive";
        self.lock().rejected = Some(Fault::new(Reason::OperationTimedOut, message));
    }

    /// Why the request was rejected, if it was.
    pub(super) fn rejected(&self) -> Option<Fault> {
        self.lock().rejected.clone()
    }

    /// The error of bytes that do not fit.
    pub(in crate::layer) fn fault(&self) -> Fault {
        self.rejected().unwrap_or_else(|| self.pool.used_up())
    }

    /// The error that a reader of the body gets.
    pub(super) fn status(&self) -> Status {
        self.fault().into_status(DOMAIN)
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

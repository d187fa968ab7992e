//! The bytes of the budget that one request holds, and why it was rejected if it was.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tonic::Status;

use super::budget::Budget;
use crate::fault::{Fault, Reason};

/// The bytes that one request holds, released when the request and its response are dropped.
#[derive(Debug)]
pub(in crate::layer) struct HeldBytes {
    budget: Arc<Budget>,
    held: AtomicUsize,
    /// Why the request was rejected: it did not fit, or was late.
    is_over: AtomicBool,
    pub(super) is_late: AtomicBool,
}

impl HeldBytes {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        let [is_over, is_late] = [false; 2].map(AtomicBool::new);
        Self { budget, held: AtomicUsize::new(0), is_over, is_late }
    }

    /// Holds so many bytes from now on, if they fit. Only the body of the request calls this.
    pub(in crate::layer) fn hold(&self, bytes: usize) -> bool {
        let before = self.held.load(Ordering::Relaxed);
        if bytes > before && !self.budget.reserve(bytes - before) {
            self.is_over.store(true, Ordering::Relaxed);
            return false;
        }
        if bytes < before {
            self.budget.release(before - bytes);
        }
        self.held.store(bytes, Ordering::Relaxed);
        true
    }

    /// Why the request was rejected, if it was.
    pub(super) fn rejected(&self) -> Option<Fault> {
        if self.is_over.load(Ordering::Relaxed) {
            return Some(self.budget.fault());
        }
        let message = "the request took too long to arrive";
        let is_late = self.is_late.load(Ordering::Relaxed);
        is_late.then(|| Fault::new(Reason::OperationTimedOut, message))
    }

    /// The error of bytes that do not fit.
    pub(in crate::layer) fn fault(&self) -> Fault {
        self.budget.fault()
    }

    /// The error that a reader of the body gets.
    pub(super) fn status(&self) -> Status {
        self.rejected().unwrap_or_else(|| self.budget.fault()).into()
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.release(self.held.load(Ordering::Relaxed));
    }
}

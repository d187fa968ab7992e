//! The bytes that batches have beyond those of their request: the numbers of a point repeat its attributes. They are
//! charged to the account before they are made, and until the batch is stored.

use std::sync::Arc;

use trestle_model::fault::Fault;
use trestle_rpc::layer::shares::{Holder, Share, SharePool};

/// Bytes that are charged at once: few operations of the pool for a batch.
const STEP_BYTES: usize = 256 * 1024;

/// The bytes of one batch.
#[derive(Debug)]
pub(crate) struct DerivedBytes {
    pool: Arc<SharePool>,
    holder: Holder,
    share: Option<Share>,
}

impl DerivedBytes {
    /// None yet, of those that `holder` may have of `pool`.
    pub(crate) fn new(pool: Arc<SharePool>, holder: Holder) -> Self {
        Self { pool, holder, share: None }
    }

    /// Charges so many bytes in total.
    ///
    /// # Errors
    /// The pool has too little left, or the account has its share.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Fault> {
        let charged = self.share.as_ref().map_or(0, Share::amount);
        if bytes <= charged {
            return Ok(());
        }
        let bytes = bytes.next_multiple_of(STEP_BYTES);
        match &mut self.share {
            Some(share) => share.resize(bytes),
            None => {
                self.share = Some(self.pool.take(self.holder, bytes)?);
                Ok(())
            }
        }
    }

    /// What is charged, returned to the pool when it is dropped; none where nothing is.
    pub(super) fn into_share(self) -> Option<Share> {
        self.share
    }
}

//! The memory that reads share beside their messages: lists of blocks, and pieces that are read ahead of the client. A
//! request of a few bytes may need some MiB of them, so both are bounded over all reads, with a share for each account.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use trestle_model::{limits::READ_MESSAGE_BYTES_MAX, name::AccountName};
use trestle_rpc::layer::shares::{Holder, Share, SharePool};

use crate::error::BlobError;

/// Most bytes of lists of blocks. The largest change of one list needs about half of it: 50,000 blocks in place of as
/// many, with 100,000 that are staged.
const LISTS_BYTES: usize = 96 * 1024 * 1024;
/// Most bytes that were read and not yet requested by their client.
const AHEAD_BYTES: usize = 32 * 1024 * 1024;

/// See the module. Clones share it.
#[derive(Clone)]
pub(crate) struct ReadMemory {
    lists: Arc<SharePool>,
    ahead: Arc<SharePool>,
    /// None: the server itself, which is never rejected.
    holder: Option<Holder>,
}

impl Default for ReadMemory {
    /// Of what the server reads itself.
    fn default() -> Self {
        Self {
            lists: SharePool::new("bytes of lists of blocks", LISTS_BYTES),
            ahead: SharePool::new("bytes that are read ahead", AHEAD_BYTES),
            holder: None,
        }
    }
}

impl ReadMemory {
    /// The same memory for the reads of an account.
    pub(crate) fn of(&self, account: &AccountName) -> Self {
        Self { holder: Some(Holder::account_alone(account.as_str())), ..self.clone() }
    }

    /// Reserves the memory of a list.
    ///
    /// # Errors
    /// The account has its share; the client may retry.
    pub(crate) fn list(&self, bytes: usize) -> Result<Share, BlobError> {
        match self.holder {
            Some(holder) => Ok(self.lists.take(holder, bytes)?),
            None => Ok(self.lists.overdraw(Holder::account_alone(""), bytes)),
        }
    }

    /// Reserves the memory of a piece that its client did not request yet; none where it is better read later.
    pub(crate) fn ahead(&self) -> Option<Share> {
        let holder = self.holder.unwrap_or_else(|| Holder::account_alone(""));
        self.ahead.take(holder, READ_MESSAGE_BYTES_MAX).ok()
    }

    /// What no read holds: of lists, and ahead of clients; in bytes.
    #[cfg(test)]
    pub(crate) fn free(&self) -> (usize, usize) {
        (self.lists.free(), self.ahead.free())
    }
}

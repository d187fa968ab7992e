//! Authorization: pure decisions on the caller that the gateway authenticated, before a response reveals whether
//! something exists. Streams have no stored access policies: a shared access signature is one of the account, for the
//! service of blobs.

use std::sync::Arc;

use trestle_identity::{
    authorize::{AccountNeed, anonymous, never},
    caller::{Authority, Caller},
    spec::BLOB,
};
use trestle_service::{fault::Fault, name::AccountName};

/// The operation that a call needs permission for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogNeed {
    /// To list the streams of the account.
    List,
    /// To create a stream.
    Create,
    /// To read the settings of a stream, or its segments.
    ReadStream,
    /// To change the settings of a stream, to seal its records, or to restore segments.
    WriteStream,
    /// To delete a stream.
    Delete,
    /// To append records.
    Append,
    /// To append records to streams that are created where they do not exist.
    AppendOrCreate,
    /// To read records.
    Read,
}

impl LogNeed {
    /// What an account SAS must have.
    fn of_account_grant(self) -> AccountNeed {
        let need = |resource_types, permissions| AccountNeed { resource_types, permissions };
        match self {
            Self::List => need("s", &["l"]),
            Self::Create => need("c", &["cw"]),
            Self::ReadStream => need("c", &["r"]),
            Self::WriteStream => need("c", &["w"]),
            Self::Delete => need("c", &["d"]),
            Self::Append => need("o", &["aw"]),
            Self::AppendOrCreate => need("o", &["aw", "cw"]),
            Self::Read => need("o", &["r"]),
        }
    }
}

/// A caller that has the permission that a call needs.
#[derive(Debug, Clone)]
pub(crate) struct LogAccess {
    caller: Arc<Caller>,
}

impl LogAccess {
    /// The access of a caller.
    ///
    /// # Errors
    /// When the caller does not have the permission.
    pub(crate) fn new(caller: Arc<Caller>, need: LogNeed) -> Result<Self, Fault> {
        match &caller.authority {
            Authority::Owner => {}
            Authority::Anonymous => return Err(anonymous()),
            Authority::Account(grant) => {
                AccountNeed::check(Some(need.of_account_grant()), grant, &BLOB)?;
            }
            Authority::Resource(_) => return Err(never()),
        }
        Ok(Self { caller })
    }

    /// The account that the call works in.
    pub(crate) fn account(&self) -> &AccountName {
        &self.caller.account
    }
}

#[cfg(test)]
mod tests;

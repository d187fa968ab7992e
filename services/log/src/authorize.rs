//! Authorization: pure decisions on the caller that the gateway authenticated, before a response reveals whether
//! something exists. A shared access signature is one of the account, for the service of logs, or one of a stream.
//! Streams have no stored access policies.

use std::sync::Arc;

use trestle_identity::{
    authorize::{AccountNeed, anonymous, check_one_of, check_resource, never, not_authorized},
    caller::{Authority, Caller, Letters, ResourceGrant},
    spec::LOG,
};
use trestle_model::fault::{Fault, quoted};
use trestle_model::name::AccountName;

use crate::names::StreamName;

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

    /// One of the letters that a SAS of a stream must have. None: no such signature suffices.
    fn of_stream_grant(self) -> Option<&'static str> {
        match self {
            Self::Create => Some("c"),
            Self::ReadStream | Self::Read => Some("r"),
            // Another letter creates the stream.
            Self::Append | Self::AppendOrCreate => Some("a"),
            Self::List | Self::WriteStream | Self::Delete => None,
        }
    }
}

/// The permissions of a signature over a stream.
///
/// # Errors
/// One over something else, and one that refers to a stored access policy.
fn permissions_on_stream(grant: &ResourceGrant) -> Result<Letters, Fault> {
    // Checks the service: the name is not known here.
    check_resource(grant, &LOG, &grant.resource.name)?;
    match &grant.policy {
        None => Ok(grant.permissions.unwrap_or_default()),
        Some(policy) => {
            let why = "streams of logs have no stored access policies";
            Err(not_authorized(&format!("{why}: si=`{}`", quoted(&policy.id))))
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
            Authority::Role(role) => role.check(Some(need.of_account_grant()))?,
            Authority::Anonymous => return Err(anonymous()),
            Authority::Account(grant) => {
                AccountNeed::check(Some(need.of_account_grant()), grant, &LOG)?;
            }
            Authority::Resource(grant) => {
                let letters = permissions_on_stream(grant)?;
                check_one_of(letters, need.of_stream_grant().ok_or_else(never)?)?;
            }
        }
        Ok(Self { caller })
    }

    /// The account that the call works in, where it uses no stream.
    pub(crate) fn account(&self) -> &AccountName {
        &self.caller.account
    }

    /// The account that the call works in, where it uses this stream.
    ///
    /// # Errors
    /// A signature over another stream.
    pub(crate) fn account_of(&self, stream: &StreamName) -> Result<&AccountName, Fault> {
        if let Authority::Resource(grant) = &self.caller.authority {
            check_resource(grant, &LOG, stream.as_str())?;
        }
        Ok(&self.caller.account)
    }

    /// Whether an export may create its stream.
    ///
    /// # Errors
    /// A signature over a stream that does not permit it; any other was checked for it.
    pub(crate) fn check_create(&self) -> Result<(), Fault> {
        match &self.caller.authority {
            Authority::Resource(grant) => check_one_of(permissions_on_stream(grant)?, "c"),
            Authority::Owner
            | Authority::Role(_)
            | Authority::Account(_)
            | Authority::Anonymous => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

//! Who calls: the account that the gateway vouches for, carried to the services as request metadata.

use http::{HeaderMap, HeaderValue};
use tonic::metadata::MetadataMap;

use crate::{
    fault::{Fault, Reason},
    name::AccountName,
};

/// The header that carries the account. A gateway removes it from what clients send.
pub const ACCOUNT_HEADER: &str = "trestle-account";

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account that the call works in.
    pub account: AccountName,
}

impl Caller {
    /// The caller that a request carries; the development account where it carries none.
    ///
    /// # Errors
    /// A header that is not the name of an account.
    pub fn from_metadata(metadata: &MetadataMap) -> Result<Self, Fault> {
        let Some(value) = metadata.get(ACCOUNT_HEADER) else {
            return Ok(Self { account: AccountName::development() });
        };
        let account = value.to_str().ok().and_then(AccountName::parse);
        account.map(|account| Self { account }).ok_or_else(|| {
            let rule = "must be 3 to 24 lower-case letters and digits";
            Fault::violation(Reason::InvalidInput, ACCOUNT_HEADER, rule)
        })
    }

    /// Puts the caller on a request, in place of what the client may have sent.
    pub fn insert(&self, headers: &mut HeaderMap) {
        let value = HeaderValue::from_str(self.account.as_str())
            .expect("an account name has letters and digits only");
        headers.insert(ACCOUNT_HEADER, value);
    }
}

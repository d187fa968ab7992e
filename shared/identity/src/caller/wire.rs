//! A caller in headers, between processes of one version that trust each other.

mod message;
#[cfg(test)]
mod tests;

use http::{HeaderMap, HeaderValue};
use prost::Message;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use self::message::GrantWire;
use super::{ACCOUNT_HEADER, Authority, Caller, GRANT_HEADER};
use trestle_service::{
    fault::{Fault, Reason},
    name::AccountName,
};

/// Writes `caller` into headers.
pub(super) fn write(caller: &Caller, headers: &mut HeaderMap) {
    super::remove(headers);
    let account = HeaderValue::from_str(caller.account.as_str());
    headers.insert(ACCOUNT_HEADER, account.expect("an account name has letters and digits only"));
    let grant = match &caller.authority {
        Authority::Owner => return,
        Authority::Account(grant) => {
            GrantWire { account: Some(grant.into()), ..GrantWire::default() }
        }
        Authority::Resource(grant) => {
            GrantWire { resource: Some(grant.into()), ..GrantWire::default() }
        }
        Authority::Anonymous => GrantWire { is_anonymous: true, ..GrantWire::default() },
    };
    let value = BinaryMetadataValue::from_bytes(&grant.encode_to_vec());
    let value = HeaderValue::from_bytes(value.as_encoded_bytes());
    headers.insert(GRANT_HEADER, value.expect("base64 is fit for a header"));
}

/// Reads a caller from headers.
///
/// # Errors
/// Headers without a valid caller. A grant that cannot be parsed never becomes a wider one.
pub(super) fn read(metadata: &MetadataMap) -> Result<Caller, Fault> {
    let account = match metadata.get(ACCOUNT_HEADER) {
        None => AccountName::development(),
        Some(value) => value.to_str().ok().and_then(AccountName::parse).ok_or_else(|| {
            let rule = "must be 3 to 24 lower-case letters and digits";
            Fault::violation(Reason::InvalidInput, ACCOUNT_HEADER, rule)
        })?,
    };
    let mut grants = metadata.get_all_bin(GRANT_HEADER).iter();
    let authority = match grants.next() {
        None => Authority::Owner,
        Some(value) => {
            let bytes = value.to_bytes().ok().filter(|_| grants.next().is_none());
            let authority = bytes.and_then(|bytes| GrantWire::decode(bytes).ok()?.authority());
            authority.ok_or_else(|| {
                let rule = "must be a grant as a gateway of this version writes it";
                Fault::violation(Reason::InvalidInput, GRANT_HEADER, rule)
            })?
        }
    };
    Ok(Caller { account, authority })
}

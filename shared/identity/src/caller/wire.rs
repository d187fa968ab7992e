//! A caller in headers, between processes of one version that trust each other.

mod message;
#[cfg(test)]
mod tests;

use http::{HeaderMap, HeaderValue};
use prost::Message;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use self::message::GrantWire;
use super::{ACCOUNT_HEADER, Caller, GRANT_HEADER};
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::AccountName;

/// Writes `caller` into headers.
pub(super) fn write(caller: &Caller, headers: &mut HeaderMap) {
    super::remove(headers);
    let account = HeaderValue::from_str(caller.account.as_str());
    headers.insert(ACCOUNT_HEADER, account.expect("an account name has letters and digits only"));
    let source = caller.source.as_deref().map(|source| Box::new(GrantWire::of(source)));
    let grant = GrantWire { source, ..GrantWire::of(&caller.authority) };
    if grant == GrantWire::default() {
        return;
    }
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
    let Some(value) = grants.next() else {
        return Ok(Caller::owner(account));
    };
    let bytes = value.to_bytes().ok().filter(|_| grants.next().is_none());
    let grant = bytes.and_then(|bytes| GrantWire::decode(bytes).ok());
    let caller = grant.and_then(|grant| grant.caller(account));
    caller.ok_or_else(|| {
        let rule = "must be a grant as a gateway of this version writes it";
        Fault::violation(Reason::InvalidInput, GRANT_HEADER, rule)
    })
}

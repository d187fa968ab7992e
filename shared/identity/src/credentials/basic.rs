//! Credentials that are an account and its key.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::headers::malformed;
use crate::{account::AccountSet, caller::Caller, sas::Denied};

/// The owner of the account whose key it is.
pub(super) fn basic(
    value: &str,
    named: Option<&str>,
    accounts: &AccountSet,
) -> Result<Caller, Denied> {
    let read = || {
        let text = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
        let (name, key) = text.split_once(':')?;
        Some((name.to_owned(), STANDARD.decode(key).ok()?))
    };
    let Some((name, key)) = read() else {
        let rule = "`Basic` must be followed by base64 of account:key, the key in base64 itself";
        return Err(malformed("authorization", rule));
    };
    let account = accounts.with_key(&name, &key);
    let is_named = named.is_none_or(|named| named == name);
    let account = account.filter(|_| is_named).ok_or_else(Denied::unknown)?;
    if account.is_disabled {
        return Err(Denied::disabled(account));
    }
    Ok(Caller::owner(account.name.clone()))
}

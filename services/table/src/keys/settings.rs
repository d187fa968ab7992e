//! Records of settings: access policies by table id, service properties by account.

use bytes::Bytes;
use trestle_service::name::AccountName;

use super::{
    ACCESS_POLICIES, SERVICE_PROPERTIES, TableId, VERSION, account_prefix, table_id_prefix,
    versioned,
};
use crate::corrupt::CorruptRecord;

/// Key of the stored access policies of a table.
pub fn access_policies(id: TableId) -> Bytes {
    table_id_prefix(ACCESS_POLICIES, id).into()
}

/// Key of the service properties of an account.
pub fn service_properties(account: &AccountName) -> Bytes {
    account_prefix(SERVICE_PROPERTIES, account).into()
}

/// The stored form of a settings message.
pub fn encode_message(message: &impl prost::Message) -> Bytes {
    let mut value = vec![VERSION];
    message.encode_raw(&mut value);
    value.into()
}

/// Decodes a settings message; the default where there is none.
///
/// # Errors
/// [`CorruptRecord`].
pub fn decode_message<M: prost::Message + Default>(
    value: Option<&Bytes>,
    what: &'static str,
) -> Result<M, CorruptRecord> {
    let Some(value) = value else {
        return Ok(M::default());
    };
    M::decode(versioned(value, what)?).map_err(|_| CorruptRecord(what))
}

//! Keys of settings: access policies by table id, service properties by account.

use bytes::Bytes;
use trestle_model::name::AccountName;

use super::{ACCESS_POLICIES, SERVICE_PROPERTIES, TableId, account_prefix, table_id_prefix};

/// Key of the stored access policies of a table.
pub fn access_policies(id: TableId) -> Bytes {
    table_id_prefix(ACCESS_POLICIES, id).into()
}

/// Key of the service properties of an account.
pub fn service_properties(account: &AccountName) -> Bytes {
    account_prefix(SERVICE_PROPERTIES, account).into()
}

//! Keys under the name of an account: its containers and its settings.

use bytes::Bytes;
use trestle_kv::{Span, order};
use trestle_model::name::AccountName;

use super::{CONTAINER, PROTECTION, REST_SETTINGS, SERVICE_PROPERTIES, SOFT_DELETED_CONTAINER};
use crate::{error::BlobError, names::ContainerName, record::ContainerId};

/// Every container of every account.
pub(crate) fn all_containers() -> Span {
    Span::prefix(&[CONTAINER])
}

/// Key of the record of a container.
pub(crate) fn container(account: &AccountName, name: &ContainerName) -> Bytes {
    let mut key = of_account(CONTAINER, account);
    order::push_text(&mut key, name.as_str());
    key.into()
}

/// The containers of an account whose names start with `prefix`, by name.
pub(crate) fn containers(account: &AccountName, prefix: &str) -> Span {
    let mut key = of_account(CONTAINER, account);
    // The text without its end mark: names are ASCII.
    key.extend_from_slice(prefix.as_bytes());
    Span::prefix(&key)
}

/// Key of a deleted container that can be restored.
pub(crate) fn soft_deleted_container(
    account: &AccountName,
    name: &ContainerName,
    id: ContainerId,
) -> Bytes {
    let mut key = of_account(SOFT_DELETED_CONTAINER, account);
    order::push_text(&mut key, name.as_str());
    order::push_u64(&mut key, id.0);
    key.into()
}

/// The deleted containers of an account that can be restored and whose names start with `prefix`, by name.
pub(crate) fn soft_deleted_containers(account: &AccountName, prefix: &str) -> Span {
    let mut key = of_account(SOFT_DELETED_CONTAINER, account);
    key.extend_from_slice(prefix.as_bytes());
    Span::prefix(&key)
}

/// Every deleted container that can be restored.
pub(crate) fn every_soft_deleted_container() -> Span {
    Span::prefix(&[SOFT_DELETED_CONTAINER])
}

/// The name in a key of [`container`] or of [`soft_deleted_container`].
pub(crate) fn container_name_of(key: &[u8]) -> Result<String, BlobError> {
    let name = || {
        let mut rest = key.get(1..)?;
        order::take_text(&mut rest)?;
        order::take_text(&mut rest)
    };
    name().ok_or_else(|| BlobError::corrupt("key of a container"))
}

/// The account in a key of [`container`] or of [`soft_deleted_container`].
pub(crate) fn container_account(key: &[u8]) -> Option<AccountName> {
    AccountName::parse(&order::take_text(&mut key.get(1..)?)?)
}

/// Key of the settings of the service for an account.
pub(crate) fn service_properties(account: &AccountName) -> Bytes {
    of_account(SERVICE_PROPERTIES, account).into()
}

/// Key of the settings of an account that only REST uses.
pub(crate) fn rest_settings(account: &AccountName) -> Bytes {
    of_account(REST_SETTINGS, account).into()
}

/// Key of the settings of an account on what is kept of blobs.
pub(crate) fn protection(account: &AccountName) -> Bytes {
    of_account(PROTECTION, account).into()
}

fn of_account(kind: u8, account: &AccountName) -> Vec<u8> {
    let mut key = vec![kind];
    order::push_text(&mut key, account.as_str());
    key
}

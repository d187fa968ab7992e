//! Records of tables, by account and lower-cased name.

use bytes::Bytes;
use trestle_kv::{Span, order};
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Ticks;

use super::{TABLE, TableId, VERSION, account_prefix, read_u64, versioned};
use crate::corrupt::CorruptRecord;

/// The stored record of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRecord {
    /// Its id.
    pub id: TableId,
    /// When it was created.
    pub created_at: Ticks,
    /// Its name as created.
    pub name: String,
}

/// Key of the record of a table.
pub fn table(account: &AccountName, folded_name: &str) -> Bytes {
    let mut key = account_prefix(TABLE, account);
    order::push_text(&mut key, folded_name);
    key.into()
}

/// Every table of every account.
pub fn all_tables() -> Span {
    Span::prefix(&[TABLE])
}

/// The account in a key of [`table`].
pub fn table_account(key: &[u8]) -> Option<AccountName> {
    AccountName::parse(&order::take_text(&mut key.get(1..)?)?)
}

/// Every table of an account, by lower-cased name.
pub fn tables(account: &AccountName) -> Span {
    Span::prefix(&account_prefix(TABLE, account))
}

impl TableRecord {
    /// A new table.
    pub fn new(id: TableId, created_at: Ticks, name: &TableName) -> Self {
        Self { id, created_at, name: name.as_str().to_owned() }
    }

    /// The stored form.
    pub fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.id.0.to_be_bytes());
        value.extend_from_slice(&self.created_at.get().to_be_bytes());
        value.extend_from_slice(self.name.as_bytes());
        value.into()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`CorruptRecord`].
    pub fn decode(value: &[u8]) -> Result<Self, CorruptRecord> {
        let what = "record of a table";
        let fields = || {
            let (id, rest) = read_u64(versioned(value, what).ok()?)?;
            let (ticks, name) = read_u64(rest)?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            Some(Self { id: TableId(id), created_at: Ticks::new(ticks)?, name })
        };
        fields().ok_or(CorruptRecord(what))
    }
}

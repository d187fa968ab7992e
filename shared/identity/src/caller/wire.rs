//! A caller in headers, between processes that trust each other.

#[cfg(test)]
mod tests;

use http::{HeaderMap, HeaderValue};
use prost::Message;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use super::{
    ACCOUNT_HEADER, AccountGrant, Authority, Caller, Denied, GRANT_HEADER, KeyRange, Letters,
    PolicyRef, QueueGrant, TableGrant,
};
use trestle_service::{
    fault::{Fault, Reason},
    name::AccountName,
};

/// An [`Authority`] that is less than full access. Field numbers never change: processes of
/// different versions communicate.
#[derive(Clone, PartialEq, Message)]
struct GrantWire {
    #[prost(message, optional, tag = "1")]
    account: Option<AccountWire>,
    #[prost(message, optional, tag = "2")]
    table: Option<TableWire>,
    #[prost(message, optional, tag = "3")]
    queue: Option<QueueWire>,
    #[prost(message, optional, tag = "4")]
    denied: Option<DeniedWire>,
}

/// A grant that a check has already refused, which applies if its policy is valid. It has a field
/// of its own, in place of the grant: a service that does not support the field sees no grant at
/// all.
#[derive(Clone, PartialEq, Message)]
struct DeniedWire {
    #[prost(message, optional, tag = "1")]
    table: Option<TableWire>,
    #[prost(message, optional, tag = "2")]
    queue: Option<QueueWire>,
    #[prost(enumeration = "Reason", tag = "3")]
    reason: i32,
    #[prost(string, tag = "4")]
    message: String,
}

#[derive(Clone, PartialEq, Message)]
struct AccountWire {
    #[prost(string, tag = "1")]
    services: String,
    #[prost(string, tag = "2")]
    resource_types: String,
    #[prost(string, tag = "3")]
    permissions: String,
}

#[derive(Clone, PartialEq, Message)]
struct TableWire {
    #[prost(string, tag = "1")]
    table: String,
    #[prost(string, optional, tag = "2")]
    permissions: Option<String>,
    #[prost(string, optional, tag = "3")]
    policy: Option<String>,
    #[prost(bool, tag = "4")]
    has_start: bool,
    #[prost(bool, tag = "5")]
    has_expiry: bool,
    #[prost(string, optional, tag = "6")]
    start_partition_key: Option<String>,
    #[prost(string, optional, tag = "7")]
    start_row_key: Option<String>,
    #[prost(string, optional, tag = "8")]
    end_partition_key: Option<String>,
    #[prost(string, optional, tag = "9")]
    end_row_key: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct QueueWire {
    #[prost(string, tag = "1")]
    queue: String,
    #[prost(string, optional, tag = "2")]
    permissions: Option<String>,
    #[prost(string, optional, tag = "3")]
    policy: Option<String>,
    #[prost(bool, tag = "4")]
    has_start: bool,
    #[prost(bool, tag = "5")]
    has_expiry: bool,
}

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
        Authority::Table(grant) => {
            GrantWire { table: Some(grant.into()), ..GrantWire::default() }.denied(&grant.policy)
        }
        Authority::Queue(grant) => {
            GrantWire { queue: Some(grant.into()), ..GrantWire::default() }.denied(&grant.policy)
        }
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

impl GrantWire {
    fn authority(self) -> Option<Authority> {
        match (self.account, self.table, self.queue, self.denied) {
            (Some(account), None, None, None) => account.grant().map(Authority::Account),
            (None, Some(table), None, None) => table.grant(None).map(Authority::Table),
            (None, None, Some(queue), None) => queue.grant(None).map(Authority::Queue),
            (None, None, None, Some(denied)) => denied.authority(),
            _ => None,
        }
    }

    /// The same, if a check after that of the policy has failed.
    fn denied(self, policy: &Option<PolicyRef>) -> Self {
        let Some(Denied { reason, message }) = policy.as_ref().and_then(|it| it.denied.as_ref())
        else {
            return self;
        };
        let (reason, message) = (i32::from(*reason), message.clone());
        let denied = DeniedWire { table: self.table, queue: self.queue, reason, message };
        Self { denied: Some(denied), ..Self::default() }
    }
}

impl DeniedWire {
    fn authority(self) -> Option<Authority> {
        let reason = Reason::try_from(self.reason).ok()?;
        let denied = Some(Denied { reason, message: self.message });
        // Without a policy no service would evaluate the denial.
        match (self.table, self.queue) {
            (Some(table), None) if table.policy.is_some() => {
                table.grant(denied).map(Authority::Table)
            }
            (None, Some(queue)) if queue.policy.is_some() => {
                queue.grant(denied).map(Authority::Queue)
            }
            _ => None,
        }
    }
}

impl From<&AccountGrant> for AccountWire {
    fn from(grant: &AccountGrant) -> Self {
        Self {
            services: grant.services.to_string(),
            resource_types: grant.resource_types.to_string(),
            permissions: grant.permissions.to_string(),
        }
    }
}

impl AccountWire {
    fn grant(&self) -> Option<AccountGrant> {
        Some(AccountGrant {
            services: Letters::parse(&self.services)?,
            resource_types: Letters::parse(&self.resource_types)?,
            permissions: Letters::parse(&self.permissions)?,
        })
    }
}

impl From<&TableGrant> for TableWire {
    fn from(grant: &TableGrant) -> Self {
        let (policy, range) = (grant.policy.as_ref(), grant.range.clone());
        Self {
            table: grant.table.clone(),
            permissions: grant.permissions.map(|letters| letters.to_string()),
            policy: policy.map(|policy| policy.id.clone()),
            has_start: policy.is_some_and(|policy| policy.has_start),
            has_expiry: policy.is_some_and(|policy| policy.has_expiry),
            start_partition_key: range.start_partition_key,
            start_row_key: range.start_row_key,
            end_partition_key: range.end_partition_key,
            end_row_key: range.end_row_key,
        }
    }
}

impl TableWire {
    fn grant(self, denied: Option<Denied>) -> Option<TableGrant> {
        let permissions = match self.permissions {
            None => None,
            Some(letters) => Some(Letters::parse(&letters)?),
        };
        // A row key would be ignored without its partition key, and the range be wider than
        // intended.
        let is_loose =
            |row: &Option<String>, partition: &Option<String>| row.is_some() && partition.is_none();
        if is_loose(&self.start_row_key, &self.start_partition_key)
            || is_loose(&self.end_row_key, &self.end_partition_key)
        {
            return None;
        }
        let (has_start, has_expiry) = (self.has_start, self.has_expiry);
        Some(TableGrant {
            table: self.table,
            permissions,
            policy: self.policy.map(|id| PolicyRef { id, has_start, has_expiry, denied }),
            range: KeyRange {
                start_partition_key: self.start_partition_key,
                start_row_key: self.start_row_key,
                end_partition_key: self.end_partition_key,
                end_row_key: self.end_row_key,
            },
        })
    }
}

impl From<&QueueGrant> for QueueWire {
    fn from(grant: &QueueGrant) -> Self {
        let policy = grant.policy.as_ref();
        Self {
            queue: grant.queue.clone(),
            permissions: grant.permissions.map(|letters| letters.to_string()),
            policy: policy.map(|policy| policy.id.clone()),
            has_start: policy.is_some_and(|policy| policy.has_start),
            has_expiry: policy.is_some_and(|policy| policy.has_expiry),
        }
    }
}

impl QueueWire {
    fn grant(self, denied: Option<Denied>) -> Option<QueueGrant> {
        let permissions = match self.permissions {
            None => None,
            Some(letters) => Some(Letters::parse(&letters)?),
        };
        let (has_start, has_expiry) = (self.has_start, self.has_expiry);
        let policy = self.policy.map(|id| PolicyRef { id, has_start, has_expiry, denied });
        Some(QueueGrant { queue: self.queue, permissions, policy })
    }
}

//! What a caller may do to the entities of one table.

use std::{cmp::Ordering, sync::Arc};

use trestle_identity::{
    access_policy,
    authorize::{
        anonymous, check_all_of, check_resource, check_resource_type, check_service,
        not_authorized, wrong_service,
    },
    bearer::Role,
    caller::{Authority, Caller, KeyRange, Letters, PolicyRef},
    spec::TABLE,
};
use trestle_kv::order::compare_text;
use trestle_model::fault::Fault;
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Ticks;
use trestle_proto::service::v1::AccessPolicy;

use crate::entity::EntityKey;

/// The resource type of entities.
const OBJECT: &str = "o";

/// What a call does to an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntityAction {
    /// Get, query, stream, explain.
    Read,
    /// Insert.
    Insert,
    /// Replace or merge one that exists.
    Update,
    /// Insert, or replace or merge.
    Upsert,
    /// Delete.
    Delete,
}

impl EntityAction {
    /// The permissions that it needs, every one.
    fn permissions(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Insert => "a",
            Self::Update => "u",
            Self::Upsert => "au",
            Self::Delete => "d",
        }
    }
}

/// A caller with a permission on entities of some table.
#[derive(Debug, Clone)]
pub(crate) struct EntityAccess {
    caller: Arc<Caller>,
    /// None: every key.
    range: Option<KeyRange>,
}

impl EntityAccess {
    /// The access of a caller.
    ///
    /// # Errors
    /// When the caller has no permission on entities of any table.
    pub(crate) fn new(caller: Arc<Caller>) -> Result<Self, Fault> {
        let range = match &caller.authority {
            Authority::Owner | Authority::Role(_) => None,
            Authority::Account(grant) => {
                check_service(grant, &TABLE)?;
                check_resource_type(grant, OBJECT)?;
                None
            }
            Authority::Resource(grant) if grant.is_of(&TABLE) => {
                let unknown = || not_authorized("the signature has bounds that are not supported");
                Some(KeyRange::of_bounds(&grant.bounds).ok_or_else(unknown)?)
            }
            Authority::Resource(_) => return Err(wrong_service(&TABLE)),
            Authority::Anonymous => return Err(anonymous()),
        };
        Ok(Self { caller, range })
    }

    /// The account that the call works in.
    pub(crate) fn account(&self) -> &AccountName {
        &self.caller.account
    }

    /// The key range of the caller, if it has one.
    pub(crate) fn range(&self) -> Option<&KeyRange> {
        self.range.as_ref()
    }

    /// The stored access policy that [`EntityAccess::permissions`] needs, if any.
    pub(crate) fn policy(&self) -> Option<&PolicyRef> {
        self.caller.authority.policy()
    }

    /// What the caller may do to the entities of `table`, which has these stored access policies.
    ///
    /// # Errors
    /// When it is another table than the one granted, or the policy is not valid now.
    pub(crate) fn permissions(
        &self,
        table: &TableName,
        policies: &[AccessPolicy],
        now: Ticks,
    ) -> Result<EntityPermissions<'_>, Fault> {
        let permissions = match &self.caller.authority {
            Authority::Owner => GrantedLetters::All,
            Authority::Role(role) => GrantedLetters::OfRole(*role),
            Authority::Account(grant) => GrantedLetters::Letters(grant.permissions),
            Authority::Anonymous => return Err(anonymous()),
            Authority::Resource(grant) => {
                check_resource(grant, &TABLE, &table.folded())?;
                GrantedLetters::Letters(access_policy::permissions(grant, policies, now)?)
            }
        };
        Ok(EntityPermissions { permissions, range: self.range() })
    }
}

/// The permissions of a caller on the entities of one table.
#[derive(Debug, Clone, Copy)]
enum GrantedLetters {
    All,
    OfRole(Role),
    Letters(Letters),
}

/// What a caller may do to the entities of one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntityPermissions<'a> {
    permissions: GrantedLetters,
    /// None: every key.
    range: Option<&'a KeyRange>,
}

impl EntityPermissions<'_> {
    /// Whether the caller may do this to some entity.
    ///
    /// # Errors
    /// The missing permission.
    pub(crate) fn check(&self, action: EntityAction) -> Result<(), Fault> {
        match self.permissions {
            GrantedLetters::All => Ok(()),
            GrantedLetters::OfRole(role) => role.check_letters(action.permissions()),
            GrantedLetters::Letters(letters) => check_all_of(letters, action.permissions()),
        }
    }

    /// Whether the caller may do this to this entity.
    ///
    /// # Errors
    /// The missing permission.
    pub(crate) fn check_entity(&self, action: EntityAction, key: &EntityKey) -> Result<(), Fault> {
        self.check(action)?;
        if self.range.is_none_or(|range| contains(range, key)) {
            return Ok(());
        }
        Err(not_authorized("the entity is outside of the key range of the signature"))
    }
}

/// Whether a key is in a range.
pub(super) fn contains(range: &KeyRange, key: &EntityKey) -> bool {
    let order = |partition: &str, row: Option<&str>| {
        compare_text(&key.partition_key, partition)
            .then_with(|| row.map_or(Ordering::Equal, |row| compare_text(&key.row_key, row)))
    };
    let starts = range.start_partition_key.as_deref();
    let starts = starts.map(|partition| order(partition, range.start_row_key.as_deref()));
    let ends = range.end_partition_key.as_deref();
    let ends = ends.map(|partition| order(partition, range.end_row_key.as_deref()));
    starts.is_none_or(Ordering::is_ge) && ends.is_none_or(Ordering::is_le)
}

//! What a service declares of its signatures, as data: its names, its permissions, the types of its resources, and the
//! fields of its tokens. A service is added with a [`ServiceSpec`] and an entry in [`SERVICES`].

mod blob;
mod log;
mod queue;
mod table;

use std::hash::{Hash, Hasher};

use crate::{
    field_values::FieldValues,
    sas::Malformed,
    shared_key::{Ambiguity, SignedTexts},
};

pub use self::{
    blob::{BLOB, SNAPSHOT},
    log::LOG,
    queue::QUEUE,
    table::TABLE,
};

/// The services whose tokens are parsed.
pub const SERVICES: [&ServiceSpec; 4] = [&TABLE, &QUEUE, &BLOB, &LOG];

/// The declarations of a service.
#[derive(Debug)]
pub struct ServiceSpec {
    /// Its name, as signatures contain it: `table`.
    pub name: &'static str,
    /// Its letter in an account SAS.
    pub letter: char,
    /// Whether this server has the service.
    pub is_served: bool,
    /// The permissions of a service SAS and their meaning, in the order in which clients write them.
    pub permissions: &'static [(char, &'static str)],
    /// Whether a token must have its permissions in that order.
    pub orders_permissions: bool,
    /// The field of a token with the name of the resource; none where the call names it.
    pub name_field: Option<&'static str>,
    /// The header in which a gRPC call names the resource, if the token does not.
    pub name_header: Option<&'static str>,
    /// Whether a text is a valid name of a resource with access policies: a table, a queue, a container.
    pub is_name: fn(&str) -> bool,
    /// Whether names that differ only in case are the same.
    pub ignores_case: bool,
    /// Whether the path of a request names more than the first segment: `container/blob`.
    pub has_paths: bool,
    /// The noun for a resource that has access policies.
    pub container: &'static str,
    /// The noun for what such resources contain.
    pub objects: &'static str,
    /// The types of resources that a token is for.
    pub resource_types: &'static [ResourceType],
    /// The fields of its tokens beside those of every service, in the order in which they are signed.
    pub fields: &'static [FieldSpec],
    /// Tokens that a user delegation key signs; none: the service has none.
    pub delegation: Option<DelegationForm>,
    /// Checks the values of these fields, and removes those that mean nothing.
    pub normalize: fn(&mut FieldValues) -> Result<(), Malformed>,
    /// The bounds of a token as text, after the name of the resource; may be empty.
    pub describe: fn(&FieldValues) -> String,
    /// The texts that Shared Key may sign for a request, the most likely one first.
    pub signed_texts: SignedTexts,
    /// What makes a request have the signed text of another one too.
    pub ambiguity: Ambiguity,
}

/// The form of the tokens that user delegation keys sign.
#[derive(Debug, Clone, Copy)]
pub struct DelegationForm {
    /// The first version of such tokens, and of requests for their keys.
    pub since: &'static str,
    /// The fields that are signed after those of the key, each with the first version that signs it.
    pub fields: &'static [(&'static str, &'static str)],
}

/// A type of resource that a token is for.
#[derive(Debug)]
pub struct ResourceType {
    /// Its value of `sr`; empty where a service has only one type and no such field.
    pub code: &'static str,
    /// The first version of its tokens. Those of earlier versions are signed like tokens of other resources.
    pub since: &'static str,
    /// The resource of a token of this type, if a call is on this path.
    pub name_in: fn(path: &str, fields: &FieldValues) -> Option<String>,
    /// Whether a token is also for the resources below.
    pub covers_below: bool,
}

/// A field of the tokens of a service.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name.
    pub name: &'static str,
    /// The first version that signs it; none: it is never signed.
    pub signed_since: Option<&'static str>,
    /// Whether a token of an earlier version must not have it.
    pub is_new: bool,
    /// Whether it bounds what the token grants, and is part of the grant.
    pub is_bound: bool,
    /// The parameters of a request that have it, the first that is present; empty where the token has it.
    pub of_request: &'static [&'static str],
    /// The header of a gRPC call that has it then.
    pub header: Option<&'static str>,
    /// The values of `sr` that it is signed for; empty: every one.
    pub of_types: &'static [&'static str],
}

/// Compares names: a name is defined once.
impl PartialEq for ServiceSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ServiceSpec {}

impl Hash for ServiceSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ServiceSpec {
    /// The headers in which a gRPC call names the resource.
    pub fn headers(&self) -> impl Iterator<Item = &'static str> {
        self.name_header.into_iter().chain(self.fields.iter().filter_map(|field| field.header))
    }

    /// The letters of its permissions, in their order.
    #[must_use]
    pub fn letters(&self) -> String {
        self.permissions.iter().map(|(letter, _)| *letter).collect()
    }

    /// The name of a resource as it is compared and signed.
    #[must_use]
    pub fn folded(&self, name: &str) -> String {
        if self.ignores_case { name.to_ascii_lowercase() } else { name.to_owned() }
    }

    /// The type of resource with this code.
    #[must_use]
    pub fn resource_type(&self, code: &str) -> Option<&'static ResourceType> {
        self.resource_types.iter().find(|resource_type| resource_type.code == code)
    }
}

/// The whole path is the resource.
fn whole(path: &str, _: &FieldValues) -> Option<String> {
    Some(path.to_owned())
}

/// The field is signed by every version.
const fn bound(name: &'static str) -> FieldSpec {
    FieldSpec {
        name,
        signed_since: Some(crate::sas::OLDEST_VERSION),
        is_new: false,
        is_bound: true,
        of_request: &[],
        header: None,
        of_types: &[],
    }
}

/// An empty value is signed like an absent one.
fn without_empty(fields: &mut FieldValues) -> Result<(), Malformed> {
    fields.retain(|_, value| !value.is_empty());
    Ok(())
}

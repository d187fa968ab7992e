//! The scope of a token: an account, or one resource of a service.

use super::{Malformed, Version, fields::Fields, letters};
use crate::{
    field_values::FieldValues,
    spec::{ResourceType, SERVICES, ServiceSpec},
};
use trestle_model::fault::quoted;

/// Since this version the encryption scope is signed.
const SIGNS_ENCRYPTION: &str = "2020-12-06";
/// The letters of services in the token of an account: those of Azure, which has files too, and that of logs.
const ACCOUNT_SERVICES: &str = "bqtfl";
/// Fields that clients add to the token of an account, where they mean nothing.
const MEANINGLESS: [&str; 6] = ["sr", "rscc", "rscd", "rsce", "rscl", "rsct"];

/// The scope of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// A whole account.
    Account {
        /// Letters of services: those that each [`ServiceSpec`] has, and `f` for files.
        services: String,
        /// Letters of `sco`.
        resource_types: String,
        /// For blobs.
        encryption_scope: String,
    },
    /// One resource of a service.
    Resource(ResourceScope),
}

/// One resource of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceScope {
    /// The service.
    pub service: &'static ServiceSpec,
    /// The resource, as the token or the call spells it; segments are separated by `/`.
    pub name: String,
    /// The values of the fields that the service declares.
    pub fields: FieldValues,
}

/// The resource that a call names, for tokens that do not contain it. A wrong name does not match the signature.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamedResource {
    /// Its service.
    pub service: &'static ServiceSpec,
    /// Its name; segments are separated by `/`.
    pub name: String,
    /// The fields of the request that are signed.
    pub fields: FieldValues,
}

impl NamedResource {
    /// A resource by its name.
    #[must_use]
    pub fn new(service: &'static ServiceSpec, name: impl Into<String>) -> Self {
        Self { service, name: name.into(), fields: FieldValues::default() }
    }
}

impl Scope {
    /// A resource of a service, with the fields that the service declares.
    #[must_use]
    pub fn of_resource(
        service: &'static ServiceSpec,
        name: impl Into<String>,
        fields: FieldValues,
    ) -> Self {
        Self::Resource(ResourceScope { service, name: name.into(), fields })
    }

    /// The valid permissions, in the order in which clients write them.
    #[must_use]
    pub fn permissions(&self) -> String {
        match self {
            Self::Account { .. } => "rwdxylacupfti".to_owned(),
            Self::Resource(scope) => scope.service.letters(),
        }
    }

    /// The resource to parse a token of this scope with.
    pub(super) fn named(&self) -> Option<NamedResource> {
        match self {
            Self::Resource(ResourceScope { service, name, fields })
                if service.name_field.is_none() =>
            {
                let (name, fields) = (name.clone(), fields.clone());
                Some(NamedResource { service, name, fields })
            }
            _ => None,
        }
    }

    /// Takes the scope of a token from its fields.
    pub(super) fn take(
        fields: &mut Fields,
        named: Option<NamedResource>,
        version: &Version,
    ) -> Result<Self, Malformed> {
        if fields.has("ss") || fields.has("srt") {
            return Self::take_account(fields, version);
        }
        for service in SERVICES {
            let Some(name) = service.name_field.and_then(|field| fields.take(field)) else {
                continue;
            };
            if !(service.is_name)(&name) {
                let rule = format!("must be the name of a {}", service.container);
                let field = service.name_field.unwrap_or("token");
                return Err(Malformed::new(field, format!("{rule}: value=`{}`", quoted(&name))));
            }
            let named = NamedResource::new(service, name);
            return ResourceScope::take(fields, named, version).map(Self::Resource);
        }
        let Some(named) = named else {
            return Err(Malformed::new("token", unnamed()));
        };
        ResourceScope::take(fields, named, version).map(Self::Resource)
    }

    fn take_account(fields: &mut Fields, version: &Version) -> Result<Self, Malformed> {
        let services = letters(fields, "ss", ACCOUNT_SERVICES)?;
        let resource_types = letters(fields, "srt", "sco")?;
        let encryption_scope = fields.filled("ses").unwrap_or_default();
        if !encryption_scope.is_empty() {
            must_sign(version, "ses", SIGNS_ENCRYPTION)?;
        }
        for field in MEANINGLESS {
            fields.take(field);
        }
        if fields.is_empty("si") {
            fields.take("si");
        }
        Ok(Self::Account { services, resource_types, encryption_scope })
    }
}

/// The rule for a token that contains no resource, in a call that names none.
fn unnamed() -> String {
    let named = SERVICES.iter().filter_map(|service| Some((service, service.name_header?)));
    let headers: Vec<_> = named
        .map(|(service, header)| {
            format!("one of a {} needs its name in `{header}`", service.container)
        })
        .collect();
    format!(
        "must be of an account (ss and srt), of a table (tn) or of a log stream (ln); {}",
        headers.join("; ")
    )
}

impl ResourceScope {
    /// The type of the resource.
    #[must_use]
    pub fn resource_type(&self) -> Option<&'static ResourceType> {
        self.service.resource_type(self.fields.get("sr").unwrap_or_default())
    }

    /// The values of the fields that are signed after those of every service.
    pub(super) fn signed<'a>(
        &'a self,
        version: &'a Version,
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let is_signed = |since: Option<&str>| since.is_some_and(|since| version.since(since));
        let signed = self.service.fields.iter().filter(move |field| is_signed(field.signed_since));
        signed.map(|field| (field.name, self.fields.get(field.name).unwrap_or_default()))
    }

    /// The fields of a token, with the name if it has one.
    pub(super) fn query(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let name = self.service.name_field.map(|field| (field, Some(self.name.as_str())));
        let fields = self.service.fields.iter().filter(|field| field.of_request.is_empty());
        name.into_iter().chain(fields.map(|field| (field.name, self.fields.get(field.name))))
    }

    /// What bounds the grant within the resource.
    pub(super) fn bounds(&self) -> FieldValues {
        let bounds = self.service.fields.iter().filter(|field| field.is_bound);
        bounds.filter_map(|field| Some((field.name, self.fields.get(field.name)?))).collect()
    }

    fn take(
        fields: &mut Fields,
        named: NamedResource,
        version: &Version,
    ) -> Result<Self, Malformed> {
        let NamedResource { service, name, fields: of_request } = named;
        let mut values = FieldValues::default();
        for field in service.fields {
            let value = if field.of_request.is_empty() {
                fields.take(field.name)
            } else {
                let is_signed = |it| field.of_types.is_empty() || field.of_types.contains(&it);
                let resource_type = values.get("sr").unwrap_or_default();
                of_request.get(field.name).filter(|_| is_signed(resource_type)).map(str::to_owned)
            };
            let Some(value) = value else {
                continue;
            };
            if let Some(since) = field.signed_since.filter(|_| field.is_new && !value.is_empty()) {
                must_sign(version, field.name, since)?;
            }
            values.set(field.name, value);
        }
        (service.normalize)(&mut values)?;
        let scope = Self { service, name, fields: values };
        let resource_type = scope.resource_type();
        if let Some(resource_type) = resource_type {
            must_sign(version, service.name_field.unwrap_or("sr"), resource_type.since)?;
        }
        let name_in = resource_type.map(|resource_type| resource_type.name_in);
        match name_in.and_then(|name_in| name_in(&scope.name, &scope.fields)) {
            Some(name) => Ok(Self { name, ..scope }),
            None => {
                let codes: Vec<_> = service.resource_types.iter().map(|it| it.code).collect();
                let rule = format!("must be a type of the resource: one of `{}`", codes.join(", "));
                Err(Malformed::new("sr", rule))
            }
        }
    }
}

/// Rejects a field that the version does not sign.
pub(super) fn must_sign(
    version: &Version,
    field: &'static str,
    since: &str,
) -> Result<(), Malformed> {
    if version.since(since) {
        return Ok(());
    }
    Err(Malformed::new(field, format!("needs sv {since} or newer")))
}

//! The headers with credentials, checked for their form.

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;

use super::Call;
use crate::{
    caller::{ACCOUNT, ACCOUNT_HEADER},
    sas::{Check, Denied, NamedResource, TOKEN_BYTES_MAX},
    spec::{SERVICES, ServiceSpec},
};
use trestle_model::{fault::Reason, name::AccountName};

/// Longest accepted value of `authorization`, in bytes: the longest token and its scheme.
pub(super) const AUTHORIZATION_BYTES_MAX: usize = TOKEN_BYTES_MAX + 64;

impl Call<'_> {
    /// The resource that the call names, checked for its form only.
    pub(super) fn named_resource(&self) -> Result<Option<NamedResource>, Denied> {
        let headers =
            SERVICES.into_iter().filter_map(|service| Some((service, service.name_header?)));
        for (service, header) in headers {
            let mut values = self.headers.get_all(header).iter();
            let Some(value) = values.next() else {
                continue;
            };
            let name = value.to_str().ok().and_then(|name| decoded(service, name));
            let name = name.filter(|name| (service.is_name)(name));
            return match name.filter(|_| values.next().is_none()) {
                Some(name) => {
                    let mut named = NamedResource::new(service, name);
                    self.name_fields(&mut named)?;
                    Ok(Some(named))
                }
                None => {
                    Err(malformed(header, &format!("must be one name of a {}", service.container)))
                }
            };
        }
        Ok(None)
    }

    /// The fields of the call that are signed with the name of the resource.
    fn name_fields(&self, named: &mut NamedResource) -> Result<(), Denied> {
        for field in named.service.fields {
            let Some(header) = field.header else { continue };
            let mut values = self.headers.get_all(header).iter();
            let Some(value) = values.next() else { continue };
            match value.to_str().ok().filter(|_| values.next().is_none()) {
                Some(value) => named.fields.set(field.name, value),
                None => return Err(malformed(header, "must be one value in visible ASCII")),
            }
        }
        Ok(())
    }

    /// The account that the call names, checked for its form only.
    pub(super) fn named_account(&self) -> Result<Option<&str>, Denied> {
        let mut values = self.headers.get_all(ACCOUNT).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let name = value.to_str().ok().filter(|name| AccountName::parse(name).is_some());
        match name {
            Some(name) if values.next().is_none() => Ok(Some(name)),
            _ => {
                let rule = "must be one name of 3 to 24 lower-case letters and digits";
                Err(malformed(ACCOUNT_HEADER, rule))
            }
        }
    }

    /// The scheme, `basic`, `sharedaccesssignature` or `bearer`, and what follows it.
    pub(super) fn authorization(&self) -> Result<Option<(&'static str, &str)>, Denied> {
        let fails = |rule: &str| Err(malformed("authorization", rule));
        let mut values = self.headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return fails("must not be repeated");
        }
        if value.len() > AUTHORIZATION_BYTES_MAX {
            return fails(&format!("must have at most {AUTHORIZATION_BYTES_MAX} bytes"));
        }
        let Ok(text) = value.to_str() else {
            return fails("must be visible ASCII");
        };
        // The error does not repeat the scheme: it could be a token without a scheme.
        let rule = "must be `SharedAccessSignature` or `Bearer` and a token, or `Basic` and base64 of account:key";
        let Some((scheme, rest)) = text.split_once(' ') else {
            return fails(rule);
        };
        let schemes = ["basic", "sharedaccesssignature", "bearer"];
        match schemes.into_iter().find(|name| scheme.eq_ignore_ascii_case(name)) {
            Some(scheme) => Ok(Some((scheme, rest))),
            None => fails(rule),
        }
    }
}

/// The name in a header; that of a path is percent-encoded.
fn decoded<'a>(service: &ServiceSpec, name: &'a str) -> Option<Cow<'a, str>> {
    if service.has_paths {
        percent_decode_str(name).decode_utf8().ok()
    } else {
        Some(Cow::Borrowed(name))
    }
}

/// The error of a malformed header. It does not repeat the value.
pub(super) fn malformed(header: &str, rule: &str) -> Denied {
    let message = format!("{header}: {rule}");
    Denied::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
}

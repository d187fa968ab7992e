//! Worlds for the holder of a shared access signature.

use http::{HeaderName, HeaderValue, Request, header::AUTHORIZATION};
use tonic::body::Body;
use tower::{ServiceExt, util::BoxCloneSyncService};
use trestle_identity::{
    account::AccountKey,
    caller::{BLOB_HEADER, QUEUE_HEADER},
    sas::{Scope, Terms, Time, Version, mint},
};
use trestle_model::name::AccountName;

use crate::World;

impl World {
    /// The same world for a client that sends a token with each call.
    pub fn signed(&self, token: &str) -> Self {
        self.with_header(AUTHORIZATION, &format!("SharedAccessSignature {token}"))
    }

    /// The same world for a client that sends a token over a queue, and names the queue, with each call.
    pub fn signed_for_queue(&self, token: &str, queue: &str) -> Self {
        self.signed(token).with_header(HeaderName::from_static(QUEUE_HEADER), queue)
    }

    /// The same world for a client that sends a token over a container or a blob, and names it, with each call.
    pub fn signed_for_blob(&self, token: &str, path: &str) -> Self {
        self.signed(token).with_header(HeaderName::from_static(BLOB_HEADER), path)
    }

    /// The same world for a client that sends a header with each call.
    pub fn with_header(&self, name: HeaderName, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header");
        let add = move |mut request: Request<Body>| {
            request.headers_mut().insert(name.clone(), value.clone());
            request
        };
        let transport = ServiceExt::<Request<Body>>::map_request(self.transport(), add);
        Self::over(BoxCloneSyncService::new(transport))
    }
}

/// The scope of an account SAS: letters of services and of resource types.
pub fn over_account(services: &str, resource_types: &str) -> Scope {
    Scope::Account {
        services: services.to_owned(),
        resource_types: resource_types.to_owned(),
        encryption_scope: String::new(),
    }
}

/// The terms of a token without a policy, valid for years around now.
pub fn terms(scope: Scope, permissions: &str) -> Terms {
    let time = |field, text: &str| Some(Time::parse(field, text.to_owned()).expect("a time"));
    Terms {
        version: Version::parse("2019-02-02".to_owned()).expect("a version"),
        permissions: permissions.to_owned(),
        start: time("st", "2020-01-01T00:00:00Z"),
        expiry: time("se", "2090-01-01T00:00:00Z"),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: None,
        scope,
    }
}

/// The terms of a token whose stored access policy sets everything.
pub fn terms_by_policy(scope: Scope, id: &str) -> Terms {
    Terms { start: None, expiry: None, policy: Some(id.to_owned()), ..terms(scope, "") }
}

/// A token with these terms, of the development account.
pub fn token(terms: Terms) -> String {
    let account = AccountName::development();
    let token = mint(terms, account.as_str(), &AccountKey::development());
    token.expect("terms that a token can have").to_query()
}

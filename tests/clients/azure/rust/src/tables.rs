//! Clients of the table service.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azure_data_tables::clients::{TableClient, TableServiceClientBuilder};
use azure_storage::{
    CloudLocation, StorageCredentials,
    shared_access_signature::{
        SasToken,
        account_sas::{
            AccountSasPermissions, AccountSasResource, AccountSasResourceType,
            AccountSharedAccessSignature,
        },
    },
};
use legacy_core::{
    ClientOptions, Context, Policy, PolicyResult, Request, Response, RetryOptions, StatusCode,
    error::ErrorKind, headers::ACCEPT,
};
use time::{Duration, OffsetDateTime};

use crate::{ACCOUNT, KEY};

/// A client of the table service at `host:port`, with the key of the account.
pub fn builder(address: &str) -> TableServiceClientBuilder {
    with_credentials(address, StorageCredentials::access_key(ACCOUNT, KEY.to_owned()))
}

/// The same with other credentials.
pub fn with_credentials(address: &str, by: StorageCredentials) -> TableServiceClientBuilder {
    let uri = format!("http://{address}/{ACCOUNT}");
    let location = CloudLocation::Custom { account: ACCOUNT.to_owned(), uri };
    TableServiceClientBuilder::with_location(location, by)
}

/// A signature of the account over its tables, good for this long; in the past if negative.
pub fn signature(
    resource_type: AccountSasResourceType,
    permissions: AccountSasPermissions,
    lasting: Duration,
) -> AccountSharedAccessSignature {
    AccountSharedAccessSignature::new(
        ACCOUNT.to_owned(),
        KEY.to_owned().into(),
        AccountSasResource::Table,
        resource_type,
        OffsetDateTime::now_utc() + lasting,
        permissions,
    )
}

/// The credentials of a SAS.
pub fn signed_by(signature: &AccountSharedAccessSignature) -> StorageCredentials {
    let token = signature.token().expect("the library signs");
    StorageCredentials::sas_token(token).expect("the library reads its own token")
}

/// Status and code of an error, as the crate classifies it.
pub fn error_of<T>(answer: legacy_core::Result<T>) -> (StatusCode, String) {
    let Err(error) = answer else { panic!("the call is rejected") };
    match error.kind() {
        ErrorKind::HttpResponse { status, error_code } => {
            (*status, error_code.clone().unwrap_or_default())
        }
        other => panic!("an error is an answer: {other:?}"),
    }
}

/// A pipeline policy of a client that requests another level of metadata than the crate, and stores
/// the last response.
#[derive(Debug)]
pub struct Level {
    accept: String,
    body: Mutex<String>,
}

impl Level {
    /// Requests a level, such as `nometadata`.
    pub fn of(level: &str) -> Arc<Self> {
        let accept = format!("application/json;odata={level}");
        Arc::new(Self { accept, body: Mutex::default() })
    }

    /// The client of a new table that has this part. The crate makes tables at its own level only.
    pub async fn created(self: &Arc<Self>, address: &str, name: String) -> TableClient {
        builder(address).build().table_client(&name).create().await.expect("a new table");
        let parts: Vec<Arc<dyn Policy>> = vec![Arc::<Self>::clone(self)];
        let options = ClientOptions::default().per_call_policies(parts);
        let options = options.retry(RetryOptions::none());
        builder(address).client_options(options).build().table_client(name)
    }

    /// The body of the last answer.
    pub fn body(&self) -> String {
        self.body.lock().expect("no test panics with it").clone()
    }
}

#[async_trait]
impl Policy for Level {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        request.insert_header(ACCEPT, self.accept.clone());
        let (first, rest) = next.split_first().expect("a part that sends");
        let (status, headers, body) = first.send(context, request, rest).await?.deconstruct();
        let body = body.collect().await?;
        *self.body.lock().expect("no test panics with it") =
            String::from_utf8_lossy(&body).into_owned();
        let again = futures::stream::once(async move { Ok(body) });
        Ok(Response::new(status, headers, Box::pin(again)))
    }
}

//! Operations on an account: its containers, and the settings of the service.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tonic::body::Body;
use trestle_identity::{
    authorize::anonymous,
    caller::{Authority, Caller},
    credentials::Identity,
    spec::BLOB,
};
use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;

use super::{list, operation::OnBlobAccount, upload::check_body};
use crate::{delegation, error::RestError, grpc_call::GrpcCall, head::RequestHead, reply, xml};

/// What clients read of an account before they choose between their ways to use it: the secondary can be read, and
/// there are no directories.
const INFORMATION: [(HeaderName, HeaderValue); 3] = [
    (HeaderName::from_static("x-ms-sku-name"), HeaderValue::from_static("Standard_RAGRS")),
    (HeaderName::from_static("x-ms-account-kind"), HeaderValue::from_static("StorageV2")),
    (HeaderName::from_static("x-ms-is-hns-enabled"), HeaderValue::from_static("false")),
];

/// Rejects a caller without credentials, where no service decides.
fn check_credentials(call: &GrpcCall) -> Result<(), Fault> {
    let caller = Caller::in_process(&call.extensions);
    match caller.filter(|caller| caller.authority != Authority::Anonymous) {
        Some(_) => Ok(()),
        None => Err(anonymous()),
    }
}

/// Performs an operation.
///
/// # Errors
/// A malformed body, or a failed call.
pub(super) async fn perform(
    operation: OnBlobAccount,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
    identity: &Identity,
) -> Result<Response<Body>, RestError> {
    let path = operation.path();
    match operation {
        OnBlobAccount::ListContainers => list::containers(head, call).await,
        OnBlobAccount::FindBlobs | OnBlobAccount::Batch => {
            list::find(String::new(), head, call).await
        }
        OnBlobAccount::GetInformation => {
            check_credentials(&call)?;
            let mut answer = reply::empty(StatusCode::OK);
            answer.headers_mut().extend(INFORMATION);
            Ok(answer)
        }
        OnBlobAccount::GetProperties => {
            let request = proto::GetServicePropertiesRequest {};
            let found: proto::GetServicePropertiesResponse = call.unary(path, &request).await?;
            let protection = found.data_protection.unwrap_or_default();
            let settings = xml::BlobSettings {
                properties: found.properties.unwrap_or_default(),
                default_version: Some(found.default_service_version),
                delete_retention: protection.delete_retention_policy,
                website: found.static_website,
            };
            Ok(reply::xml(xml::write_blob_settings(&settings)))
        }
        OnBlobAccount::SetProperties => {
            check_body(head, body)?;
            let settings = xml::read_blob_settings(body)?;
            let protection = settings.delete_retention.map(|policy| proto::DataProtection {
                delete_retention_policy: Some(policy),
                ..proto::DataProtection::default()
            });
            let request = proto::SetServicePropertiesRequest {
                properties: Some(settings.properties),
                data_protection: protection,
                static_website: settings.website,
                default_service_version: settings.default_version,
            };
            let _: proto::SetServicePropertiesResponse = call.unary(path, &request).await?;
            Ok(reply::empty(StatusCode::ACCEPTED))
        }
        OnBlobAccount::GetDelegationKey => delegation::get_key(head, body, &call, identity, &BLOB),
        OnBlobAccount::GetStats => {
            let request = proto::GetServiceStatsRequest {};
            let _: proto::GetServiceStatsResponse = call.unary(path, &request).await?;
            Ok(reply::xml(xml::write_stats(&identity.clock.now().into())))
        }
    }
}

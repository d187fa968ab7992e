//! Settings of the service and access policies of tables, which are XML.

use http::{Response, StatusCode};
use tonic::{Status, body::Body};
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Ticks;
use trestle_proto::table::v1::{
    GetServicePropertiesRequest, GetServicePropertiesResponse, GetServiceStatsRequest,
    GetServiceStatsResponse, GetTableAccessPoliciesRequest, GetTableAccessPoliciesResponse,
    SetServicePropertiesRequest, SetServicePropertiesResponse, SetTableAccessPoliciesRequest,
    SetTableAccessPoliciesResponse,
};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use super::route::OnSettings;
use crate::{error::RestError, grpc_call::GrpcCall, head::RequestHead, reply, xml};

/// The settings operations of a request.
pub(super) struct SettingsRequest<'a> {
    pub(super) head: &'a RequestHead,
    /// The time of the replication statistics: the copy is always current.
    pub(super) now: Ticks,
}

impl SettingsRequest<'_> {
    /// Executes an operation.
    ///
    /// # Errors
    /// A malformed body, or a failed call.
    pub(super) async fn perform(
        self,
        path: &'static str,
        operation: OnSettings,
        body: &[u8],
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        match operation {
            OnSettings::GetPolicies { table } => {
                let request = GetTableAccessPoliciesRequest { table };
                let answer: GetTableAccessPoliciesResponse = call.unary(path, &request).await?;
                Ok(document(xml::write_policies(&answer.policies)))
            }
            OnSettings::SetPolicies { table } => {
                let policies = xml::read_policies(body)
                    .map_err(|fault| document_error(fault.into_status(DOMAIN)))?;
                let request = SetTableAccessPoliciesRequest { table, policies };
                let set = call.unary::<_, SetTableAccessPoliciesResponse>(path, &request).await;
                set.map_err(document_error)?;
                Ok(reply::empty(StatusCode::NO_CONTENT))
            }
            OnSettings::GetProperties => {
                let request = GetServicePropertiesRequest {};
                let answer: GetServicePropertiesResponse = call.unary(path, &request).await?;
                Ok(document(xml::write_properties(&answer.properties.unwrap_or_default())))
            }
            OnSettings::SetProperties => {
                let properties = xml::read_properties(body);
                let properties =
                    Some(properties.map_err(|fault| document_error(fault.into_status(DOMAIN)))?);
                let request = SetServicePropertiesRequest { properties };
                let set = call.unary::<_, SetServicePropertiesResponse>(path, &request).await;
                set.map_err(document_error)?;
                Ok(reply::empty(StatusCode::ACCEPTED))
            }
            OnSettings::GetStats => {
                // Authorization is checked first.
                let request = GetServiceStatsRequest {};
                call.unary::<_, GetServiceStatsResponse>(path, &request).await?;
                if !self.head.is_secondary {
                    let rule = "stats are those of the secondary name of the account";
                    let reason = Reason::InvalidQueryParameterValue;
                    return Err(Fault::violation(reason, "comp", rule).into());
                }
                Ok(document(xml::write_stats(&self.now.into())))
            }
        }
    }
}

/// The error of a rejected document: the table service of Azure has one code for all of them, and its
/// clients support no other.
fn document_error(status: Status) -> RestError {
    let error = RestError::from(status);
    let of_nodes = [
        Reason::InvalidXmlNodeValue,
        Reason::MissingRequiredXmlNode,
        Reason::InvalidServiceProperty,
    ];
    if of_nodes.into_iter().any(|reason| error.is(reason)) {
        return error.with_reason(Reason::InvalidXmlDocument);
    }
    error
}

fn document(text: String) -> Response<Body> {
    reply::whole(StatusCode::OK, xml::CONTENT_TYPE, text)
}

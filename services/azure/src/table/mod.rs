//! The protocol of tables.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::json;
use tonic::body::Body;
use trestle_service::{
    fault::{Fault, Reason, quoted},
    limits::MESSAGE_BYTES_MAX,
};

use crate::{
    call::Upcall,
    failure::{Failure, Refusal},
    head::Head,
    protocol::{Protocol, Signing, Target},
    reply,
};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {}

impl Protocol for Table {
    type Operation = Operation;

    const SERVICE: &'static str = "table";
    const UNKNOWN: &'static str = "/trestle.table.v1.TableService/";
    const SIGNING: Signing = Signing::Table;
    const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

    fn route(&self, head: &Head) -> Result<Operation, Refusal> {
        let message = format!("not an operation of tables: path=`{}`", quoted(&head.path));
        Err(Fault::new(Reason::NotImplemented, message).into())
    }

    fn target(&self, operation: &Operation) -> Target {
        match *operation {}
    }

    async fn perform(
        &self,
        operation: Operation,
        _: &Head,
        _: Bytes,
        _: Upcall,
    ) -> Result<Response<Body>, Refusal> {
        match operation {}
    }

    fn failure(&self, failure: &Failure, _: Option<&Head>) -> Response<Body> {
        let message = json!({ "lang": "en-US", "value": failure.message() });
        let body = json!({ "odata.error": { "code": failure.code, "message": message } });
        let content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
        reply::whole(StatusCode::OK, content_type, body.to_string())
    }
}

//! The table service on a memory engine, called with raw messages and no socket.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use tonic::body::Body;
use tower::ServiceExt as _;
use trestle_kv::MemoryEngine;
use trestle_model::time::{ManualClock, Ticks};
use trestle_proto::table::v1 as proto;
use trestle_rpc::quota::{LiveQuotas, StorageQuotas};
use trestle_rpc::served_store::StoreProcesses;
use trestle_table::{TableDeps, TableRole};

/// 2026-01-01T00:00:00Z.
const START: u64 = 639_028_224_000_000_000;

/// Codes of gRPC that report a server error: UNKNOWN, INTERNAL, DATA_LOSS.
const DEFECTS: [&str; 3] = ["2", "13", "15"];

/// The methods of the service.
#[must_use]
pub fn methods() -> &'static [&'static str] {
    &[
        "CreateTable",
        "GetTable",
        "ListTables",
        "DeleteTable",
        "GetTableAccessPolicies",
        "SetTableAccessPolicies",
        "InsertEntity",
        "GetEntity",
        "UpdateEntity",
        "UpsertEntity",
        "DeleteEntity",
        "ExecuteBatch",
        "QueryEntities",
        "StreamEntities",
        "ImportEntities",
        "ExplainQuery",
        "GetServiceProperties",
        "SetServiceProperties",
        "GetServiceStats",
    ]
}

/// A table service of its own, empty but for the table `tbl`.
pub struct Server {
    role: TableRole,
    runtime: tokio::runtime::Runtime,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// Starts a service.
    #[must_use]
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Ticks::new(START).expect("in range")));
        let engine = Arc::new(MemoryEngine::with_clock(trestle_table::KEYSPACES, clock.clone()));
        let server = Self {
            role: TableRole::new(TableDeps {
                engine,
                clock,
                quotas: LiveQuotas::default(),
                storage: StorageQuotas::default(),
                processes: StoreProcesses::default(),
                meter: NoopMeterProvider::new().meter("fuzz"),
            }),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime starts"),
        };
        let request = proto::CreateTableRequest {
            table: Some(proto::Table { name: "tbl".to_owned(), ..Default::default() }),
        };
        server.send("CreateTable", &[prost::Message::encode_to_vec(&request).into()]);
        server
    }

    /// Sends messages to a method and reads the whole answer. A call without any message is not
    /// made: the library rejects it, with INTERNAL.
    ///
    /// # Panics
    /// If the response reports a server error.
    pub fn send(&self, method: &str, messages: &[Bytes]) {
        if messages.is_empty() {
            return;
        }
        let mut body = BytesMut::new();
        for message in messages {
            body.put_u8(0);
            body.put_u32(u32::try_from(message.len()).expect("inputs are small"));
            body.put_slice(message);
        }
        let request = http::Request::post(format!("/trestle.table.v1.TableService/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(Full::new(body.freeze())))
            .expect("a request");
        let (headers, trailers) = self.runtime.block_on(async {
            let answer = self.role.server().oneshot(request).await.expect("infallible");
            let (head, body) = answer.into_parts();
            let body = body.collect().await.expect("an answer has an end");
            (head.headers, body.trailers().cloned().unwrap_or_default())
        });
        let field = |name| headers.get(name).or_else(|| trailers.get(name));
        let code = field("grpc-status").and_then(|code| code.to_str().ok());
        let text = field("grpc-message").and_then(|text| text.to_str().ok());
        assert!(
            code.is_some_and(|code| !DEFECTS.contains(&code)),
            "{method} answered {code:?}: {text:?}"
        );
    }
}

//! Tables, queues, containers and streams of a server that the test starts, stops and starts again.

use http::Request;
use tonic::{
    body::Body,
    transport::{Channel, Endpoint},
};
use tower::{BoxError, ServiceExt, util::BoxCloneSyncService};
use trestle_proto::{
    blob::v1::blob_service_client::BlobServiceClient,
    log::v1::log_service_client::LogServiceClient,
    queue::v1::queue_service_client::QueueServiceClient,
    table::v1::table_service_client::TableServiceClient,
};

use crate::{Container, LogStream, Queue, Server, Table};

impl Server {
    /// A lazily connected channel to the server.
    pub fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(self.endpoint()).expect("an endpoint");
        endpoint.connect_lazy()
    }
}

impl Container {
    /// A container that may exist or not, over a channel.
    pub fn over(channel: &Channel, name: &str) -> Self {
        let transport = ServiceExt::<Request<Body>>::map_err(channel.clone(), BoxError::from);
        Self::new(BlobServiceClient::new(BoxCloneSyncService::new(transport)), name)
    }
}

impl Queue {
    /// A queue that may exist or not, over a channel.
    pub fn over(channel: &Channel, name: &str) -> Self {
        let transport = ServiceExt::<Request<Body>>::map_err(channel.clone(), BoxError::from);
        let client = QueueServiceClient::new(BoxCloneSyncService::new(transport));
        Self::new(client.max_decoding_message_size(16 * 1024 * 1024), name)
    }
}

impl Table {
    /// A table that may exist or not, over a channel.
    pub fn over(channel: &Channel, name: &str) -> Self {
        let transport = ServiceExt::<Request<Body>>::map_err(channel.clone(), BoxError::from);
        let client = TableServiceClient::new(BoxCloneSyncService::new(transport));
        Self::new(client.max_decoding_message_size(16 * 1024 * 1024), name)
    }
}

impl LogStream {
    /// A stream that may exist or not, over a channel.
    pub fn over(channel: &Channel, name: &str) -> Self {
        let transport = ServiceExt::<Request<Body>>::map_err(channel.clone(), BoxError::from);
        Self::new(LogServiceClient::new(BoxCloneSyncService::new(transport)), name)
    }
}

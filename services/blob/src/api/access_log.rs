//! What the access log records from requests: the container. It is recorded before it is checked, so that the log also
//! has the name of a rejected call. Names of blobs are data of the application, and are not recorded.

use trestle_proto::blob::v1 as proto;
use trestle_rpc::{call_statistics::CallStatistics, upstream::in_process::RequestMessages};

/// A request that may name a container.
pub(super) trait NamesContainer {
    /// Records the name.
    fn record_container(&self, statistics: &mut CallStatistics);
}

macro_rules! names_a_container {
    ($($request:ident),+ $(,)?) => {$(
        impl NamesContainer for proto::$request {
            fn record_container(&self, statistics: &mut CallStatistics) {
                statistics.set_container(&self.container);
            }
        }
    )+};
}

macro_rules! names_nothing {
    ($($request:ident),+ $(,)?) => {$(
        impl NamesContainer for proto::$request {
            fn record_container(&self, _: &mut CallStatistics) {}
        }
    )+};
}

names_a_container!(
    GetContainerRequest,
    UpdateContainerRequest,
    DeleteContainerRequest,
    UndeleteContainerRequest,
    GetContainerAccessPoliciesRequest,
    SetContainerAccessPoliciesRequest,
    LeaseContainerRequest,
    ReadBlobRequest,
    GetBlobRequest,
    UpdateBlobRequest,
    DeleteBlobRequest,
    ListBlobsRequest,
    VerifyBlobsRequest,
    LeaseBlobRequest,
    SetBlobTierRequest,
    CommitBlocksRequest,
    GetBlockListRequest,
    CreateAppendBlobRequest,
    SealBlobRequest,
    CreatePageBlobRequest,
    ClearPagesRequest,
    UpdatePageBlobRequest,
    ListPageRangesRequest,
    SnapshotBlobRequest,
    GetBlobTagsRequest,
    SetBlobTagsRequest,
    FindBlobsRequest,
    CopyBlobRequest,
    AbortCopyBlobRequest,
    UndeleteBlobRequest,
);
names_nothing!(
    ListContainersRequest,
    GetServicePropertiesRequest,
    SetServicePropertiesRequest,
    GetServiceStatsRequest,
);

impl NamesContainer for proto::CreateContainerRequest {
    fn record_container(&self, statistics: &mut CallStatistics) {
        if let Some(container) = &self.container {
            statistics.set_container(&container.name);
        }
    }
}

/// Only a container that all deletions have.
impl NamesContainer for proto::DeleteBlobsRequest {
    fn record_container(&self, statistics: &mut CallStatistics) {
        let mut containers = self.requests.iter().map(|request| &request.container);
        let first = containers.next();
        if let Some(container) = first.filter(|first| containers.all(|other| other == *first)) {
            statistics.set_container(container);
        }
    }
}

/// The first message of a stream contains the name of its container.
impl<T> NamesContainer for RequestMessages<T> {
    fn record_container(&self, _: &mut CallStatistics) {}
}

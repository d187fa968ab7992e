//! The gRPC interface of the service: parse the request, call the domain, render the response. It contains no
//! decisions.

mod access_log;
mod append;
mod batch;
mod blobs;
mod containers;
mod copy;
mod from_source;
mod pace;
mod pages;
mod parse;
mod protection;
mod read;
mod render;
mod rest_settings;
mod snapshots;
mod tags;
mod tiers;
mod upload;
mod verify;

use std::sync::Arc;
use trestle_rpc::status::IntoStatus as _;

use tonic::{Request, Response, Status, Streaming};
use trestle_identity::{access_policy::recheck::PolicyRechecks, caller::Caller};
use trestle_kv::Engine;
use trestle_model::{fault::Fault, time::Ticks};
use trestle_proto::blob::v1::{self as proto, blob_service_server::BlobService};
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::layer::shares::CallHolder;
use trestle_rpc::response_stream::ResponseStream;
use trestle_rpc::served_store::StoreProcesses;
use trestle_rpc::service_properties;
use trestle_rpc::upstream::in_process::{RequestMessages, respond};

use self::{
    access_log::NamesContainer, copy::CopyResponses, upload::Uploader, verify::VerifyResponses,
};
use crate::{
    BLOB_SERVICE, BlobDeps,
    authorize::{BlobAccess, BlobNeed},
    blobs::Blobs,
    containers::Containers,
    copy_url::CopyHosts,
    error::BlobError,
    ids::Ids,
    keys,
    objects::Objects,
    read_memory::ReadMemory,
    remote::RemoteServers,
    sweep::BlobSweeper,
    upload::UploadMemory,
};

/// The implementation of `trestle.blob.v1.BlobService`.
#[derive(Clone)]
pub struct BlobApi {
    engine: Arc<dyn Engine>,
    containers: Containers,
    blobs: Blobs,
    sweeper: Arc<BlobSweeper>,
    copy_hosts: Arc<CopyHosts>,
    servers: RemoteServers,
    random: fn() -> u128,
    processes: StoreProcesses,
    started_at: Ticks,
}

/// The content of a blob.
type ReadResponses = ResponseStream<proto::ReadBlobResponse>;

impl BlobApi {
    /// Serves the blobs in the engine and the object store.
    pub(crate) fn new(deps: BlobDeps) -> Self {
        let BlobDeps { engine, objects, clock, copy_hosts, random, storage, processes } = deps;
        let (started_at, objects) = (clock.now(), Objects::new(objects));
        #[expect(clippy::cast_possible_truncation, reason = "any 64 of the random bits")]
        let mark = (random)() as u64;
        let ids = Arc::new(Ids::new(Arc::clone(&engine), objects.first_content(), mark));
        let containers = Containers::new(Arc::clone(&engine), clock, Arc::clone(&ids));
        let containers = containers.with_quotas(storage);
        let (memory, reads) = (UploadMemory::default(), ReadMemory::default());
        let blobs = Blobs { engine: Arc::clone(&engine), objects, ids, memory, reads };
        let sweeper = Arc::new(BlobSweeper::new(blobs.clone()));
        let (copy_hosts, servers) = (Arc::new(copy_hosts), RemoteServers::default());
        Self {
            engine,
            containers,
            blobs,
            sweeper,
            copy_hosts,
            servers,
            random,
            processes,
            started_at,
        }
    }

    /// What an upload of a request needs.
    fn uploader(&self, extensions: &http::Extensions) -> Uploader {
        let memory = self.blobs.memory.of(CallHolder::of(extensions).holder());
        let recorder = StatisticsRecorder::of(extensions);
        Uploader { blobs: Blobs { memory, ..self.blobs.clone() }, recorder }
    }

    /// The blobs, read and changed for an account.
    fn blobs_for(&self, access: &BlobAccess) -> Blobs {
        Blobs { reads: self.blobs.reads.of(access.account()), ..self.blobs.clone() }
    }

    /// How many containers exist, up to a maximum.
    pub(crate) async fn count_containers(&self, containers_max: usize) -> Result<usize, BlobError> {
        self.containers.count(containers_max).await
    }

    /// Measures what accounts store.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        self.containers.measure().await
    }

    /// The background work.
    pub(crate) fn sweeper(&self) -> &BlobSweeper {
        &self.sweeper
    }

    /// Ends streams whose stored access policy stops granting them.
    pub(crate) fn rechecks(&self) -> PolicyRechecks {
        let containers = self.containers.clone();
        PolicyRechecks::new(move |caller| {
            let containers = containers.clone();
            Box::pin(async move { containers.admit(&caller).await.map_err(Fault::from) })
        })
    }

    /// The access of a caller, and the message. The lookup of a container checks with the access that it is the right
    /// one.
    ///
    /// Only this function returns the message.
    async fn enter<T: NamesContainer>(
        &self,
        request: Request<T>,
        need: BlobNeed,
    ) -> Result<(BlobAccess, T), Status> {
        StatisticsRecorder::of(request.extensions())
            .record(|statistics| request.get_ref().record_container(statistics));
        let caller = Caller::of(&request).map_err(failed)?;
        let by_policy = self.containers.admit(&caller).await.map_err(failed)?;
        let access = BlobAccess::new(caller, by_policy, need).map_err(failed)?;
        Ok((access, request.into_inner()))
    }
}

/// The status of a failed call.
fn failed(error: impl Into<Fault>) -> Status {
    error.into().into_status(BLOB_SERVICE)
}

/// Implements a method by the one of [`BlobApi`] with the same name, for a caller with a permission.
macro_rules! by_domain {
    ($($(#[$note:meta])* $method:ident($request:ident) -> $response:ident: $need:ident => $work:ident;)+) => {
        #[tonic::async_trait]
        impl BlobService for BlobApi {
            type ReadBlobStream = ReadResponses;
            type CopyBlobStream = CopyResponses;
            type VerifyBlobsStream = VerifyResponses;

            $(async fn $method(
                &self,
                request: Request<proto::$request>,
            ) -> Result<Response<proto::$response>, Status> {
                let (access, message) = self.enter(request, BlobNeed::$need).await?;
                self.$work(&access, message).await.map(Response::new).map_err(failed)
            })+

            async fn write_blob(
                &self,
                request: Request<Streaming<proto::WriteBlobRequest>>,
            ) -> Result<Response<proto::WriteBlobResponse>, Status> {
                let uploader = self.uploader(request.extensions());
                let request = RequestMessages::of(request);
                let (access, messages) = self.enter(request, BlobNeed::Create).await?;
                self.write(&access, messages, &uploader).await.map(Response::new)
            }

            async fn stage_block(
                &self,
                request: Request<Streaming<proto::StageBlockRequest>>,
            ) -> Result<Response<proto::StageBlockResponse>, Status> {
                let uploader = self.uploader(request.extensions());
                let request = RequestMessages::of(request);
                let (access, messages) = self.enter(request, BlobNeed::Write).await?;
                self.stage(&access, messages, &uploader).await.map(Response::new)
            }

            async fn append_block(
                &self,
                request: Request<Streaming<proto::AppendBlockRequest>>,
            ) -> Result<Response<proto::AppendBlockResponse>, Status> {
                let uploader = self.uploader(request.extensions());
                let request = RequestMessages::of(request);
                let (access, messages) = self.enter(request, BlobNeed::Append).await?;
                self.append(&access, messages, &uploader).await.map(Response::new)
            }

            async fn write_pages(
                &self,
                request: Request<Streaming<proto::WritePagesRequest>>,
            ) -> Result<Response<proto::WritePagesResponse>, Status> {
                let uploader = self.uploader(request.extensions());
                let request = RequestMessages::of(request);
                let (access, messages) = self.enter(request, BlobNeed::Write).await?;
                self.put_pages(&access, messages, &uploader).await.map(Response::new)
            }

            async fn copy_blob(
                &self,
                request: Request<proto::CopyBlobRequest>,
            ) -> Result<Response<CopyResponses>, Status> {
                let (access, message) = self.enter(request, BlobNeed::Create).await?;
                self.copy(access, message).await.map(Response::new).map_err(failed)
            }

            async fn verify_blobs(
                &self,
                request: Request<proto::VerifyBlobsRequest>,
            ) -> Result<Response<VerifyResponses>, Status> {
                let (access, message) = self.enter(request, BlobNeed::ListBlobs).await?;
                self.verify(&access, message).await.map(Response::new).map_err(failed)
            }

            async fn read_blob(
                &self,
                request: Request<proto::ReadBlobRequest>,
            ) -> Result<Response<ReadResponses>, Status> {
                let recorder = StatisticsRecorder::of(request.extensions());
                let local = request.extensions().get().cloned();
                let (access, message) = self.enter(request, BlobNeed::Read).await?;
                let responses = self.read(&access, message, recorder).await.map_err(failed)?;
                Ok(Response::new(respond(local, responses)))
            }
        }
    };
}

by_domain! {
    create_container(CreateContainerRequest) -> CreateContainerResponse: CreateContainer => new_container;
    get_container(GetContainerRequest) -> GetContainerResponse: ReadContainer => container;
    update_container(UpdateContainerRequest) -> UpdateContainerResponse: WriteContainer => set_metadata;
    delete_container(DeleteContainerRequest) -> DeleteContainerResponse: DeleteContainer => drop_container;
    undelete_container(UndeleteContainerRequest) -> UndeleteContainerResponse:
        WriteContainer => undelete_container;
    list_containers(ListContainersRequest) -> ListContainersResponse: ListContainers => containers;
    get_container_access_policies(GetContainerAccessPoliciesRequest) -> GetContainerAccessPoliciesResponse:
        AccessPolicies => policies;
    set_container_access_policies(SetContainerAccessPoliciesRequest) -> SetContainerAccessPoliciesResponse:
        AccessPolicies => set_policies;
    lease_container(LeaseContainerRequest) -> LeaseContainerResponse: BreakContainerLease => container_lease;
    get_blob(GetBlobRequest) -> GetBlobResponse: Read => blob;
    update_blob(UpdateBlobRequest) -> UpdateBlobResponse: Write => update;
    delete_blob(DeleteBlobRequest) -> DeleteBlobResponse: DeleteAny => delete;
    delete_blobs(DeleteBlobsRequest) -> DeleteBlobsResponse: DeleteAny => delete_many;
    undelete_blob(UndeleteBlobRequest) -> UndeleteBlobResponse: Write => undelete;
    list_blobs(ListBlobsRequest) -> ListBlobsResponse: ListBlobs => list;
    get_blob_tags(GetBlobTagsRequest) -> GetBlobTagsResponse: Tags => tags;
    set_blob_tags(SetBlobTagsRequest) -> SetBlobTagsResponse: Tags => set_tags;
    find_blobs(FindBlobsRequest) -> FindBlobsResponse: Find => find;
    lease_blob(LeaseBlobRequest) -> LeaseBlobResponse: BreakLease => blob_lease;
    set_blob_tier(SetBlobTierRequest) -> SetBlobTierResponse: Write => set_tier;
    snapshot_blob(SnapshotBlobRequest) -> SnapshotBlobResponse: Snapshot => take_snapshot;
    abort_copy_blob(AbortCopyBlobRequest) -> AbortCopyBlobResponse: Write => abort_copy;
    commit_blocks(CommitBlocksRequest) -> CommitBlocksResponse: Write => commit;
    get_block_list(GetBlockListRequest) -> GetBlockListResponse: Read => block_list;
    create_append_blob(CreateAppendBlobRequest) -> CreateAppendBlobResponse: Create => new_append_blob;
    seal_blob(SealBlobRequest) -> SealBlobResponse: Append => seal;
    create_page_blob(CreatePageBlobRequest) -> CreatePageBlobResponse: Create => new_page_blob;
    clear_pages(ClearPagesRequest) -> ClearPagesResponse: Write => clear;
    update_page_blob(UpdatePageBlobRequest) -> UpdatePageBlobResponse: Write => update_pages;
    list_page_ranges(ListPageRangesRequest) -> ListPageRangesResponse: Read => page_ranges;
    get_service_properties(GetServicePropertiesRequest) -> GetServicePropertiesResponse: ReadService => properties;
    set_service_properties(SetServicePropertiesRequest) -> SetServicePropertiesResponse:
        WriteService => set_properties;
    get_service_stats(GetServiceStatsRequest) -> GetServiceStatsResponse: ReadService => stats;
}

/// The settings and the state of the service.
impl BlobApi {
    async fn properties(
        &self,
        access: &BlobAccess,
        _: proto::GetServicePropertiesRequest,
    ) -> Result<proto::GetServicePropertiesResponse, Fault> {
        let key = keys::service_properties(access.account());
        let properties = Some(service_properties::read(&*self.engine, &key).await?);
        let data_protection = Some(render::protection(self.retention(access).await?));
        let rest = self.rest_settings(access).await?;
        Ok(proto::GetServicePropertiesResponse {
            properties,
            data_protection,
            static_website: Some(rest_settings::website(rest.website)),
            default_service_version: rest.default_version,
        })
    }

    async fn set_properties(
        &self,
        access: &BlobAccess,
        request: proto::SetServicePropertiesRequest,
    ) -> Result<proto::SetServicePropertiesResponse, Fault> {
        let rest = parse::rest_settings(request.default_service_version, request.static_website)?;
        let protection = request.data_protection.as_ref().map(parse::protection).transpose()?;
        let is_required = protection.is_none() && rest.is_empty();
        if is_required || request.properties.is_some() {
            let change = service_properties::required(request.properties)?;
            let key = keys::service_properties(access.account());
            let domain = keys::own_domain(&key);
            service_properties::change(&*self.engine, domain, key, change).await?;
        }
        if let Some(protection) = protection {
            self.set_protection(access, protection).await?;
        }
        if !rest.is_empty() {
            self.set_rest_settings(access, rest).await?;
        }
        Ok(proto::SetServicePropertiesResponse {})
    }

    async fn stats(
        &self,
        access: &BlobAccess,
        _: proto::GetServiceStatsRequest,
    ) -> Result<proto::GetServiceStatsResponse, Fault> {
        let pending = self.sweeper.pending().await?;
        let (objects, quotas) =
            (self.blobs.objects.name(), self.containers.quotas(access.account()));
        let stats = render::service_stats(&self.engine.status(), objects, self.started_at, pending);
        let processes = self.processes.list();
        Ok(proto::GetServiceStatsResponse { quotas, processes, ..stats })
    }
}

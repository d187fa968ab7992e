//! What is kept of blobs that are overwritten or deleted: the settings of an account.

use trestle_kv::{ChangeSpec, Writes, transact};
use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;

use super::{
    BlobApi,
    parse::{RequestParser, RetentionChange},
};
use crate::{
    authorize::BlobAccess, error::BlobError, keys, record::Retention, stored::Stored as _,
};

impl BlobApi {
    /// What is kept by the settings of the account.
    pub(super) async fn retention(&self, access: &BlobAccess) -> Result<Retention, Fault> {
        let value = self.engine.get(&keys::protection(access.account())).await?;
        let retention = value.map(|value| Retention::decode(&value)).transpose()?;
        Ok(retention.unwrap_or_default())
    }

    pub(super) async fn set_protection(
        &self,
        access: &BlobAccess,
        change: RetentionChange,
    ) -> Result<(), Fault> {
        let key = keys::protection(access.account());
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        let stored = spec.read(key);
        let changed = transact(&*self.engine, spec, move |reads, _| {
            let current = reads.get(stored).map(|value| Retention::decode(value)).transpose()?;
            let mut writes = Writes::new();
            let changed = change.apply(current.unwrap_or_default());
            writes.put(reads.key(stored).clone(), changed.encode());
            Ok::<_, BlobError>((writes, ()))
        });
        Ok(changed.await.map_err(BlobError::from)??)
    }

    pub(super) async fn undelete(
        &self,
        access: &BlobAccess,
        request: proto::UndeleteBlobRequest,
    ) -> Result<proto::UndeleteBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let key = self.key(access, &parser.finish(names)?).await?;
        self.blobs.undelete(key).await?;
        Ok(proto::UndeleteBlobResponse {})
    }
}

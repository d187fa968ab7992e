//! The settings of an account that only REST uses: its website, and the version of calls that state none.

use trestle_kv::{ChangeSpec, Writes, transact};
use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;

use super::{BlobApi, parse::RestSettingsChange};
use crate::{
    authorize::BlobAccess,
    error::BlobError,
    keys,
    record::{RestSettings, Website},
    stored::Stored as _,
};

impl BlobApi {
    pub(super) async fn rest_settings(&self, access: &BlobAccess) -> Result<RestSettings, Fault> {
        let value = self.engine.get(&keys::rest_settings(access.account())).await?;
        Ok(value.map(|value| RestSettings::decode(&value)).transpose()?.unwrap_or_default())
    }

    pub(super) async fn set_rest_settings(
        &self,
        access: &BlobAccess,
        change: RestSettingsChange,
    ) -> Result<(), Fault> {
        let key = keys::rest_settings(access.account());
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        let stored = spec.read(key);
        let changed = transact(&*self.engine, spec, move |reads, _| {
            let current = reads.get(stored).map(|value| RestSettings::decode(value)).transpose()?;
            let changed = change.clone().apply(current.unwrap_or_default());
            let mut writes = Writes::new();
            writes.put(reads.key(stored).clone(), changed.encode());
            Ok::<_, BlobError>((writes, ()))
        });
        Ok(changed.await.map_err(BlobError::from)??)
    }
}

/// A website in a response.
pub(super) fn website(website: Website) -> proto::StaticWebsite {
    proto::StaticWebsite {
        enabled: website.is_enabled,
        index_document: website.index_document,
        error_document_404_path: website.error_document,
        default_index_document_path: website.default_index_document,
    }
}

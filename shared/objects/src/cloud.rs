//! Object stores over HTTP. Endpoint and credentials come from the variables of the SDKs of each cloud: `AWS_*`,
//! `GOOGLE_*`, `AZURE_*`.

use std::{sync::Arc, time::Duration};

use object_store::{
    ObjectStore, Result, RetryConfig, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder,
    gcp::GoogleCloudStorageBuilder, prefix::PrefixStore,
};

use crate::{
    http::ObjectsConnector,
    location::{ObjectStoreKind, ObjectsUrl},
};

/// Most tries of a request after the first.
const RETRIES_MAX: usize = 5;
/// Longest time from the first try to the last. A call of a client waits for it.
const RETRIES_WITHIN: Duration = Duration::from_secs(20);

/// The store at a URL. Nothing is sent.
///
/// # Errors
/// Variables that are malformed, or missing.
pub(crate) fn open(url: &ObjectsUrl) -> Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: RETRIES_WITHIN,
        ..RetryConfig::default()
    };
    let bucket = url.bucket.as_str();
    let store: Arc<dyn ObjectStore> = match url.kind {
        ObjectStoreKind::S3 => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
            Arc::new(builder.with_retry(retry).with_http_connector(ObjectsConnector).build()?)
        }
        ObjectStoreKind::Google => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
            Arc::new(builder.with_retry(retry).with_http_connector(ObjectsConnector).build()?)
        }
        ObjectStoreKind::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
            Arc::new(builder.with_retry(retry).with_http_connector(ObjectsConnector).build()?)
        }
    };
    Ok(Arc::new(PrefixStore::new(store, url.prefix.clone())))
}

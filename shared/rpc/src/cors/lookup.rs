//! The cross-origin rules of accounts, read from the service that stores them and cached for seconds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::uri::PathAndQuery;
use prost::Message as _;
use tonic::{Request, Status, client::Grpc};
use trestle_proto::{RawCodec, table::v1::GetServicePropertiesResponse};

use super::rules::Rules;
use crate::upstream::Upstream;
use trestle_model::name::{ACCOUNT_HEADER, AccountName};

/// The method of every service with service properties. Its request is empty, and its response the
/// same message in each.
const METHOD: &str = "GetServiceProperties";

/// How long rules are cached: a change by another process takes effect by then.
const CACHED_FOR: Duration = Duration::from_secs(5);
/// How long a failed read is cached, so that responses do not wait for one each.
const FAILURE_CACHED_FOR: Duration = Duration::from_secs(1);
/// How long reading them may take. It is one small record of the service.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Most accounts whose rules are cached, well over what settings may name; beyond it, the cache is
/// cleared.
const ACCOUNTS_MAX: usize = 4096;

/// Reads rules, and caches them.
pub struct Lookup {
    path: PathAndQuery,
    upstream: Upstream,
    cache: Mutex<HashMap<AccountName, Arc<CacheEntry>>>,
}

/// The rules of an account, which one task at a time reads while others wait for it.
#[derive(Default)]
struct CacheEntry(tokio::sync::Mutex<Option<CachedRules>>);

struct CachedRules {
    until: Instant,
    rules: Rules,
}

impl Lookup {
    /// Reads from the service of this full name.
    ///
    /// # Panics
    /// With an invalid name of a service.
    #[must_use]
    pub fn new(service: &'static str, upstream: Upstream) -> Self {
        let path = format!("/{service}/{METHOD}").parse().expect("a name of a gRPC service");
        Self { path, upstream, cache: Mutex::default() }
    }

    /// The rules of an account. If they cannot be read, no rule applies.
    pub async fn rules(&self, account: &AccountName) -> Rules {
        let entry = self.entry(account);
        let mut entry = entry.0.lock().await;
        if let Some(kept) = entry.as_ref().filter(|kept| kept.until > Instant::now()) {
            return kept.rules.clone();
        }
        let read = tokio::time::timeout(READ_WITHIN, self.read(account)).await;
        let (rules, kept) = match read {
            Ok(Ok(rules)) => (rules, CACHED_FOR),
            Ok(Err(_)) | Err(_) => (Rules::default(), FAILURE_CACHED_FOR),
        };
        *entry = Some(CachedRules { until: Instant::now() + kept, rules: rules.clone() });
        rules
    }

    /// Invalidates the rules of an account, since they were changed.
    pub fn invalidate(&self, account: &AccountName) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(account);
    }

    fn entry(&self, account: &AccountName) -> Arc<CacheEntry> {
        let mut kept = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.get(account) {
            return Arc::clone(entry);
        }
        if kept.len() >= ACCOUNTS_MAX {
            kept.clear();
        }
        Arc::clone(kept.entry(account.clone()).or_default())
    }

    async fn read(&self, account: &AccountName) -> Result<Rules, Status> {
        let mut request = Request::new(Bytes::new());
        // Of the owner of the account: a caller without a grant, which would restrict it.
        let name = account.as_str().parse();
        let name = name.expect("an account name has letters and digits only");
        request.metadata_mut().insert(ACCOUNT_HEADER, name);
        let mut grpc = Grpc::new(self.upstream.clone());
        let response = grpc.unary(request, self.path.clone(), RawCodec).await?.into_inner();
        let response = GetServicePropertiesResponse::decode(response)
            .map_err(|error| Status::internal(error.to_string()))?;
        let cors = response.properties.and_then(|properties| properties.cors);
        Ok(Rules::new(cors.unwrap_or_default().rules))
    }
}

//! The cross-origin rules of accounts, read from the service that owns them and kept for a moment.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use trestle_proto::table::v1::{
    GetServicePropertiesRequest, table_service_client::TableServiceClient,
};
use trestle_service::{caller::Caller, name::AccountName, upstream::Upstream};

use super::rules::Rules;

/// How long rules are kept: a change is seen by then.
const KEPT: Duration = Duration::from_secs(5);
/// How long it is remembered that they could not be read, so that nobody waits for each answer.
const FAILURE_KEPT: Duration = Duration::from_secs(1);
/// How long reading them may take. The service is asked for one small record.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Most accounts whose rules are kept, well over what settings may name; past it, all are read anew.
const ACCOUNTS_MAX: usize = 4096;

/// Reads rules.
pub(crate) struct Lookup {
    table: Upstream,
    kept: Mutex<HashMap<AccountName, Arc<Entry>>>,
}

/// The rules of an account, which one task at a time reads while others wait for it.
#[derive(Default)]
struct Entry(tokio::sync::Mutex<Option<Kept>>);

struct Kept {
    until: Instant,
    rules: Rules,
}

impl Lookup {
    /// Reads from the table service.
    pub(crate) fn new(table: Upstream) -> Self {
        Self { table, kept: Mutex::default() }
    }

    /// The rules of an account; those that cannot be read allow nothing.
    pub(crate) async fn rules(&self, account: &AccountName) -> Rules {
        let entry = self.entry(account);
        let mut entry = entry.0.lock().await;
        if let Some(kept) = entry.as_ref().filter(|kept| kept.until > Instant::now()) {
            return kept.rules.clone();
        }
        let read = tokio::time::timeout(READ_WITHIN, self.read(account)).await;
        let (rules, kept) = match read {
            Ok(Ok(rules)) => (rules, KEPT),
            Ok(Err(_)) | Err(_) => (Rules::default(), FAILURE_KEPT),
        };
        *entry = Some(Kept { until: Instant::now() + kept, rules: rules.clone() });
        rules
    }

    fn entry(&self, account: &AccountName) -> Arc<Entry> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.get(account) {
            return Arc::clone(entry);
        }
        if kept.len() >= ACCOUNTS_MAX {
            kept.clear();
        }
        Arc::clone(kept.entry(account.clone()).or_default())
    }

    async fn read(&self, account: &AccountName) -> Result<Rules, tonic::Status> {
        let mut request = tonic::Request::new(GetServicePropertiesRequest {});
        request.extensions_mut().insert(Arc::new(Caller::owner(account.clone())));
        let mut client = TableServiceClient::new(self.table.clone());
        let properties = client.get_service_properties(request).await?.into_inner().properties;
        let cors = properties.and_then(|properties| properties.cors);
        Ok(Rules::new(cors.unwrap_or_default().rules))
    }
}

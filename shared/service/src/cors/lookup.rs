//! The cross-origin rules of accounts, read from the service that owns them and kept for a moment.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use trestle_proto::{
    queue::v1::{self as queue, queue_service_client::QueueServiceClient},
    table::v1::{self as table, table_service_client::TableServiceClient},
};

use super::rules::Rules;
use crate::{
    name::{ACCOUNT_HEADER, AccountName},
    upstream::Upstream,
};

/// How long rules are kept: a change that this process does not see is followed by then.
const KEPT: Duration = Duration::from_secs(5);
/// How long it is remembered that they could not be read, so that nobody waits for each answer.
const FAILURE_KEPT: Duration = Duration::from_secs(1);
/// How long reading them may take. The service is asked for one small record.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Most accounts whose rules are kept, well over what settings may name; past it, all are read anew.
const ACCOUNTS_MAX: usize = 4096;

/// The service that keeps the rules.
enum Keeper {
    Table(Upstream),
    Queue(Upstream),
}

/// Reads rules.
pub struct Lookup {
    keeper: Keeper,
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
    #[must_use]
    pub fn of_table(table: Upstream) -> Self {
        Self { keeper: Keeper::Table(table), kept: Mutex::default() }
    }

    /// Reads from the queue service.
    #[must_use]
    pub fn of_queue(queue: Upstream) -> Self {
        Self { keeper: Keeper::Queue(queue), kept: Mutex::default() }
    }

    /// The rules of an account; those that cannot be read allow nothing.
    pub async fn rules(&self, account: &AccountName) -> Rules {
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

    /// Has the rules of an account read anew, since they were changed.
    pub fn forget(&self, account: &AccountName) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(account);
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
        let properties = match &self.keeper {
            Keeper::Table(table) => {
                let request = owned(account, table::GetServicePropertiesRequest {});
                let mut client = TableServiceClient::new(table.clone());
                client.get_service_properties(request).await?.into_inner().properties
            }
            Keeper::Queue(queue) => {
                let request = owned(account, queue::GetServicePropertiesRequest {});
                let mut client = QueueServiceClient::new(queue.clone());
                client.get_service_properties(request).await?.into_inner().properties
            }
        };
        let cors = properties.and_then(|properties| properties.cors);
        Ok(Rules::new(cors.unwrap_or_default().rules))
    }
}

/// A request of the owner of an account: of a caller without a grant, which would say less.
fn owned<T>(account: &AccountName, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let name = account.as_str().parse();
    let name = name.expect("an account name has letters and digits only");
    request.metadata_mut().insert(ACCOUNT_HEADER, name);
    request
}

//! Tables of an account: listed, and read page by page.

use std::sync::Arc;

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{
    http::{Ask, Http, Service, encoded},
    policies,
};
use crate::{
    client::Session,
    entity_json,
    errors::CliError,
    migrate::{
        notes::{Ledger, Place},
        plan::{Plan, PlannedTable, Policy},
        tables::{self, Batch, Chunk},
    },
};

const NAMES_ONLY: &str = "application/json;odata=nometadata";
const TYPED: &str = "application/json;odata=fullmetadata";
/// Most tables or entities of a page. The service's limit.
const PAGE: u32 = 1000;

#[derive(Deserialize)]
struct TablesPage {
    value: Vec<TableName>,
}

#[derive(Deserialize)]
struct TableName {
    #[serde(rename = "TableName")]
    name: String,
}

#[derive(Deserialize)]
struct EntitiesPage<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

fn ask(path: String, query: String, accept: &'static str) -> Ask {
    Ask { service: Service::Tables, method: Method::GET, path, query, accept }
}

/// Adds every table of the account to the plan, with its policies where they may be read.
///
/// # Errors
/// A source that fails.
pub(super) async fn list(http: &Http, plan: &mut Plan) -> Result<(), CliError> {
    let mut next: Option<String> = None;
    loop {
        let mut query = format!("$top={PAGE}");
        if let Some(next) = &next {
            query.push_str(&format!("&NextTableName={}", encoded(next)));
        }
        let what = "the list of tables";
        let answer = http.ask(&ask("/Tables".to_owned(), query, NAMES_ONLY)).await;
        let answer = answer.map_err(|failure| failure.of(what))?;
        let page: TablesPage =
            serde_json::from_slice(&answer.body).map_err(|error| malformed(what, &error))?;
        for TableName { name } in page.value {
            let whose = tables::whose(&name);
            let path = format!("/{}", encoded(&name));
            let found = policies::read(http, Service::Tables, path, &whose, plan).await?;
            let policies = found.into_iter().map(Policy::of_table).collect();
            plan.tables.push(PlannedTable { name, policies });
        }
        match answer.header("x-ms-continuation-NextTableName") {
            Some(continuation) => next = Some(continuation.to_owned()),
            None => break,
        }
    }
    Ok(())
}

fn malformed(what: &str, error: &serde_json::Error) -> CliError {
    let text = format!("the source answers {what} with JSON that is none of it: {error}");
    CliError::Source { text, busy: false }
}

/// Copies a table from where its notes say.
///
/// # Errors
/// A source or a server that fails.
pub(super) async fn copy(
    http: &Http,
    session: &Session,
    ledger: &Arc<Ledger>,
    name: String,
) -> Result<(), CliError> {
    let folded = tables::folded(&name);
    let place = ledger.read(|notes| notes.tables.get(&folded).map(|table| table.place.clone()));
    let Some(place) = place else { return Ok(()) };
    let (sender, chunks) = mpsc::channel(tables::AHEAD_MAX);
    let filling = tables::fill(session, ledger, name.clone(), chunks);
    let reading = async {
        // The end of the sender ends the upload.
        let sender = sender;
        if let Err(error) = read(http, &name, place, &sender).await {
            // Nobody receives where the writer failed, which says why itself.
            let _ = sender.send(Err(error)).await;
        }
    };
    let (filled, ()) = tokio::join!(filling, reading);
    filled
}

async fn read(
    http: &Http,
    name: &str,
    mut place: Option<Place>,
    chunks: &mpsc::Sender<Result<Chunk, CliError>>,
) -> Result<(), CliError> {
    let what = format!("entities of table `{name}`");
    let mut batch = Batch::default();
    loop {
        let mut query = format!("$top={PAGE}");
        match &place {
            None | Some(Place::Documents(_)) => {}
            Some(Place::Page { partition, row }) => {
                query.push_str(&format!("&NextPartitionKey={}", encoded(partition)));
                if let Some(row) = row {
                    query.push_str(&format!("&NextRowKey={}", encoded(row)));
                }
            }
            Some(Place::End) => return Ok(()),
        }
        let path = format!("/{}()", encoded(name));
        let answer = http.ask(&ask(path, query, TYPED)).await;
        let answer = answer.map_err(|failure| failure.of(&what))?;
        let page: EntitiesPage<'_> =
            serde_json::from_slice(&answer.body).map_err(|error| malformed(&what, &error))?;
        for json in page.value {
            let chunk = match entity_json::parse(json.get().as_bytes()) {
                Ok(entity) => batch.add(entity, None),
                Err(error) => batch.refuse(key_of(json.get()), error.to_string(), None),
            };
            if !hand(chunk, chunks).await {
                return Ok(());
            }
        }
        let continuation = |name| answer.header(name).map(str::to_owned);
        let next = continuation("x-ms-continuation-NextPartitionKey").map(|partition| {
            Place::Page { partition, row: continuation("x-ms-continuation-NextRowKey") }
        });
        place = Some(next.unwrap_or(Place::End));
        let last = batch.finish(place.clone());
        if !hand(Some(last), chunks).await {
            return Ok(());
        }
    }
}

/// Whether it was taken.
async fn hand(chunk: Option<Chunk>, chunks: &mpsc::Sender<Result<Chunk, CliError>>) -> bool {
    match chunk {
        Some(chunk) => chunks.send(Ok(chunk)).await.is_ok(),
        None => true,
    }
}

/// The key of an entity that cannot be read, as far as it can be.
fn key_of(json: &str) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Key {
        partition_key: String,
        row_key: String,
    }
    match serde_json::from_str::<Key>(json) {
        Ok(key) => format!("PartitionKey=`{}` RowKey=`{}`", key.partition_key, key.row_key),
        Err(_) => String::from("an entity without a key"),
    }
}

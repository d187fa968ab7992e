//! Tables of an account: listed, and read page by page.

use std::sync::Arc;

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{
    http::{Answer, Ask, Http, Service, encoded},
    policies,
    stretches::{self, Keys},
};
use crate::{
    client::Session,
    entity_json,
    errors::CliError,
    migrate::{
        notes::{Ledger, Place, Stretch},
        plan::{Plan, PlannedTable},
        tables::{self, Batch, Chunk},
    },
};

const NAMES_ONLY: &str = "application/json;odata=nometadata";
const TYPED: &str = "application/json;odata=fullmetadata";
/// Most tables or entities of a page. The service's limit.
const PAGE: u32 = 1000;
/// Most pages without a key that are gone through to find the first one.
const EMPTY_PAGES_MAX: usize = 100;

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
            let policies = policies::read(http, Service::Tables, path, &whose, plan).await?;
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

/// What is copied by itself: a table, or a stretch of one.
#[derive(Debug)]
pub(super) struct Part {
    table: String,
    stretch: Option<usize>,
}

/// The parts of a table that are to be copied. Into which it is divided is found out once, and
/// noted: whoever goes on has to read the same ones.
///
/// # Errors
/// A source that fails.
pub(super) async fn parts(http: &Http, ledger: &Ledger, name: &str) -> Result<Vec<Part>, CliError> {
    let folded = tables::folded(name);
    let part = |stretch| Part { table: name.to_owned(), stretch };
    let Some(notes) = ledger.read(|notes| notes.tables.get(&folded).cloned()) else {
        return Ok(Vec::new());
    };
    if notes.place.is_some() {
        return Ok(vec![part(None)]);
    }
    let mut count = notes.stretches.len();
    if count == 0 {
        let stretches = Stretch::between(bounds(http, name).await?);
        count = stretches.len();
        ledger.change_quietly(|notes| {
            notes.tables.entry(folded).or_default().stretches = stretches;
        });
    }
    Ok((0..count).map(|stretch| part(Some(stretch))).collect())
}

/// Where a table is divided: one of a single page is not.
async fn bounds(http: &Http, name: &str) -> Result<Vec<String>, CliError> {
    let table = TableOf { http, name };
    match table.keys(format!("$top={PAGE}")).await? {
        (Some(first), Place::Page { .. }) => stretches::bounds(&table, &first).await,
        _ => Ok(Vec::new()),
    }
}

/// A table of an account.
struct TableOf<'a> {
    http: &'a Http,
    name: &'a str,
}

#[derive(Deserialize)]
struct KeysPage {
    value: Vec<KeyOnly>,
}

#[derive(Deserialize)]
struct KeyOnly {
    #[serde(rename = "PartitionKey")]
    partition_key: String,
}

impl TableOf<'_> {
    async fn page(&self, query: String, accept: &'static str) -> Result<Answer, CliError> {
        let path = format!("/{}()", encoded(self.name));
        let answer = self.http.ask(&ask(path, query, accept)).await;
        answer.map_err(|failure| failure.of(&self.what()))
    }

    fn what(&self) -> String {
        format!("entities of table `{}`", self.name)
    }

    /// The first partition key of a page, and where the next page is.
    async fn keys(&self, query: String) -> Result<(Option<String>, Place), CliError> {
        let answer = self.page(format!("{query}&$select=PartitionKey"), NAMES_ONLY).await?;
        let page: KeysPage = serde_json::from_slice(&answer.body)
            .map_err(|error| malformed(&self.what(), &error))?;
        let first = page.value.into_iter().next().map(|key| key.partition_key);
        Ok((first, next(&answer)))
    }
}

impl Keys for TableOf<'_> {
    async fn first_from(&self, text: &str) -> Result<Option<String>, CliError> {
        let filter = within(Some(text), None);
        let mut place = None;
        for _ in 0..EMPTY_PAGES_MAX {
            let query = format!("$top=1{filter}{}", continued(place.as_ref()));
            match self.keys(query).await? {
                (None, Place::End) => return Ok(None),
                (None, more) => place = Some(more),
                (first, _) => return Ok(first),
            }
        }
        Ok(None)
    }
}

/// The filter for a stretch of a table, as a parameter; nothing for all of it.
fn within(from: Option<&str>, below: Option<&str>) -> String {
    let quoted = |text: &str| text.replace('\'', "''");
    let from = from.map(|from| format!("PartitionKey ge '{}'", quoted(from)));
    let below = below.map(|below| format!("PartitionKey lt '{}'", quoted(below)));
    let terms: Vec<_> = from.into_iter().chain(below).collect();
    if terms.is_empty() {
        return String::new();
    }
    format!("&$filter={}", encoded(&terms.join(" and ")))
}

/// The parameters that go on at a place.
fn continued(place: Option<&Place>) -> String {
    let Some(Place::Page { partition, row }) = place else { return String::new() };
    let mut query = format!("&NextPartitionKey={}", encoded(partition));
    if let Some(row) = row {
        query.push_str(&format!("&NextRowKey={}", encoded(row)));
    }
    query
}

/// Where a query goes on after a page.
fn next(answer: &Answer) -> Place {
    let continuation = |name| answer.header(name).map(str::to_owned);
    match continuation("x-ms-continuation-NextPartitionKey") {
        Some(partition) => {
            Place::Page { partition, row: continuation("x-ms-continuation-NextRowKey") }
        }
        None => Place::End,
    }
}

/// Copies a part of a table from where its notes say.
///
/// # Errors
/// A source or a server that fails.
pub(super) async fn copy(
    http: &Http,
    session: &Session,
    ledger: &Arc<Ledger>,
    part: Part,
) -> Result<(), CliError> {
    let Part { table: name, stretch } = part;
    let folded = tables::folded(&name);
    let (filter, place) = ledger.read(|notes| {
        let table = notes.tables.get(&folded);
        let stretches = table.map(|table| table.stretches.as_slice()).unwrap_or_default();
        let bounds = stretch.and_then(|at| stretches.get(at));
        let filter =
            bounds.map(|stretch| within(stretch.from.as_deref(), stretch.below.as_deref()));
        let place = table.and_then(|table| table.place_of(stretch).cloned());
        (filter.unwrap_or_default(), place)
    });
    let (sender, chunks) = mpsc::channel(tables::AHEAD_MAX);
    let filling = tables::fill(session, ledger, name.clone(), stretch, chunks);
    let reading = async {
        // The end of the sender ends the upload.
        let sender = sender;
        let table = TableOf { http, name: &name };
        if let Err(error) = read(&table, &filter, place, &sender).await {
            // Nobody receives where the writer failed, which says why itself.
            let _ = sender.send(Err(error)).await;
        }
    };
    let (filled, ()) = tokio::join!(filling, reading);
    filled
}

async fn read(
    table: &TableOf<'_>,
    filter: &str,
    mut place: Option<Place>,
    chunks: &mpsc::Sender<Result<Chunk, CliError>>,
) -> Result<(), CliError> {
    let mut batch = Batch::default();
    while place != Some(Place::End) {
        let query = format!("$top={PAGE}{filter}{}", continued(place.as_ref()));
        let answer = table.page(query, TYPED).await?;
        let page: EntitiesPage<'_> = serde_json::from_slice(&answer.body)
            .map_err(|error| malformed(&table.what(), &error))?;
        for json in page.value {
            let chunk = match entity_json::parse(json.get().as_bytes()) {
                Ok(entity) => batch.add(entity, None),
                Err(error) => batch.refuse(key_of(json.get()), error.to_string(), None),
            };
            if !hand(chunk, chunks).await {
                return Ok(());
            }
        }
        place = Some(next(&answer));
        let last = batch.finish(place.clone());
        if !hand(Some(last), chunks).await {
            return Ok(());
        }
    }
    Ok(())
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

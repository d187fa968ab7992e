//! Tables of an account: listed, and read page by page.

use serde::Deserialize;
use serde_json::value::RawValue;
use trestle_command::{entity_json, errors::CliError};

use super::{
    http::{AzureAnswer, AzureRequest, Http, Service, encoded, header},
    policies,
    ranges::{self, KeySource},
};
use crate::{
    ImportTarget,
    plan::{ImportPlan, PlannedTable},
    progress::{PartitionRange, SourcePosition, Tracker},
    tables::{self, ChunkSender, TableBatch},
};

const NAMES_ONLY: &str = "application/json;odata=nometadata";
const TYPED: &str = "application/json;odata=fullmetadata";
/// Most tables or entities of a page. The service's limit.
const PAGE: u32 = 1000;
/// Most pages without a key that are skipped to find the first one.
const EMPTY_PAGES_MAX: usize = 100;

#[derive(Deserialize)]
struct TablesPage {
    value: Vec<TableElement>,
}

#[derive(Deserialize)]
struct TableElement {
    #[serde(rename = "TableName")]
    name: String,
}

#[derive(Deserialize)]
struct EntitiesPage<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
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

fn get(path: String, query: String, accept: &'static str) -> AzureRequest {
    AzureRequest { accept, ..AzureRequest::get(Service::Tables, path, query) }
}

fn parsed<'a, T: Deserialize<'a>>(answer: &'a AzureAnswer, what: &str) -> Result<T, CliError> {
    serde_json::from_slice(answer.body()).map_err(|error| {
        let text = format!("the source answers {what} with unexpected JSON: {error}");
        CliError::Source { text, busy: false }
    })
}

/// Adds every table of the account to the plan, with its policies if they are readable.
pub(super) async fn list(http: &Http, plan: &mut ImportPlan) -> Result<(), CliError> {
    let (mut next, what) = (String::new(), "the list of tables");
    loop {
        let query = format!("$top={PAGE}{next}");
        let answer = http.send(&get("/Tables".to_owned(), query, NAMES_ONLY), what).await?;
        for TableElement { name } in parsed::<TablesPage>(&answer, what)?.value {
            let (path, whose) = (format!("/{}", encoded(&name)), tables::whose(&name));
            let policies = policies::read(http, Service::Tables, path, &whose, plan).await?;
            plan.tables.push(PlannedTable { name, policies });
        }
        match header(&answer, "x-ms-continuation-NextTableName") {
            Some(continuation) => next = format!("&NextTableName={}", encoded(continuation)),
            None => return Ok(()),
        }
    }
}

/// A unit of copying: a table, or a range of one.
#[derive(Debug)]
pub(super) struct TablePart {
    table: String,
    range: Option<usize>,
}

/// The parts of a table that are to be copied. The ranges are determined once and recorded: a resumed import must read
/// the same ones.
pub(super) async fn parts(
    http: &Http,
    tracker: &Tracker,
    name: &str,
) -> Result<Vec<TablePart>, CliError> {
    let folded = tables::folded(name);
    let part = |range| TablePart { table: name.to_owned(), range };
    let Some(table) = tracker.read(|progress| progress.tables.get(&folded).cloned()) else {
        return Ok(Vec::new());
    };
    if table.position.is_some() {
        return Ok(vec![part(None)]);
    }
    let mut count = table.ranges.len();
    if count == 0 {
        let ranges = PartitionRange::between(&bounds(http, name).await?);
        count = ranges.len();
        tracker.change_unsaved(|progress| {
            progress.tables.entry(folded).or_default().ranges = ranges;
        });
    }
    Ok((0..count).map(|range| part(Some(range))).collect())
}

/// The bounds of a table: a table of a single page has none.
async fn bounds(http: &Http, name: &str) -> Result<Vec<String>, CliError> {
    let table = SourceTable { http, name };
    match table.keys(format!("$top={PAGE}")).await? {
        (_, SourcePosition::Page { .. }) => ranges::bounds(&table).await,
        _ => Ok(Vec::new()),
    }
}

/// A table of an account.
struct SourceTable<'a> {
    http: &'a Http,
    name: &'a str,
}

impl SourceTable<'_> {
    async fn page(&self, query: String, accept: &'static str) -> Result<AzureAnswer, CliError> {
        let path = format!("/{}()", encoded(self.name));
        self.http.send(&get(path, query, accept), &self.what()).await
    }

    fn what(&self) -> String {
        format!("entities of table `{}`", self.name)
    }

    /// The first partition key of a page, and where the next page is.
    async fn keys(&self, query: String) -> Result<(Option<String>, SourcePosition), CliError> {
        let answer = self.page(format!("{query}&$select=PartitionKey"), NAMES_ONLY).await?;
        let page: KeysPage = parsed(&answer, &self.what())?;
        let first = page.value.into_iter().next().map(|key| key.partition_key);
        Ok((first, next(&answer)))
    }
}

impl KeySource for SourceTable<'_> {
    async fn first_from(&self, text: &str) -> Result<Option<String>, CliError> {
        let filter = within(Some(text), None);
        let mut position = None;
        for _ in 0..EMPTY_PAGES_MAX {
            let query = format!("$top=1{filter}{}", continued(position.as_ref()));
            match self.keys(query).await? {
                (None, SourcePosition::End) => return Ok(None),
                (None, more) => position = Some(more),
                (first, _) => return Ok(first),
            }
        }
        Ok(None)
    }
}

/// The filter for a range of a table, as a parameter; nothing for all of it.
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

/// The parameters that continue at a position.
fn continued(position: Option<&SourcePosition>) -> String {
    let Some(SourcePosition::Page { partition, row }) = position else { return String::new() };
    let mut query = format!("&NextPartitionKey={}", encoded(partition));
    if let Some(row) = row {
        query.push_str(&format!("&NextRowKey={}", encoded(row)));
    }
    query
}

/// Where a query continues after a page.
fn next(answer: &AzureAnswer) -> SourcePosition {
    let continuation = |name| header(answer, name).map(str::to_owned);
    match continuation("x-ms-continuation-NextPartitionKey") {
        Some(partition) => {
            SourcePosition::Page { partition, row: continuation("x-ms-continuation-NextRowKey") }
        }
        None => SourcePosition::End,
    }
}

/// Copies a part of a table from its position on.
pub(super) async fn copy(
    http: &Http,
    target: ImportTarget<'_>,
    part: TablePart,
) -> Result<(), CliError> {
    let TablePart { table: name, range } = part;
    let folded = tables::folded(&name);
    let table = target.tracker.read(|progress| progress.tables.get(&folded).cloned());
    let mut table = table.unwrap_or_default();
    let (filter, position) = match range.and_then(|at| table.ranges.get_mut(at)) {
        Some(range) => {
            (within(range.from.as_deref(), range.below.as_deref()), range.position.take())
        }
        None => (String::new(), table.position),
    };
    let table = SourceTable { http, name: &name };
    let read = async |chunks| read(&table, &filter, position, &chunks).await;
    target.fill(&name, range, read).await
}

async fn read(
    table: &SourceTable<'_>,
    filter: &str,
    mut position: Option<SourcePosition>,
    chunks: &ChunkSender,
) -> Result<(), CliError> {
    let mut batch = TableBatch::default();
    while position != Some(SourcePosition::End) {
        let query = format!("$top={PAGE}{filter}{}", continued(position.as_ref()));
        let answer = table.page(query, TYPED).await?;
        let page: EntitiesPage<'_> = parsed(&answer, &table.what())?;
        for json in page.value {
            let entity = entity_json::parse(json.get().as_bytes());
            let entity = entity.map_err(|error| (key_of(json.get()), error.to_string()));
            if let Some(chunk) = batch.add(entity, None) {
                chunks.send(chunk).await?;
            }
        }
        let end = next(&answer);
        chunks.send(batch.finish(end.clone())).await?;
        position = Some(end);
    }
    Ok(())
}

/// The readable parts of the key of an invalid entity.
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

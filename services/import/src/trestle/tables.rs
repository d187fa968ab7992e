//! Tables of a server: listed, and read as streams.

use trestle_command::{
    errors::CliError,
    scan::{TableScan, decoded},
    selection::Renamed,
};
use trestle_proto::table::v1::{
    Entity, GetTableAccessPoliciesRequest, GetTableRequest, ListTablesRequest,
    StreamEntitiesRequest,
};

use super::TrestleSource;
use crate::{
    ImportTarget,
    plan::{ImportPlan, PlannedTable},
    progress::SourcePosition,
    tables::{self, ChunkSender, TableBatch},
};

/// Adds the selected tables, or every table, to the plan; their names.
pub(super) async fn plan(
    server: &TrestleSource,
    selected: Option<&[Renamed]>,
    plan: &mut ImportPlan,
) -> Result<Vec<Renamed>, CliError> {
    let names = match selected {
        Some(selected) => find(server, selected).await?,
        None => list(server).await?,
    };
    for Renamed { from, to } in &names {
        let request = GetTableAccessPoliciesRequest { table: from.clone() };
        let session = &server.session;
        let read = async || session.table().get_table_access_policies(request.clone()).await;
        let whose = tables::whose(to);
        let policies = server.policies(read, &whose, |read| read.policies, plan).await?;
        plan.tables.push(PlannedTable { name: to.clone(), policies });
    }
    Ok(names)
}

async fn find(server: &TrestleSource, selected: &[Renamed]) -> Result<Vec<Renamed>, CliError> {
    let mut found = Vec::new();
    for name in selected {
        let request = GetTableRequest { table: name.from.clone() };
        let get = async || server.session.table().get_table(request.clone()).await;
        let answer = server.find(get, "--table", name).await?;
        found.push(name.spelled(answer.table.unwrap_or_default().name));
    }
    Ok(found)
}

async fn list(server: &TrestleSource) -> Result<Vec<Renamed>, CliError> {
    let (mut names, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListTablesRequest { page_token, ..ListTablesRequest::default() };
        let list = async || server.session.table().list_tables(request.clone()).await;
        let page = server.call(list, "the list of tables").await?;
        names.extend(page.tables.into_iter().map(|table| Renamed::kept(table.name)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(names);
        }
    }
}

/// Copies the entities of a table from its position on.
pub(super) async fn copy(
    server: &TrestleSource,
    target: ImportTarget<'_>,
    Renamed { from, to }: &Renamed,
) -> Result<(), CliError> {
    // Without progress the target rejected the whole table.
    let position = target.tracker.read(|progress| {
        let table = progress.tables.get(&tables::folded(to))?;
        (!table.complete).then(|| table.position.clone())
    });
    let resume_token = match position {
        Some(Some(SourcePosition::Message(token))) => token,
        Some(_) => String::new(),
        None => return Ok(()),
    };
    let request = StreamEntitiesRequest {
        table: from.clone(),
        resume_token,
        ..StreamEntitiesRequest::default()
    };
    let scan = TableScan::new(&server.session, request);
    let what = format!("entities of table `{from}`");
    let read = async |chunks| {
        let read = read(scan, &chunks).await;
        read.map_err(|error| server.failed(error, &what))
    };
    target.fill(to, None, read).await
}

async fn read(mut scan: TableScan, chunks: &ChunkSender) -> Result<(), CliError> {
    let mut batch = TableBatch::default();
    while let Some(message) = scan.next().await? {
        for entity in decoded(&message)? {
            if let Some(chunk) = batch.add(Ok(without_version(entity)), None) {
                chunks.send(chunk).await?;
            }
        }
        if !message.resume_token.is_empty() {
            let end = SourcePosition::Message(message.resume_token);
            chunks.send(batch.finish(end)).await?;
        }
    }
    chunks.send(batch.finish(SourcePosition::End)).await
}

/// The keys and properties of an entity: the target makes a version of its own.
fn without_version(entity: Entity) -> Entity {
    let Entity { partition_key, row_key, properties, .. } = entity;
    Entity { partition_key, row_key, properties, ..Entity::default() }
}

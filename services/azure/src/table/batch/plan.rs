//! The operations of a batch: changes of one table, or one query.

use http::{HeaderValue, header};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::BATCH_OPERATIONS_MAX;
use trestle_model::name::AccountName;
use trestle_proto::table::v1::{
    BatchDelete, BatchInsert, BatchOperation, BatchUpdate, BatchUpsert, batch_operation,
};

use super::{
    embedded,
    multipart::{self, MultipartParts, Truncated},
};
use crate::{
    address::Address,
    dispatch::read_only,
    head::RequestHead,
    params::Params,
    protocol::RestProtocol as _,
    table::{
        TableProtocol,
        json::entity_of,
        level::Level,
        prefer::Prefer,
        route::{EntityChange, Get, RouteRequest, TableOperation, Verb, route},
    },
};

/// The header by which clients match the response of an operation.
const CONTENT_ID: &str = "content-id";

/// The operations of a batch.
#[derive(Debug)]
pub(super) enum Plan {
    /// One entity, alone.
    Query(Box<Get>, BatchPart),
    /// Changes of a table, each with the parameters of its response; may be empty.
    Changes { table: String, operations: Vec<BatchOperation>, parts: Vec<BatchPart> },
}

/// The parameters of the response to an operation.
#[derive(Debug, Clone, Default)]
pub(super) struct BatchPart {
    pub(super) content_id: Option<HeaderValue>,
    pub(super) level: Level,
    pub(super) prefer: Prefer,
}

/// The error of a batch that is not executed.
#[derive(Debug)]
pub(super) enum Stop {
    /// The batch is malformed.
    Whole(Fault),
    /// One of its changes is invalid.
    Change(Fault, BatchPart),
    /// Its query is invalid.
    Query(Fault, BatchPart),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Whole(fault)
    }
}

impl From<Truncated> for Stop {
    fn from(_: Truncated) -> Self {
        rejected("a boundary must precede and follow each part").into()
    }
}

/// Parses a batch.
///
/// # Errors
/// Why it is not executed.
pub(super) fn plan(head: &RequestHead, body: &[u8]) -> Result<Plan, Stop> {
    let content_type = head.header(header::CONTENT_TYPE).unwrap_or_default();
    let boundary = multipart::boundary(content_type).ok_or_else(|| {
        let rule = "must be multipart/mixed with a boundary";
        Fault::violation(Reason::InvalidInput, "Content-Type", rule)
    })?;
    let mut parts = multipart::parts(body, boundary);
    let first = parts.next().ok_or_else(|| rejected("a batch must have a part"))??;
    if parts.next().transpose()?.is_some() {
        return Err(rejected("a batch must be one change set, or one query").into());
    }
    if parts.surround_parts() {
        return Err(
            rejected("a part must not precede the first boundary or follow the last").into()
        );
    }
    let (headers, content) = embedded::part(first)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.and_then(multipart::boundary) {
        Some(boundary) => changes(head, multipart::parts(content, boundary)),
        None => query(head, content),
    }
}

fn query(head: &RequestHead, content: &[u8]) -> Result<Plan, Stop> {
    let request = embedded::request(content)?;
    // Could be another part without its boundary.
    if !request.body.trim_ascii().is_empty() {
        return Err(rejected("a query in a batch has no body").into());
    }
    let parsed = PartRequest::read(head, &request);
    let part = parsed.part;
    match parsed.operation {
        Ok(TableOperation::Get(get)) => Ok(Plan::Query(Box::new(get), part)),
        Ok(TableOperation::Change(_)) => Err(rejected("changes must be in a change set").into()),
        Ok(_) => {
            let message = "a batch can only query one entity by its key";
            Err(Stop::Query(Fault::new(Reason::NotImplemented, message).at(0), part))
        }
        Err(fault) => Err(Stop::Query(fault.at(0), part)),
    }
}

fn changes(head: &RequestHead, mut parts: MultipartParts<'_>) -> Result<Plan, Stop> {
    let mut first: Option<String> = None;
    let (mut operations, mut read) = (Vec::new(), Vec::new());
    for (index, part) in parts.by_ref().enumerate() {
        let (_, content) = embedded::part(part?)?;
        let request = embedded::request(content)?;
        let parsed = PartRequest::read(head, &request);
        if index == BATCH_OPERATIONS_MAX {
            let message =
                "The batch request operation exceeds the maximum 100 changes per change set.";
            let fault = Fault::new(Reason::InvalidInput, message).at(index - 1);
            return Err(Stop::Change(fault, read.pop().unwrap_or_default()));
        }
        let part = parsed.part.clone();
        let at = |fault: Fault| Stop::Change(fault.at(index), part.clone());
        let (table, operation) = parsed.change(request.body).map_err(at)?;
        let table_of_all = first.get_or_insert_with(|| table.clone());
        if !table_of_all.eq_ignore_ascii_case(&table) {
            let reason = Reason::CommandsInBatchActOnDifferentPartitions;
            return Err(at(Fault::new(reason, "all operations must be on one table")));
        }
        operations.push(operation);
        read.push(part);
    }
    // Text around a change set could be requests with a wrong boundary.
    if !parts.are_all() {
        return Err(rejected("no text may surround the parts of a change set").into());
    }
    Ok(Plan::Changes { table: first.unwrap_or_default(), operations, parts: read })
}

/// The operation of an embedded request.
struct PartRequest {
    operation: Result<TableOperation, Fault>,
    /// Whether it addresses the read-only replica.
    is_secondary: bool,
    part: BatchPart,
}

impl PartRequest {
    /// Parses a request as if it were sent alone.
    fn read(head: &RequestHead, request: &embedded::Embedded<'_>) -> Self {
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let headers = &request.headers;
        let params = Params::parse(query);
        let path_of_account = behind_account(head, request.host, path);
        let is_secondary = path_of_account.as_ref().is_ok_and(|(_, is_secondary)| *is_secondary);
        let operation = params.clone().and_then(|params| {
            let (path, _) = path_of_account?;
            let (method, account) = (request.method, head.account.as_str());
            route(&RouteRequest { method, account, path, params: &params, headers })
        });
        let params = params.unwrap_or_default();
        let part = BatchPart {
            content_id: headers.get(CONTENT_ID).cloned(),
            level: Level::negotiate(params.get("$format"), headers).unwrap_or_default(),
            prefer: Prefer::of(headers),
        };
        Self { operation, is_secondary, part }
    }

    /// The change of a request, and its table.
    fn change(self, body: &[u8]) -> Result<(String, BatchOperation), Fault> {
        match self.operation? {
            TableOperation::Change(_) if self.is_secondary => Err(read_only()),
            TableOperation::Change(EntityChange { table, verb }) => {
                Ok((table, operation(verb, body)?))
            }
            _ => Err(rejected("a change set can only have inserts, updates and deletes")),
        }
    }
}

/// The path of a request after the account, and whether it addresses the read-only replica. The
/// account is parsed as in a request that is sent alone; it is optional.
fn behind_account<'a>(
    head: &'a RequestHead,
    named: Option<&'a str>,
    path: &'a str,
) -> Result<(&'a str, bool), Fault> {
    let host = named.unwrap_or(&head.host);
    let address = Address::of(path, host, TableProtocol::SERVICE).filter(|address| {
        // The only segment of a path, or the first one if it is an invalid account name, is a
        // table.
        let is_account = || AccountName::parse(&address.account).is_some() && address.path != "/";
        !address.is_in_path || is_account()
    });
    let Some(address) = address else { return Ok((path, false)) };
    let is_own = |found: &Address<'_>| found.account == head.account.as_str();
    if is_own(&address) {
        return Ok((address.path, address.is_secondary));
    }
    // Behind a proxy the server may have a host name that looks like that of an account.
    let own = Address::in_path(path).filter(is_own);
    own.map(|own| (own.path, own.is_secondary)).ok_or_else(|| {
        let rule = "a request in a batch must be for the account that the batch is sent to";
        let rule = format!("{rule}: account=`{}`", quoted(&address.account));
        Fault::violation(Reason::ResourceNotFound, "path", rule)
    })
}

fn operation(verb: Verb, body: &[u8]) -> Result<BatchOperation, Fault> {
    use batch_operation::Operation as Proto;
    let operation = match verb {
        Verb::Insert { .. } => Proto::Insert(BatchInsert { entity: Some(entity_of(body, None)?) }),
        Verb::Update { key, mode, if_match } => Proto::Update(BatchUpdate {
            entity: Some(entity_of(body, Some(key))?),
            mode: mode.into(),
            if_match: Some(if_match),
        }),
        Verb::Upsert { key, mode } => Proto::Upsert(BatchUpsert {
            entity: Some(entity_of(body, Some(key))?),
            mode: mode.into(),
        }),
        // Could be another request without its boundary.
        Verb::Delete { .. } if !body.trim_ascii().is_empty() => {
            return Err(rejected("a delete in a batch has no body"));
        }
        Verb::Delete { key, if_match } => Proto::Delete(BatchDelete {
            partition_key: key.partition_key,
            row_key: key.row_key,
            if_match: Some(if_match),
        }),
    };
    Ok(BatchOperation { operation: Some(operation) })
}

fn rejected(rule: &str) -> Fault {
    Fault::violation(Reason::InvalidInput, "body", rule)
}

#[cfg(test)]
mod tests;

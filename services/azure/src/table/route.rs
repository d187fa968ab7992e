//! From the head of a request to its operation. The same for a request of its own and for one
//! inside of a batch.

use http::{HeaderMap, header};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_proto::table::v1::WriteMode;

use super::{
    level::Level,
    options::{self, Options, page_token_of},
    path::{self, Key, PathResource},
    prefer::Prefer,
};
use crate::{head::RequestHead, params::Params, protocol::Target};

/// The header that names the verb of a request that is sent as a POST.
pub(super) const TUNNELLED: &str = "x-http-method";
/// The format of bodies before JSON, which Azure discontinued too.
const ATOM: &str = "application/atom+xml";
/// The prefix of the metrics tables; they do not exist, and cannot be created.
const METRICS: &str = "$metrics";

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) account: &'a str,
    /// The path after the account, as it was sent.
    pub(crate) path: &'a str,
    pub(crate) params: &'a Params,
    pub(crate) headers: &'a HeaderMap,
}

/// The operation of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableOperation {
    Tables(OnTables),
    Query(Query),
    Get(Get),
    Change(EntityChange),
    Settings(OnSettings),
    Batch,
}

/// An operation on the tables themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnTables {
    List {
        options: Options,
        page_token: String,
        level: Level,
    },
    Get {
        table: String,
        level: Level,
    },
    Create {
        level: Level,
        prefer: Prefer,
    },
    Delete {
        table: String,
    },
    /// Create or delete, sent to a table. It fails with the error that clients expect; a table that does not exist is
    /// reported first.
    Misplaced {
        table: String,
        rejected: Fault,
    },
}

/// A query of entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) table: String,
    pub(crate) options: Options,
    pub(crate) page_token: String,
    pub(crate) level: Level,
}

/// A read of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Get {
    pub(crate) table: String,
    pub(crate) key: Key,
    pub(crate) options: Options,
    pub(crate) level: Level,
}

/// A change of one entity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EntityChange {
    pub(crate) table: String,
    pub(crate) verb: Verb,
}

/// The kind of the change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verb {
    Insert { level: Level, prefer: Prefer },
    Update { key: Key, mode: WriteMode, if_match: String },
    Upsert { key: Key, mode: WriteMode },
    Delete { key: Key, if_match: String },
}

/// An operation on settings, in XML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnSettings {
    GetPolicies { table: String },
    SetPolicies { table: String },
    GetProperties,
    SetProperties,
    GetStats,
}

macro_rules! method {
    ($name:literal) => {
        concat!("/trestle.table.v1.TableService/", $name)
    };
}

/// The call that reads an entity, alone or in a batch.
pub(crate) const GET_ENTITY: &str = method!("GetEntity");
/// The call that executes a batch.
pub(crate) const EXECUTE_BATCH: &str = method!("ExecuteBatch");

impl TableOperation {
    /// The gRPC call.
    pub(crate) fn target(&self) -> Target {
        let (path, reads) = match self {
            Self::Tables(OnTables::List { .. }) => (method!("ListTables"), true),
            Self::Tables(OnTables::Get { .. }) => (method!("GetTable"), true),
            Self::Tables(OnTables::Misplaced { .. }) => (method!("GetTable"), false),
            Self::Tables(OnTables::Create { .. }) => (method!("CreateTable"), false),
            Self::Tables(OnTables::Delete { .. }) => (method!("DeleteTable"), false),
            Self::Query(_) => (method!("QueryEntities"), true),
            Self::Get(_) => (GET_ENTITY, true),
            Self::Change(change) => (change.verb.target(), false),
            Self::Settings(OnSettings::GetPolicies { .. }) => {
                (method!("GetTableAccessPolicies"), true)
            }
            Self::Settings(OnSettings::SetPolicies { .. }) => {
                (method!("SetTableAccessPolicies"), false)
            }
            Self::Settings(OnSettings::GetProperties) => (method!("GetServiceProperties"), true),
            Self::Settings(OnSettings::SetProperties) => (method!("SetServiceProperties"), false),
            Self::Settings(OnSettings::GetStats) => (method!("GetServiceStats"), true),
            // A write is rejected once its body is parsed.
            Self::Batch => (EXECUTE_BATCH, true),
        };
        Target { path, reads }
    }
}

impl Verb {
    /// The gRPC call, outside of a batch.
    fn target(&self) -> &'static str {
        match self {
            Self::Insert { .. } => method!("InsertEntity"),
            Self::Update { .. } => method!("UpdateEntity"),
            Self::Upsert { .. } => method!("UpsertEntity"),
            Self::Delete { .. } => method!("DeleteEntity"),
        }
    }
}

/// The operation of a request.
///
/// # Errors
/// An invalid address, verb, option or condition.
pub(crate) fn route(request: &RouteRequest<'_>) -> Result<TableOperation, Fault> {
    let resource = path::parse(request.path)?;
    let method = request.method()?;
    options::check(request.params)?;
    match (resource, method) {
        (PathResource::Service, _) => request.on_service(method),
        // The secondary of a client whose base address has the account requests them there.
        (PathResource::Entities(name), _) if name == request.account && request.is_of_stats() => {
            request.on_service(method)
        }
        // Clients whose base address has a table expect this error.
        (PathResource::Entities(_), _) if request.params.is("restype", "service") => {
            let rule = "must be at the address of the account, not of a table: value=`service`";
            Err(Fault::violation(Reason::InvalidQueryParameterValue, "restype", rule))
        }
        (PathResource::BatchIn, "POST") => {
            let rule = "a table accepts no transaction: its address is `/$batch` of the account";
            Err(Fault::violation(Reason::MediaTypeNotSupported, "path", rule))
        }
        (PathResource::Batch, "POST") => Ok(TableOperation::Batch),
        (PathResource::Tables, "GET") => request.list_tables(),
        (PathResource::Tables, "POST") => {
            request.check_format()?;
            let (level, prefer) = (request.level()?, Prefer::of(request.headers));
            Ok(TableOperation::Tables(OnTables::Create { level, prefer }))
        }
        (PathResource::Table(table), "GET") => {
            Ok(TableOperation::Tables(OnTables::Get { table, level: request.level()? }))
        }
        (PathResource::Table(table), "DELETE") => {
            Ok(TableOperation::Tables(OnTables::Delete { table }))
        }
        (PathResource::TablesIn(table), "POST") => {
            let rule = "required: an entity, since the address is that of a table";
            let rejected = Fault::violation(Reason::PropertiesNeedValue, "body", rule);
            Ok(TableOperation::Tables(OnTables::Misplaced { table, rejected }))
        }
        (PathResource::TableIn(table), "DELETE") => {
            let rejected = path::keys_do_not_match();
            Ok(TableOperation::Tables(OnTables::Misplaced { table, rejected }))
        }
        (PathResource::TableIn(_), _) => Err(path::keys_do_not_match()),
        (PathResource::TablesIn(_), "GET" | "DELETE") => {
            Err(Fault::violation(Reason::ResourceNotFound, "path", "nothing is below a table"))
        }
        (PathResource::Entities(table), _) if request.params.is("comp", "acl") => {
            request.on_policies(table, method)
        }
        (PathResource::Entities(table) | PathResource::Entity(table, _), "GET")
            if is_metrics(&table) =>
        {
            Err(Fault::violation(
                Reason::ResourceNotFound,
                "path",
                "metrics tables are not supported",
            ))
        }
        (PathResource::Entities(table), "GET") => request.query(table),
        (PathResource::Entities(table), "POST") => {
            request.check_format()?;
            let verb =
                Verb::Insert { level: request.level()?, prefer: Prefer::of(request.headers) };
            Ok(TableOperation::Change(EntityChange { table, verb }))
        }
        (PathResource::Entity(table, key), "GET") => {
            let (options, level) = (Options::read(request.params)?, request.level()?);
            Ok(TableOperation::Get(Get { table, key, options, level }))
        }
        (PathResource::Entity(table, key), _) => request.change(table, key, method),
        _ => Err(unsupported(method)),
    }
}

fn is_metrics(table: &str) -> bool {
    table.get(..METRICS.len()).is_some_and(|start| start.eq_ignore_ascii_case(METRICS))
}

fn unsupported(method: &str) -> Fault {
    let message = format!("the resource does not support this verb: method=`{}`", quoted(method));
    Fault::new(Reason::UnsupportedHttpVerb, message)
}

impl<'a> RouteRequest<'a> {
    /// Parses the head of a request.
    pub(crate) fn of(head: &'a RequestHead) -> Self {
        let RequestHead { method, account, path, params, headers, .. } = head;
        Self { method: method.as_str(), account: account.as_str(), path, params, headers }
    }

    fn header(&self, name: impl header::AsHeaderName) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The verb, also if it is tunnelled through a POST.
    fn method(&self) -> Result<&'a str, Fault> {
        let mut values = self.headers.get_all(TUNNELLED).iter();
        let Some(value) = values.next() else {
            return Ok(self.method);
        };
        if self.method != "POST" {
            let message = "X-HTTP-Method is only valid on a POST";
            return Err(Fault::new(Reason::XMethodNotUsingPost, message));
        }
        if values.next().is_some() {
            let message = "X-HTTP-Method must not be repeated";
            return Err(Fault::new(Reason::XMethodIncorrectCount, message));
        }
        let value = value.to_str().unwrap_or_default();
        if !["MERGE", "PATCH", "PUT", "DELETE"].contains(&value) {
            let rule = "X-HTTP-Method must be MERGE, PATCH, PUT or DELETE";
            let message = format!("{rule}: value=`{}`", quoted(value));
            return Err(Fault::new(Reason::XMethodIncorrectValue, message));
        }
        Ok(value)
    }

    /// The metadata level of the response.
    fn level(&self) -> Result<Level, Fault> {
        Level::negotiate(self.params.get("$format"), self.headers)
    }

    /// Rejects a body in the discontinued format. A body without a content type is parsed as JSON.
    fn check_format(&self) -> Result<(), Fault> {
        let value = self.header(header::CONTENT_TYPE).unwrap_or_default();
        let kind = value.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case(ATOM) {
            return Ok(());
        }
        let rule = format!("must be application/json: value=`{}`", quoted(value));
        Err(Fault::violation(Reason::AtomFormatNotSupported, "Content-Type", rule))
    }

    fn is_of_stats(&self) -> bool {
        self.params.is("restype", "service") && self.params.is("comp", "stats")
    }

    fn on_service(&self, method: &str) -> Result<TableOperation, Fault> {
        if !self.params.is("restype", "service") {
            let rule = "nothing is at the address of the account itself";
            return Err(Fault::violation(Reason::InvalidUri, "path", rule));
        }
        let comp = self.params.get("comp").unwrap_or_default().to_ascii_lowercase();
        let operation = match (comp.as_str(), method) {
            ("properties", "GET") => OnSettings::GetProperties,
            ("properties", "PUT") => OnSettings::SetProperties,
            ("stats", "GET") => OnSettings::GetStats,
            ("properties" | "stats", _) => return Err(unsupported(method)),
            _ => {
                let rule = format!("must be properties or stats: value=`{}`", quoted(&comp));
                let reason = Reason::InvalidQueryParameterValue;
                return Err(Fault::violation(reason, "comp", rule));
            }
        };
        Ok(TableOperation::Settings(operation))
    }

    fn on_policies(&self, table: String, method: &str) -> Result<TableOperation, Fault> {
        match method {
            "GET" => Ok(TableOperation::Settings(OnSettings::GetPolicies { table })),
            "PUT" => Ok(TableOperation::Settings(OnSettings::SetPolicies { table })),
            _ => Err(unsupported(method)),
        }
    }

    fn list_tables(&self) -> Result<TableOperation, Fault> {
        let options = Options::read(self.params)?;
        let page_token = page_token_of(self.params, "NextTableName")?;
        let level = self.level()?;
        Ok(TableOperation::Tables(OnTables::List { options, page_token, level }))
    }

    fn query(&self, table: String) -> Result<TableOperation, Fault> {
        let options = Options::read(self.params)?;
        let page_token = page_token_of(self.params, "NextPartitionKey")?;
        let names_row = self.params.get("NextRowKey").is_some_and(|token| !token.is_empty());
        if page_token.is_empty() && names_row {
            let rule = "must come with NextPartitionKey";
            let reason = Reason::InvalidQueryParameterValue;
            return Err(Fault::violation(reason, "NextRowKey", rule));
        }
        Ok(TableOperation::Query(Query { table, options, page_token, level: self.level()? }))
    }

    fn change(&self, table: String, key: Key, method: &str) -> Result<TableOperation, Fault> {
        let if_match = self.if_match()?;
        let mode = match method {
            "PUT" => WriteMode::Replace,
            "PATCH" | "MERGE" => WriteMode::Merge,
            "DELETE" => {
                let if_match = if_match.ok_or_else(|| {
                    Fault::violation(Reason::MissingRequiredHeader, "If-Match", "required")
                })?;
                let verb = Verb::Delete { key, if_match };
                return Ok(TableOperation::Change(EntityChange { table, verb }));
            }
            _ => return Err(unsupported(method)),
        };
        self.check_format()?;
        let verb = match if_match {
            Some(if_match) => Verb::Update { key, mode, if_match },
            None => Verb::Upsert { key, mode },
        };
        Ok(TableOperation::Change(EntityChange { table, verb }))
    }

    /// The condition of a change. The service validates the etag.
    fn if_match(&self) -> Result<Option<String>, Fault> {
        if self.headers.contains_key(header::IF_NONE_MATCH) {
            let rule = "is not served for changes of entities";
            return Err(Fault::violation(Reason::InvalidInput, "If-None-Match", rule));
        }
        let mut values = self.headers.get_all(header::IF_MATCH).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let value = value.to_str().ok().filter(|_| values.next().is_none());
        let rule = "must be one etag, or `*`";
        let value = value.ok_or_else(|| Fault::violation(Reason::InvalidInput, "If-Match", rule));
        value.map(|value| Some(value.to_owned()))
    }
}

#[cfg(test)]
mod tests;

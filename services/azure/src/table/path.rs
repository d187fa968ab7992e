//! Addresses of tables and entities: percent-decoded first, then parsed as OData, in which a quote
//! inside a quoted key is doubled.

use percent_encoding::percent_decode_str;
use trestle_model::fault::{Fault, Reason};

/// The key of an entity in an address. The service validates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The partition key.
    pub partition_key: String,
    /// The row key.
    pub row_key: String,
}

/// The resource of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathResource {
    /// The service: `/`.
    Service,
    /// The list of tables: `/Tables`, `/Tables()`.
    Tables,
    /// One table: `/Tables('t1')`.
    Table(String),
    /// The entities of a table: `/t1`, `/t1()`.
    Entities(String),
    /// One entity: `/t1(PartitionKey='p',RowKey='r')`.
    Entity(String, Key),
    /// The target of batches: `/$batch`.
    Batch,
    /// `/t1/$batch`, of clients whose base address has a table.
    BatchIn,
    /// The list of tables, requested in a table: `/t1/Tables`. Clients whose base address has an
    /// extra path segment request it.
    TablesIn(String),
    /// One table, requested in a table: `/t1/Tables('t1')`.
    TableIn(String),
}

/// Parses the path after the account, as it was sent.
///
/// # Errors
/// An address without a resource, or invalid percent-encoded UTF-8.
pub fn parse(path: &str) -> Result<PathResource, Fault> {
    // Clients that join addresses leave one at the end, and more than one at the beginning: Java's joins `/Tables` to
    // an endpoint that ends in a slash. They sign the path as they send it.
    let path = decoded(path.strip_suffix('/').unwrap_or(path))?;
    let path = path.trim_start_matches('/');
    if path.is_empty() {
        return Ok(PathResource::Service);
    }
    let (first, rest) = Segment::take(path)?;
    if rest.is_empty() {
        return first.resource();
    }
    // The first segment has no children.
    let (second, _) = Segment::take(rest.strip_prefix('/').unwrap_or(rest))?;
    // A slash behind the one that separates segments is part of the name.
    if second.name.is_empty() {
        let rule = "a table name has letters and digits only";
        return Err(Fault::violation(Reason::InvalidResourceName, "table", rule));
    }
    if second.is_tables() && second.keys.len() == 1 {
        return Ok(PathResource::TableIn(first.name.to_owned()));
    }
    if !second.keys.is_empty() {
        return Err(keys_do_not_match());
    }
    if second.is_tables() {
        return Ok(PathResource::TablesIn(first.name.to_owned()));
    }
    if second.name == BATCH && !second.has_parentheses {
        return Ok(PathResource::BatchIn);
    }
    Err(Fault::violation(Reason::ResourceNotFound, "path", "nothing is below a table"))
}

/// Percent-decodes; in a path a plus is a plus.
///
/// # Errors
/// A stray percent sign, or invalid UTF-8.
fn decoded(path: &str) -> Result<String, Fault> {
    let rejected = |rule| Fault::violation(Reason::InvalidInput, "path", rule);
    let mut escapes = path.split('%').skip(1);
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    if !escapes.all(|rest| is_hex(rest.as_bytes().first()) && is_hex(rest.as_bytes().get(1))) {
        return Err(rejected("a percent sign must have two hexadecimal digits behind it"));
    }
    let decoded = percent_decode_str(path).decode_utf8();
    Ok(decoded.map_err(|_| rejected("not UTF-8 when percent-decoded"))?.into_owned())
}

/// A name and its keys.
#[derive(Debug)]
struct Segment<'a> {
    name: &'a str,
    /// Whether it has parentheses.
    has_parentheses: bool,
    /// The keys with their names; a single key has none.
    keys: Vec<(&'a str, String)>,
}

/// The segment that names the target of batches.
const BATCH: &str = "$batch";
/// Most keys that are parsed: no resource has more than two.
const KEYS_MAX: usize = 8;

impl<'a> Segment<'a> {
    /// Splits the first segment off a path; the rest begins with a slash or is empty.
    fn take(path: &'a str) -> Result<(Self, &'a str), Fault> {
        let end = path.find(['/', '(']).unwrap_or(path.len());
        let (name, rest) = path.split_at(end);
        let mut segment = Self { name, has_parentheses: false, keys: Vec::new() };
        let Some(rest) = rest.strip_prefix('(') else {
            return Ok((segment, rest));
        };
        segment.has_parentheses = true;
        let rest = segment.take_keys(rest.trim_start_matches(' ')).ok_or_else(malformed)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(malformed());
        }
        Ok((segment, rest))
    }

    /// Parses keys up to the closing parenthesis.
    fn take_keys(&mut self, mut rest: &'a str) -> Option<&'a str> {
        if let Some(rest) = rest.strip_prefix(')') {
            return Some(rest);
        }
        while self.keys.len() < KEYS_MAX {
            let mut name = "";
            if !rest.starts_with('\'') {
                let (before, after) = rest.split_once('=')?;
                name = before.trim_matches(' ');
                rest = after.trim_start_matches(' ');
            }
            let (key, after) = quoted_text(rest)?;
            self.keys.push((name, key));
            rest = after.trim_start_matches(' ');
            if let Some(rest) = rest.strip_prefix(')') {
                return Some(rest);
            }
            rest = rest.strip_prefix(',')?.trim_start_matches(' ');
        }
        None
    }

    fn is_tables(&self) -> bool {
        self.name.eq_ignore_ascii_case("Tables")
    }

    fn resource(mut self) -> Result<PathResource, Fault> {
        let key = |keys: &mut Vec<(&str, String)>, key_name: &str| {
            let at = keys.iter().position(|(name, _)| *name == key_name)?;
            Some(keys.swap_remove(at).1)
        };
        let count = self.keys.len();
        if self.is_tables() {
            let name = key(&mut self.keys, "").or_else(|| key(&mut self.keys, "TableName"));
            return match (name, count) {
                (Some(name), 1) => Ok(PathResource::Table(name)),
                (_, 0) => Ok(PathResource::Tables),
                _ => Err(keys_do_not_match()),
            };
        }
        if self.name == BATCH && !self.has_parentheses {
            return Ok(PathResource::Batch);
        }
        let table = self.name.to_owned();
        if count == 0 {
            return Ok(PathResource::Entities(table));
        }
        let partition_key = key(&mut self.keys, "PartitionKey");
        let row_key = key(&mut self.keys, "RowKey");
        match (partition_key, row_key, count) {
            (Some(partition_key), Some(row_key), 2) => {
                Ok(PathResource::Entity(table, Key { partition_key, row_key }))
            }
            _ => Err(keys_do_not_match()),
        }
    }
}

/// A text in quotes, and the rest.
fn quoted_text(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut out = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        out.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some((out, after)),
        }
    }
}

fn malformed() -> Fault {
    let rule = "keys must have the form (PartitionKey='...',RowKey='...') or ('...')";
    Fault::violation(Reason::InvalidInput, "path", rule)
}

/// The error of keys that are not those of the resource.
pub(super) fn keys_do_not_match() -> Fault {
    let rule = "The number of keys specified in the URI does not match number of key properties \
                for the resource";
    Fault::violation(Reason::InvalidInput, "path", rule)
}

#[cfg(test)]
mod tests;

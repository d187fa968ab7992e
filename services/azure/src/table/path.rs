//! Addresses of tables and entities: percent-decoded first, then parsed as OData, in which a quote
//! inside a quoted key is doubled.

use percent_encoding::percent_decode_str;
use trestle_service::fault::{Fault, Reason};

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
    /// The target of batches: `/$batch`, and `/t1/$batch` of clients whose base address has a table.
    Batch,
    /// The list of tables, requested in a table: `/t1/Tables`. Clients whose base address has an
    /// extra path segment request it.
    TablesIn(String),
}

/// Parses the path after the account, as it was sent.
///
/// # Errors
/// An address without a resource, or invalid percent-encoded UTF-8.
pub fn parse(path: &str) -> Result<PathResource, Fault> {
    // Clients that join addresses leave one at the end.
    let path = decoded(path.strip_suffix('/').unwrap_or(path))?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    if path.is_empty() {
        return Ok(PathResource::Service);
    }
    let (first, rest) = Segment::take(path)?;
    if rest.is_empty() {
        return first.resource();
    }
    // The first segment has no children.
    let (second, _) = Segment::take(rest.strip_prefix('/').unwrap_or(rest))?;
    if !second.keys.is_empty() {
        return Err(keys_do_not_match());
    }
    if second.is_tables() {
        return Ok(PathResource::TablesIn(first.name.to_owned()));
    }
    if second.name == BATCH && !second.has_parentheses {
        return Ok(PathResource::Batch);
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

fn keys_do_not_match() -> Fault {
    let rule = "The number of keys specified in the URI does not match number of key properties \
                for the resource";
    Fault::violation(Reason::InvalidInput, "path", rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> PathResource {
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        PathResource::Entity(table.to_owned(), Key { partition_key, row_key })
    }

    #[test]
    fn every_resource_is_parsed_from_each_of_its_spellings() {
        let entities = PathResource::Entities("t1".to_owned());
        for (path, resource) in [
            ("/", PathResource::Service),
            ("", PathResource::Service),
            ("/Tables", PathResource::Tables),
            ("/Tables()", PathResource::Tables),
            ("/tables", PathResource::Tables),
            ("/Tables('t1')", PathResource::Table("t1".to_owned())),
            ("/Tables(%27t1%27)", PathResource::Table("t1".to_owned())),
            ("/Tables(TableName='t1')", PathResource::Table("t1".to_owned())),
            ("/t1", entities.clone()),
            ("/t1()", entities.clone()),
            ("/$batch", PathResource::Batch),
            ("/$batch/", PathResource::Batch),
            ("/t1/$batch", PathResource::Batch),
            ("/t1/", entities.clone()),
            ("/t1()/", entities),
            ("/Tables('t1')/", PathResource::Table("t1".to_owned())),
            ("/t1(PartitionKey='p',RowKey='r')/", entity("t1", "p", "r")),
            ("/%24batch", PathResource::Batch),
            ("/t1(PartitionKey='p',RowKey='r')", entity("t1", "p", "r")),
            ("/t1(RowKey='r',PartitionKey='p')", entity("t1", "p", "r")),
            ("/t1(PartitionKey='p', RowKey='r')", entity("t1", "p", "r")),
            ("/t1( PartitionKey = 'p' , RowKey = 'r' )", entity("t1", "p", "r")),
            ("/t1(PartitionKey=%27p%27,RowKey=%27r%27)", entity("t1", "p", "r")),
            ("/t1(PartitionKey='',RowKey='')", entity("t1", "", "")),
            ("/t1/Tables", PathResource::TablesIn("t1".to_owned())),
        ] {
            assert_eq!(parse(path), Ok(resource), "{path}");
        }
    }

    #[test]
    fn keys_may_contain_the_delimiters_of_addresses() {
        for (path, partition_key, row_key) in [
            ("/t(PartitionKey='a''b',RowKey='''')", "a'b", "'"),
            ("/t(PartitionKey='a%27%27b',RowKey='%27%27')", "a'b", "'"),
            ("/t(PartitionKey='a%20b',RowKey='a+b')", "a b", "a+b"),
            ("/t(PartitionKey='a,b',RowKey=')')", "a,b", ")"),
            ("/t(PartitionKey='RowKey=''x''',RowKey='100%25')", "RowKey='x'", "100%"),
            ("/t(PartitionKey='%252e',RowKey='%2e%2e%2f')", "%2e", "../"),
            ("/t(PartitionKey='%F0%9F%98%80',RowKey='é')", "😀", "é"),
            ("/t(PartitionKey='%00',RowKey='r')", "\0", "r"),
        ] {
            assert_eq!(parse(path), Ok(entity("t", partition_key, row_key)), "{path}");
        }
    }

    #[test]
    fn rejects_addresses_without_a_resource() {
        for path in [
            "/t1(",
            "/t1('p'",
            "/t1(PartitionKey='p',RowKey='r'",
            "/t1(PartitionKey='p',RowKey='r')x",
            "/t1(PartitionKey='p,RowKey='r')",
            "/t1(PartitionKey=p,RowKey=r)",
            "/t1(PartitionKey='p')",
            "/t1(PartitionKey='p',RowKey='r',Other='x')",
            "/t1(PartitionKey='p',PartitionKey='r')",
            "/t1('p','r')",
            "/Tables('a','b')",
            "/Tables(Name='a')",
            "/t1/Tables('x')",
            "/t1%",
            "/t1%4",
            "/t1%zz",
            "/t1%FF",
        ] {
            let fault = parse(path).expect_err(path);
            assert_eq!(fault.reason, Reason::InvalidInput, "{path}");
        }
        let fault = parse("/t1/Tables('x')").expect_err("keys of the wrong resource");
        assert!(fault.message.contains("The number of keys specified in the URI does not match"));
        for path in ["/t1/other", "/t1//", "//t1"] {
            let fault = parse(path).expect_err("not a resource");
            assert_eq!(fault.reason, Reason::ResourceNotFound, "{path}");
        }
    }

    #[test]
    fn a_path_traversal_names_a_table_that_cannot_exist() {
        for (path, table) in [("/..", ".."), ("/%2e%2e", ".."), ("/%252e", "%2e"), ("/%00", "\0")] {
            assert_eq!(parse(path), Ok(PathResource::Entities(table.to_owned())), "{path}");
        }
        assert!(parse("/../Tables('x')").is_err());
        assert!(parse("/..%2f..%2fetc").is_err());
    }
}

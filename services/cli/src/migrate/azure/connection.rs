//! Connection strings, as Azure gives them out and its emulators take them.

use std::fmt;

use http::Uri;
use trestle_identity::account::{AccountKey, DEVELOPMENT_KEY};

const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
const DEVELOPMENT_HOST: &str = "http://127.0.0.1";
const DEFAULT_SUFFIX: &str = "core.windows.net";
/// Names that are known, lower case; those for other services are passed over.
const KNOWN: [&str; 17] = [
    "accountkey",
    "accountname",
    "blobendpoint",
    "blobsecondaryendpoint",
    "defaultendpointsprotocol",
    "developmentstorageproxyuri",
    "dfsendpoint",
    "dfssecondaryendpoint",
    "endpointsuffix",
    "fileendpoint",
    "filesecondaryendpoint",
    "queueendpoint",
    "queuesecondaryendpoint",
    "sharedaccesssignature",
    "tableendpoint",
    "tablesecondaryendpoint",
    "usedevelopmentstorage",
];

/// Where an account is, and how requests to it are allowed.
#[derive(Clone)]
pub(super) struct Connection {
    /// Its name.
    pub(super) account: String,
    pub(super) authority: Authority,
    /// Base address of its tables, without `/` at the end; none where it is not told.
    pub(super) tables: Option<String>,
    /// The same of its queues.
    pub(super) queues: Option<String>,
}

/// What allows a request.
#[derive(Clone)]
pub(super) enum Authority {
    /// A key of the account.
    Key(Box<AccountKey>),
    /// A shared access signature, as a query without `?`.
    Signature(String),
}

/// Tells where, never with what.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({}, {:?}, {:?})", self.account, self.tables, self.queues)
    }
}

/// The fields of a connection string.
struct Fields<'a>(Vec<(String, &'a str)>);

impl<'a> Fields<'a> {
    /// Names in lower case with their values.
    fn read(text: &'a str) -> Result<Self, String> {
        let mut fields: Vec<(String, &str)> = Vec::new();
        for (at, part) in text.split(';').map(str::trim).enumerate() {
            if part.is_empty() {
                continue;
            }
            // Never shown: it may be a key.
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("part {} is not NAME=VALUE", at.saturating_add(1)))?;
            let name = name.trim().to_ascii_lowercase();
            if !KNOWN.contains(&name.as_str()) {
                let part = at.saturating_add(1);
                return Err(format!("the name of part {part} is not known: {}", KNOWN.join(", ")));
            }
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(format!("`{name}` occurs twice"));
            }
            fields.push((name, value.trim()));
        }
        Ok(Self(fields))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}

impl Connection {
    /// Reads a connection string.
    ///
    /// # Errors
    /// The rule that it breaks; never with a value that may be secret.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields = Fields::read(text)?;
        match fields.get("usedevelopmentstorage") {
            Some(value) if value.eq_ignore_ascii_case("true") => return development(&fields),
            Some(_) => return Err("`UseDevelopmentStorage` must be true".to_owned()),
            None => {}
        }
        let account = fields.get("accountname");
        let authority = match (fields.get("accountkey"), fields.get("sharedaccesssignature")) {
            (Some(_), Some(_)) => {
                return Err("has both `AccountKey` and `SharedAccessSignature`".to_owned());
            }
            (Some(_), None) if account.is_none() => {
                return Err("`AccountName` is required with `AccountKey`".to_owned());
            }
            (Some(key), None) => Authority::Key(Box::new(
                AccountKey::decode(key).map_err(|error| format!("`AccountKey` {error}"))?,
            )),
            (None, Some(signature)) => Authority::Signature(self::signature(signature)?),
            (None, None) => {
                return Err("needs `AccountKey` or `SharedAccessSignature`".to_owned());
            }
        };
        let tables = endpoint(&fields, "TableEndpoint", "table")?;
        let queues = endpoint(&fields, "QueueEndpoint", "queue")?;
        if tables.is_none() && queues.is_none() {
            return Err("needs `AccountName`, or `TableEndpoint` or `QueueEndpoint`".to_owned());
        }
        let host = || tables.as_ref().or(queues.as_ref()).map(String::as_str).map(account_of);
        let account = account.map(str::to_owned).or_else(host).unwrap_or_default();
        Ok(Self { account, authority, tables, queues })
    }
}

/// The name that the address of an account begins with, for people.
fn account_of(base: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    host.split(['.', ':', '/']).next().unwrap_or_default().to_owned()
}

fn development(fields: &Fields<'_>) -> Result<Connection, String> {
    let allowed = ["usedevelopmentstorage", "developmentstorageproxyuri"];
    if let Some((name, _)) = fields.0.iter().find(|(name, _)| !allowed.contains(&name.as_str())) {
        return Err(format!("`{name}` does not go with `UseDevelopmentStorage`"));
    }
    let host = match fields.get("developmentstorageproxyuri") {
        Some(uri) => base(uri, "DevelopmentStorageProxyUri")?,
        None => DEVELOPMENT_HOST.to_owned(),
    };
    let at = |port: u16| Some(format!("{host}:{port}/{DEVELOPMENT_ACCOUNT}"));
    let key = AccountKey::decode(DEVELOPMENT_KEY).map_err(|error| error.to_string())?;
    Ok(Connection {
        account: DEVELOPMENT_ACCOUNT.to_owned(),
        authority: Authority::Key(Box::new(key)),
        tables: at(10002),
        queues: at(10001),
    })
}

fn signature(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('?').unwrap_or(text);
    let is_query = text.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    if !is_query || !text.split('&').any(|field| field.starts_with("sig=")) {
        return Err("`SharedAccessSignature` must be a query such as sv=…&sig=…".to_owned());
    }
    Ok(text.to_owned())
}

/// The address of a service: as it is told, or made from the name of the account.
fn endpoint(fields: &Fields<'_>, name: &str, service: &str) -> Result<Option<String>, String> {
    if let Some(uri) = fields.get(&name.to_ascii_lowercase()) {
        return base(uri, name).map(Some);
    }
    let Some(account) = fields.get("accountname") else { return Ok(None) };
    // Where one address is told and the other is not, the other may not be there.
    if fields.get("tableendpoint").or(fields.get("queueendpoint")).is_some() {
        return Ok(None);
    }
    let protocol = fields.get("defaultendpointsprotocol").unwrap_or("https");
    if !["http", "https"].contains(&protocol) {
        return Err("`DefaultEndpointsProtocol` must be http or https".to_owned());
    }
    let suffix = fields.get("endpointsuffix").unwrap_or(DEFAULT_SUFFIX);
    base(&format!("{protocol}://{account}.{service}.{suffix}"), "EndpointSuffix").map(Some)
}

/// An address without `/` at its end.
fn base(text: &str, name: &str) -> Result<String, String> {
    let rule = || format!("`{name}` must make an address such as http://127.0.0.1:10002/account");
    let uri: Uri = text.parse().map_err(|_| rule())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().ok_or_else(rule)?;
    // A query may hold a signature, and before `@` there may be a password.
    if !is_http || uri.query().is_some() || authority.as_str().contains('@') {
        return Err(rule());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    const KEY: &str = DEVELOPMENT_KEY;

    fn bases(text: &str) -> (Option<String>, Option<String>) {
        let connection = Connection::parse(text).unwrap();
        (connection.tables, connection.queues)
    }

    #[test]
    fn addresses_are_told_or_made_from_the_account() {
        let some = |text: &str| Some(text.to_owned());
        let local = "http://127.0.0.1";
        for (text, tables, queues) in [
            (
                format!("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={KEY}"),
                some("https://acme.table.core.windows.net"),
                some("https://acme.queue.core.windows.net"),
            ),
            (
                format!("accountname=acme; ACCOUNTKEY={KEY};EndpointSuffix=core.chinacloudapi.cn;"),
                some("https://acme.table.core.chinacloudapi.cn"),
                some("https://acme.queue.core.chinacloudapi.cn"),
            ),
            (
                "UseDevelopmentStorage=true".to_owned(),
                some("http://127.0.0.1:10002/devstoreaccount1"),
                some("http://127.0.0.1:10001/devstoreaccount1"),
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite".to_owned(),
                some("http://azurite:10002/devstoreaccount1"),
                some("http://azurite:10001/devstoreaccount1"),
            ),
            (
                format!("AccountName=a;AccountKey={KEY};TableEndpoint={local}:1/a/;BlobEndpoint=x"),
                some("http://127.0.0.1:1/a"),
                None,
            ),
            (
                format!("SharedAccessSignature=?sv=1&sig=2%3D;QueueEndpoint={local}:1/a"),
                None,
                some("http://127.0.0.1:1/a"),
            ),
        ] {
            assert_eq!(bases(&text), (tables, queues), "{text}");
        }
    }

    #[test]
    fn strings_that_make_no_sense_name_the_rule_and_no_secret() {
        let signed = "SharedAccessSignature=sv=1&sig=hunter2";
        for (text, rule) in [
            (String::new(), "needs `AccountKey`"),
            ("hunter2".to_owned(), "part 1 is not NAME=VALUE"),
            (format!("AccountName=a;hunter2={KEY}"), "part 2 is not known"),
            ("AccountName=a".to_owned(), "needs `AccountKey`"),
            (format!("AccountKey={KEY}"), "`AccountName` is required"),
            ("AccountName=a;AccountKey=hunter2".to_owned(), "`AccountKey` must be base64"),
            (format!("AccountName=a;AccountKey={KEY};{signed}"), "has both"),
            (signed.to_owned(), "needs `AccountName`"),
            ("AccountName=a;SharedAccessSignature=hunter2".to_owned(), "must be a query"),
            (format!("AccountName=a;AccountName=b;AccountKey={KEY}"), "occurs twice"),
            ("UseDevelopmentStorage=false".to_owned(), "must be true"),
            (format!("UseDevelopmentStorage=true;AccountKey={KEY}"), "does not go with"),
            (format!("AccountName=a b;AccountKey={KEY}"), "must make an address"),
            (format!("{signed};TableEndpoint=http://a/?sig=hunter2"), "must make an address"),
            (format!("{signed};TableEndpoint=http://hunter2@a/"), "must make an address"),
            (format!("{signed};TableEndpoint=ftp://a/"), "must make an address"),
            (
                format!("DefaultEndpointsProtocol=ftp;AccountName=a;AccountKey={KEY}"),
                "must be http or https",
            ),
        ] {
            let error = Connection::parse(&text).unwrap_err();
            assert!(error.contains(rule), "{text}: {error}");
            assert!(!error.contains("hunter2") && !error.contains(KEY), "{error}");
        }
        let parsed = Connection::parse(&format!("AccountName=a;{signed}")).unwrap();
        assert!(!format!("{parsed:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
            let _ = Connection::parse(&text);
        }

        #[test]
        fn any_fields_are_read_or_refused(
            fields in proptest::collection::vec((0..KNOWN.len(), "[ -~]{0,40}"), 0..8)
        ) {
            let field = |(at, value): &(usize, String)| format!("{}={value}", KNOWN[*at]);
            let text = fields.iter().map(field).collect::<Vec<_>>().join(";");
            let _ = Connection::parse(&text);
        }
    }
}

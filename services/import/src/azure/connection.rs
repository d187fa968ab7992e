//! Connection strings, in the format of Azure and its emulators.

use std::{collections::BTreeMap, fmt};

use http::Uri;
use trestle_identity::account::{AccountKey, DEVELOPMENT_KEY};

const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
const DEVELOPMENT_HOST: &str = "http://127.0.0.1";
/// Valid names, lower case; those for other services are ignored.
const NAMES: &str = "accountkey accountname blobendpoint blobsecondaryendpoint \
    defaultendpointsprotocol developmentstorageproxyuri dfsendpoint dfssecondaryendpoint \
    endpointsuffix fileendpoint filesecondaryendpoint queueendpoint queuesecondaryendpoint \
    sharedaccesssignature tableendpoint tablesecondaryendpoint usedevelopmentstorage";

/// The addresses of an account, and the credentials for it.
#[derive(Clone)]
pub(super) struct AzureConnection {
    /// Its name.
    pub(super) account: String,
    pub(super) authority: AzureAuthority,
    /// Base address of its tables, without `/` at the end; none if it is unknown.
    pub(super) tables: Option<String>,
    /// The same of its queues.
    pub(super) queues: Option<String>,
    /// The same of its blobs.
    pub(super) blobs: Option<String>,
}

/// The credentials of a request.
#[derive(Clone)]
pub(super) enum AzureAuthority {
    /// A key of the account.
    Key(Box<AccountKey>),
    /// A shared access signature, as a query without `?`.
    Signature(String),
}

/// Shows the addresses, never a secret.
impl fmt::Debug for AzureConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, tables, queues, blobs, .. } = self;
        write!(f, "AzureConnection({account}, {tables:?}, {queues:?}, {blobs:?})")
    }
}

/// The fields of a connection string: names in lower case with their values.
struct ConnectionFields<'a>(BTreeMap<String, &'a str>);

impl<'a> ConnectionFields<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let mut fields = BTreeMap::new();
        for (at, part) in (1..).zip(text.split(';')).filter(|(_, part)| !part.trim().is_empty()) {
            // Never printed: it may be a key.
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("part {at} is not NAME=VALUE"))?;
            let name = name.trim().to_ascii_lowercase();
            if !NAMES.split(' ').any(|known| known == name) {
                let names = NAMES.replace(' ', ", ");
                return Err(format!("the name of part {at} is unknown: {names}"));
            }
            if fields.insert(name.clone(), value.trim()).is_some() {
                return Err(format!("`{name}` occurs twice"));
            }
        }
        fields.retain(|_, value| !value.is_empty());
        Ok(Self(fields))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(&name.to_ascii_lowercase()).copied()
    }
}

impl AzureConnection {
    /// Reads a connection string.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields = ConnectionFields::read(text)?;
        match fields.get("usedevelopmentstorage") {
            Some(value) if value.eq_ignore_ascii_case("true") => return development(&fields),
            Some(_) => return Err("`UseDevelopmentStorage` must be true".to_owned()),
            None => {}
        }
        let account = fields.get("accountname");
        let authority = match (fields.get("accountkey"), fields.get("sharedaccesssignature")) {
            (Some(_), Some(_)) => {
                Err("has both `AccountKey` and `SharedAccessSignature`".to_owned())
            }
            (Some(_), None) if account.is_none() => {
                Err("`AccountName` is required with `AccountKey`".to_owned())
            }
            (Some(key), None) => AccountKey::decode(key)
                .map(|key| AzureAuthority::Key(Box::new(key)))
                .map_err(|error| format!("`AccountKey` {error}")),
            (None, Some(signature)) => self::signature(signature).map(AzureAuthority::Signature),
            (None, None) => Err("needs `AccountKey` or `SharedAccessSignature`".to_owned()),
        }?;
        let tables = endpoint(&fields, "TableEndpoint", "table")?;
        let queues = endpoint(&fields, "QueueEndpoint", "queue")?;
        let blobs = endpoint(&fields, "BlobEndpoint", "blob")?;
        let Some(first) = tables.as_ref().or(queues.as_ref()).or(blobs.as_ref()) else {
            let rule = "needs `AccountName`, or `TableEndpoint`, `QueueEndpoint` or `BlobEndpoint`";
            return Err(rule.to_owned());
        };
        let host = account_of(first);
        let account = account.map_or(host, str::to_owned);
        Ok(Self { account, authority, tables, queues, blobs })
    }
}

/// The account name in an address, for people.
fn account_of(base: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    host.split(['.', ':', '/']).next().unwrap_or_default().to_owned()
}

fn development(fields: &ConnectionFields<'_>) -> Result<AzureConnection, String> {
    let allowed = ["usedevelopmentstorage", "developmentstorageproxyuri"];
    if let Some(name) = fields.0.keys().find(|name| !allowed.contains(&name.as_str())) {
        return Err(format!("`{name}` does not go with `UseDevelopmentStorage`"));
    }
    let host = match fields.get("developmentstorageproxyuri") {
        Some(uri) => base(uri, "DevelopmentStorageProxyUri")?,
        None => DEVELOPMENT_HOST.to_owned(),
    };
    let at = |port: u16| Some(format!("{host}:{port}/{DEVELOPMENT_ACCOUNT}"));
    let key = AccountKey::decode(DEVELOPMENT_KEY).map_err(|error| error.to_string())?;
    Ok(AzureConnection {
        account: DEVELOPMENT_ACCOUNT.to_owned(),
        authority: AzureAuthority::Key(Box::new(key)),
        tables: at(10002),
        queues: at(10001),
        blobs: at(10000),
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

/// The address of a service: the explicit one, or derived from the name of the account.
fn endpoint(
    fields: &ConnectionFields<'_>,
    name: &str,
    service: &str,
) -> Result<Option<String>, String> {
    if let Some(uri) = fields.get(name) {
        return base(uri, name).map(Some);
    }
    let Some(account) = fields.get("accountname") else { return Ok(None) };
    // Where only some addresses are given, the other services may not exist.
    if ["tableendpoint", "queueendpoint", "blobendpoint"].iter().any(|it| fields.get(it).is_some())
    {
        return Ok(None);
    }
    let protocol = fields.get("defaultendpointsprotocol").unwrap_or("https");
    if !["http", "https"].contains(&protocol) {
        return Err("`DefaultEndpointsProtocol` must be http or https".to_owned());
    }
    let suffix = fields.get("endpointsuffix").unwrap_or("core.windows.net");
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
mod tests;

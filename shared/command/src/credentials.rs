//! The credentials of a command: their sources, and how a call carries them. They are never
//! printed.

use std::{fmt, path::PathBuf, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use serde::{Deserialize, Serialize};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::Interceptor,
};
use trestle_identity::{
    account::{AccountKey, DEVELOPMENT_KEY},
    caller::{ACCOUNT_HEADER, BLOB_HEADER, QUEUE_HEADER},
};
use trestle_model::name::AccountName;
use trestle_rpc::small_file;

use crate::{errors::CliError, files};

/// The identity of the command. Without credentials a server on this machine authenticates calls as
/// its development account.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default)]
#[command(next_help_heading = "Credentials")]
pub struct CredentialArgs {
    /// The account; devstoreaccount1 needs no key
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_ACCOUNT", value_name = "NAME")]
    pub account: Option<String>,
    /// File with a key of the account, in base64
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_ACCOUNT_KEY_FILE", value_name = "FILE")]
    pub account_key_file: Option<PathBuf>,
    /// A key of the account; for the variable, since others can see a command line
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(
        long,
        global = true,
        env = "TRESTLE_ACCOUNT_KEY",
        hide_env_values = true,
        hide_short_help = true,
        value_name = "KEY"
    )]
    pub account_key: Option<SecretText>,
    /// File with a shared access signature
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_SAS_FILE", value_name = "FILE")]
    pub sas_file: Option<PathBuf>,
    /// A shared access signature
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_SAS", hide_env_values = true, value_name = "TOKEN")]
    pub sas: Option<SecretText>,
    /// AccountName=…;AccountKey=… or AccountName=…;SharedAccessSignature=…, in the format of Azure; where it names
    /// endpoints, which are of REST, --endpoint is required
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(
        long,
        global = true,
        env = "TRESTLE_CONNECTION_STRING",
        hide_env_values = true,
        hide_short_help = true,
        value_name = "TEXT"
    )]
    pub connection_string: Option<SecretText>,
    /// What the names of these flags begin with after `--`, for errors.
    #[serde(skip)]
    #[arg(skip)]
    pub prefix: &'static str,
}

/// A text that is never printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl FromStr for SecretText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().to_owned()))
    }
}

impl SecretText {
    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}

/// All credential arguments of a command.
#[derive(Debug, Default)]
struct Given {
    account: Option<String>,
    /// The argument with the account.
    account_from: String,
    /// Of the names of the flags.
    prefix: &'static str,
    key: Option<GivenSecret>,
    sas: Option<GivenSecret>,
}

/// A secret with its source, such as `--sas-file: file=…`, which its errors name.
#[derive(Debug)]
struct GivenSecret {
    text: SecretText,
    from: String,
}

impl CredentialArgs {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        let texts = [&self.account_key, &self.sas, &self.connection_string];
        let files = [&self.account_key_file, &self.sas_file];
        self.account.is_some()
            || texts.into_iter().any(Option::is_some)
            || files.into_iter().any(Option::is_some)
    }

    /// The same in every working directory.
    pub(crate) fn absolute(mut self) -> Result<Self, CliError> {
        files::make_absolute(&mut self.account_key_file)?;
        files::make_absolute(&mut self.sas_file)?;
        Ok(self)
    }

    /// The name of the account, to show it.
    pub(crate) fn account_name(&self) -> Option<String> {
        let text = self.connection_string.as_ref();
        let development = || AccountName::development().as_str().to_owned();
        let named = self.account.clone().or_else(|| field(&text?.0, "AccountName"));
        named.or_else(|| uses_development(text?).then(development))
    }

    /// The account that calls are from; none where a signature names none.
    pub(crate) fn called_account(&self) -> Option<String> {
        let text = self.connection_string.as_ref();
        let is_signed = self.sas.is_some()
            || self.sas_file.is_some()
            || text.is_some_and(|text| field(&text.0, "SharedAccessSignature").is_some());
        let development = || AccountName::development().as_str().to_owned();
        self.account_name().or_else(|| (!is_signed).then(development))
    }

    /// Who the calls are from, without secrets.
    pub(crate) fn identity(&self) -> String {
        let text = self.connection_string.as_ref();
        let has_field = |name: &str| text.is_some_and(|text| field(&text.0, name).is_some());
        let has_sas =
            self.sas.is_some() || self.sas_file.is_some() || has_field("SharedAccessSignature");
        match (self.account_name(), has_sas) {
            (Some(name), true) => format!("account=`{name}`, with a signature"),
            (Some(name), false) => format!("account=`{name}`"),
            (None, true) => "with a signature".to_owned(),
            (None, false) => "without credentials".to_owned(),
        }
    }

    /// Rejects a connection string that names a server: its endpoints are of REST, and calls would go to another one.
    pub(crate) fn reject_endpoints(&self) -> Result<(), CliError> {
        let Some(text) = &self.connection_string else { return Ok(()) };
        let mut fields = text.0.split(';').filter_map(|field| field.split_once('='));
        match fields.find(|(name, value)| names_server(name.trim(), value.trim())) {
            Some((name, _)) => Err(usage(&format!(
                "--connection-string: {} is for the protocol of Azure Storage, commands call gRPC: \
                 give the address of gRPC with --endpoint",
                name.trim()
            ))),
            None => Ok(()),
        }
    }

    /// Rejects credentials with which every call would fail: files that cannot be read, a key that is not base64, a
    /// signature without `sig`.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let given = self.given()?;
        given.sas.as_ref().map(GivenSecret::check_signed).transpose()?;
        given.key.as_ref().map(GivenSecret::decoded).transpose()?;
        let has_key = self.account_key.is_some() || self.account_key_file.is_some();
        let is_complete = has_key && self.account.is_some();
        let has_credentials = is_complete || self.connection_string.is_some();
        if has_credentials { self.credentials().map(drop) } else { Ok(()) }
    }

    /// The account and a key of it, if they are given.
    ///
    /// # Errors
    /// A file that cannot be read, a malformed name, key or connection string, a key without an account.
    pub fn account(&self) -> Result<Option<(AccountName, Option<AccountKey>)>, CliError> {
        let given = self.given()?;
        let Some(name) = given.account()? else {
            return match given.key {
                Some(_) => Err(given.without_account()),
                None => Ok(None),
            };
        };
        let key = given.key.as_ref().map(GivenSecret::decoded).transpose()?;
        Ok(Some((name, key)))
    }

    /// The credentials of a call.
    pub(crate) fn credentials(&self) -> Result<CallCredentials, CliError> {
        let given = self.given()?;
        let account = given.account()?;
        let value = match (&account, &given.key, &given.sas) {
            (_, Some(_), Some(_)) => return Err(usage("give a key or a signature, not both")),
            (Some(account), Some(key), None) => {
                key.decoded()?;
                Some(format!("Basic {}", STANDARD.encode(format!("{account}:{}", key.text.0))))
            }
            (None, Some(_), None) => return Err(given.without_account()),
            (_, None, Some(sas)) => {
                sas.check_signed()?;
                Some(format!("SharedAccessSignature {}", sas.text.0))
            }
            (Some(_), None, None) => {
                let Given { account_from, prefix, .. } = given;
                let sas = if prefix.is_empty() { "sas" } else { "sas-file" };
                return Err(usage(&format!(
                    "{account_from}: needs a key or a signature too: --{prefix}account-key-file, --{prefix}{sas}"
                )));
            }
            (None, None, None) => None,
        };
        let header = |text: &str| {
            text.parse::<MetadataValue<Ascii>>()
                .map_err(|_| usage("credentials must be visible ASCII on one line"))
        };
        let mut authorization = value.as_deref().map(header).transpose()?;
        if let Some(authorization) = &mut authorization {
            authorization.set_sensitive(true);
        }
        let account = account.map(|account| header(account.as_str())).transpose()?;
        let has_secret_key = given.key.is_some_and(|key| key.text.0 != DEVELOPMENT_KEY);
        Ok(CallCredentials { authorization, account, has_secret_key, resource: None })
    }

    fn given(&self) -> Result<Given, CliError> {
        let prefix = self.prefix;
        let flag = |name: &str| format!("--{prefix}{name}");
        let (key, key_file) = (self.account_key.as_ref(), self.account_key_file.as_ref());
        let mut given = Given {
            account: self.account.clone(),
            account_from: flag("account"),
            prefix,
            key: from_either(&flag("account-key"), key, key_file)?,
            sas: from_either(&flag("sas"), self.sas.as_ref(), self.sas_file.as_ref())?,
        };
        if let Some(text) = &self.connection_string {
            let field = |key: &str| field(&text.0, key);
            if given.account.is_none() {
                given.account = field("AccountName");
                given.account_from = "--connection-string: AccountName".to_owned();
            }
            let secret = |name: &str| {
                let from = format!("--connection-string: {name}");
                Some(GivenSecret { text: SecretText(field(name)?), from })
            };
            given.key = given.key.or_else(|| secret("AccountKey"));
            given.sas = given.sas.or_else(|| secret("SharedAccessSignature"));
            if !text.0.contains('=') {
                return Err(usage("--connection-string: must be name=value, separated by ;"));
            }
        }
        let development = AccountName::development();
        if self.connection_string.as_ref().is_some_and(uses_development) {
            given.account.get_or_insert_with(|| development.as_str().to_owned());
        }
        if given.account.as_deref() == Some(development.as_str())
            && given.key.is_none()
            && given.sas.is_none()
        {
            let text = SecretText(DEVELOPMENT_KEY.to_owned());
            given.key = Some(GivenSecret { text, from: flag("account") });
        }
        Ok(given)
    }
}

impl Given {
    /// The error of a key without its account.
    fn without_account(&self) -> CliError {
        usage(&format!("{}: required with a key", self.account_from))
    }

    fn account(&self) -> Result<Option<AccountName>, CliError> {
        let parse = |name: &String| {
            let (from, rule) =
                (&self.account_from, "must be 3 to 24 lower-case letters and digits");
            let rejected = || usage(&format!("{from}: {rule}: value=`{name}`"));
            AccountName::parse(name).ok_or_else(rejected)
        };
        self.account.as_ref().map(parse).transpose()
    }
}

impl GivenSecret {
    /// The key that it is.
    fn decoded(&self) -> Result<AccountKey, CliError> {
        AccountKey::decode(&self.text.0)
            .map_err(|error| usage(&format!("{}: key of the account: {error}", self.from)))
    }

    /// Rejects what is not a signature: the server would count it as an attempt with wrong credentials.
    fn check_signed(&self) -> Result<(), CliError> {
        let (text, from) = (&self.text.0, &self.from);
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(usage(&format!(
                "{from}: must be a signature in visible ASCII on one line"
            )));
        }
        match text.trim_start_matches('?').split('&').any(is_sig) {
            true => Ok(()),
            false => Err(usage(&format!("{from}: must be a signature with the fields sv and sig"))),
        }
    }
}

/// Whether a field of a signature is the signature itself.
fn is_sig(field: &str) -> bool {
    field.strip_prefix("sig=").is_some_and(|value| !value.is_empty())
}

/// Whether a field of a connection string names a server, or requires one with TLS.
fn names_server(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "endpointsuffix" | "developmentstorageproxyuri" => true,
        "defaultendpointsprotocol" => value.eq_ignore_ascii_case("https"),
        _ => name.ends_with("endpoint"),
    }
}

/// Whether a connection string is that of the development account.
fn uses_development(text: &SecretText) -> bool {
    let uses = field(&text.0, "UseDevelopmentStorage");
    uses.is_some_and(|uses| uses.eq_ignore_ascii_case("true"))
}

/// The value of a field of a connection string.
fn field(text: &str, key: &str) -> Option<String> {
    let mut fields = text.split(';').filter_map(|field| field.split_once('='));
    let found = fields.find(|(name, _)| name.trim().eq_ignore_ascii_case(key));
    found.map(|(_, value)| value.trim().to_owned())
}

fn usage(text: &str) -> CliError {
    CliError::Usage(text.to_owned())
}

/// A secret of an argument, or of a file, which the argument with the suffix `-file` names.
fn from_either(
    flag: &str,
    text: Option<&SecretText>,
    file: Option<&PathBuf>,
) -> Result<Option<GivenSecret>, CliError> {
    match (text, file) {
        (Some(_), Some(_)) => {
            Err(usage(&format!("give the secret in one place: {flag} or {flag}-file")))
        }
        (Some(text), None) => Ok(Some(GivenSecret { text: text.clone(), from: flag.to_owned() })),
        (None, Some(file)) => {
            let from = format!("{flag}-file: file=`{}`", file.display());
            let bytes = small_file::read(file)
                .map_err(CliError::input(format!("{from}: cannot be read")))?;
            let text = String::from_utf8(bytes)
                .map_err(|_| usage(&format!("{from}: must be text in UTF-8")))?;
            let text = SecretText(files::without_mark(&text).trim().to_owned());
            if text.0.is_empty() {
                return Err(usage(&format!("{from}: the file is empty")));
            }
            Ok(Some(GivenSecret { text, from }))
        }
        (None, None) => Ok(None),
    }
}

/// Puts credentials on calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallCredentials {
    /// Marked as sensitive, so that lower layers do not print it.
    authorization: Option<MetadataValue<Ascii>>,
    account: Option<MetadataValue<Ascii>>,
    /// Whether `authorization` has a key that is a secret.
    has_secret_key: bool,
    /// What a signature is for, and the header for it.
    resource: Option<(&'static str, MetadataValue<Ascii>)>,
}

impl CallCredentials {
    /// Whether every call has a key of the account, which is not public.
    pub(crate) fn has_secret_key(&self) -> bool {
        self.has_secret_key
    }

    /// The same for calls on a queue: a signature over a queue does not contain its name.
    pub(crate) fn on_queue(self, queue: Option<&str>) -> Self {
        self.on(QUEUE_HEADER, queue)
    }

    /// The same for calls on a container or a blob, percent-encoded.
    pub(crate) fn on_blob(self, path: Option<&str>) -> Self {
        self.on(BLOB_HEADER, path)
    }

    fn on(self, header: &'static str, name: Option<&str>) -> Self {
        // The server rejects an invalid name.
        let value = name.and_then(|name| name.parse().ok());
        Self { resource: value.map(|value| (header, value)), ..self }
    }
}

impl Interceptor for CallCredentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        if let Some(value) = &self.authorization {
            metadata.insert("authorization", value.clone());
        }
        if let Some(value) = &self.account {
            metadata.insert(ACCOUNT_HEADER, value.clone());
        }
        let is_signature = |value: &MetadataValue<Ascii>| value.as_bytes().starts_with(b"Shared");
        if let Some((header, value)) = &self.resource
            && self.authorization.as_ref().is_some_and(is_signature)
        {
            metadata.insert(*header, value.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests;

//! `trestle context`: names for servers with their credentials, in a file that only its owner can read.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
};

use clap::Subcommand;
use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    credentials::CredentialArgs,
    endpoint,
    errors::{CliError, EXIT_CODES, with_help},
    files,
    flags::ClientFlags,
    output::Output,
    trust::TlsArgs,
};

mod mistake;

use mistake::mistake;

/// Commands on contexts.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum ContextCommand {
    /// Store the given --endpoint, TLS files and credentials under a name; it replaces one of that name
    ///
    /// The file is trestle/client.toml in $XDG_CONFIG_HOME or ~/.config, and only its owner can read it. The first
    /// context becomes the current one.
    Set {
        /// Name, without spaces
        #[arg(value_parser = context_name)]
        name: String,
    },
    /// Use a context where neither --context nor --endpoint is given
    Use {
        /// Name
        name: String,
    },
    /// List contexts; secrets are not shown
    List,
    /// Delete a context
    Delete {
        /// Name
        name: String,
    },
}

/// A server and the identity for it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ClientContext {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
    #[serde(flatten)]
    pub(crate) tls: TlsArgs,
    #[serde(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ContextFile {
    /// The context that is used without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, ClientContext>,
}

/// The context of this name, else the current one with its name; empty where none is stored.
pub(crate) fn selected(name: Option<&str>) -> Result<(Option<String>, ClientContext), CliError> {
    let mut file = ContextFile::read()?;
    let Some(name) = name.map(str::to_owned).or(file.current.take()) else {
        return Ok((None, ClientContext::default()));
    };
    let context = file.contexts.remove(&name).ok_or_else(|| missing(&name))?;
    Ok((Some(name), context))
}

/// Runs a command.
pub(crate) fn run(command: ContextCommand, flags: ClientFlags) -> Result<(), CliError> {
    let mut output = Output::standard(&flags.output());
    let mut file = ContextFile::read()?;
    let (text, object) = match command {
        ContextCommand::List => {
            let records: Vec<_> = file.contexts.iter().map(|it| file.record(it)).collect();
            output.records(&records, &["context", "current", "endpoint", "account", "tls"])?;
            output.unless_empty(!records.is_empty(), "no contexts")?;
            return output.finish();
        }
        ContextCommand::Set { name } => {
            let endpoint =
                flags.endpoint.map(|text| endpoint::complete(&text, flags.tls.is_given()));
            endpoint.as_deref().map(endpoint::is_encrypted).transpose()?;
            let (tls, credentials) = (flags.tls.absolute()?, flags.credentials.absolute()?);
            if endpoint.is_none() {
                credentials.reject_endpoints()?;
            }
            if endpoint.is_none() && !credentials.is_given() && !tls.is_given() {
                let rule = "nothing to store: give --endpoint, TLS files or credentials";
                return Err(CliError::Usage(format!("{rule}: context=`{name}`")));
            }
            credentials.check()?;
            tls.check()?;
            let context = ClientContext { endpoint, tls, credentials };
            file.contexts.insert(name.clone(), context);
            let has_current = file.current.is_some();
            let is_current = *file.current.get_or_insert_with(|| name.clone()) == name;
            let mut text = format!("stored context {name}");
            if !has_current {
                text.push_str("; it is now the current one");
            }
            (text, json!({ "context": name, "stored": true, "current": is_current }))
        }
        ContextCommand::Use { name } => {
            let context = file.contexts.get(&name).ok_or_else(|| missing(&name))?;
            let endpoint = context.endpoint.as_deref().unwrap_or("the default endpoint");
            let text = format!("using context {name}: {endpoint}");
            file.current = Some(name.clone());
            (text, json!({ "context": name, "current": true }))
        }
        ContextCommand::Delete { name } => {
            file.contexts.remove(&name).ok_or_else(|| missing(&name))?;
            if file.current.take_if(|current| *current == name).is_some() {
                output.note(
                    "note: it was the current one, so commands now call the default address: choose another \
                     with `trestle context use`",
                );
            }
            (format!("deleted context {name}"), json!({ "context": name, "deleted": true }))
        }
    };
    file.write()?;
    output.either(&text, &object)?;
    output.finish()
}

/// Reads the name of a new context.
fn context_name(text: &str) -> Result<String, String> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    match text.is_empty() || text.starts_with('-') || text.contains(is_odd) {
        true => Err("must have 1 character or more, no spaces, and not begin with -".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn missing(name: &str) -> CliError {
    CliError::Usage(format!("no such context, see `trestle context list`: context=`{name}`"))
}

impl ContextFile {
    fn path() -> Result<PathBuf, CliError> {
        let base = etcetera::choose_base_strategy()
            .map_err(|error| CliError::Usage(format!("no folder for contexts: {error}")))?;
        Ok(base.config_dir().join("trestle").join("client.toml"))
    }

    fn read() -> Result<Self, CliError> {
        let path = Self::path()?;
        match fs::read_to_string(&path) {
            Ok(text) => {
                let malformed = |(line, mistake): (usize, String)| {
                    let place = path.display();
                    CliError::Usage(format!("malformed contexts: {place}:{line}: {mistake}"))
                };
                match mistake(&text) {
                    Some(found) => Err(malformed(found)),
                    None => toml::from_str(&text)
                        .map_err(|error| malformed((1, error.message().to_owned()))),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(CliError::input(files::cannot("read", &path))(error)),
        }
    }

    /// Writes the file under another name first: two commands at a time leave one whole file.
    fn write(&self) -> Result<(), CliError> {
        let path = Self::path()?;
        let part = files::with_suffix(&path, &format!(".{}~", std::process::id()));
        let text = toml::to_string_pretty(self)
            .map_err(|error| CliError::Usage(format!("contexts cannot be stored: {error}")))?;
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&part, &path)
        };
        write().map_err(CliError::file(files::cannot("write", &path)))
    }

    fn record(&self, (name, context): (&String, &ClientContext)) -> serde_json::Value {
        json!({
            "context": name,
            "current": self.current.as_ref() == Some(name),
            "endpoint": context.endpoint,
            "account": context.credentials.account_name(),
            "tls": context.tls.is_given(),
        })
    }
}

#[cfg(test)]
mod tests;

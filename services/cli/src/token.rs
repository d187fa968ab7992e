//! `trestle token`: the keys of an issuer of bearer tokens on this machine, and its tokens. Nothing is sent.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use serde_json::json;
use trestle_command::{
    errors::{CliError, with_help},
    files,
    output::report_line,
    values::time_between,
};
use trestle_identity::bearer::{BEARER_BYTES_MAX, Role, SIGNING_KEY_BYTES_MAX, SigningKey};
use trestle_model::time::{Clock as _, SystemClock};

/// The file with the key that signs.
const PRIVATE_FILE: &str = "private.pem";
/// The file with the key set, for `jwks_file` of an issuer.
const PUBLIC_FILE: &str = "jwks.json";
/// The rights of the file with the key: of its owner alone.
const PRIVATE_MODE: u32 = 0o600;
/// The rights of the other.
const PUBLIC_MODE: u32 = 0o644;
/// Longest claim, in bytes: as settings have it.
const CLAIM_BYTES_MAX: usize = 1024;
/// Longest subject, in bytes: it names the user of a user delegation key.
const SUBJECT_BYTES_MAX: usize = 256;

/// Arguments of `token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// Commands on bearer tokens.
#[derive(Debug, Subcommand)]
#[command(after_help = HELP, mut_subcommands = |it| with_help(it, HELP))]
pub enum TokenCommand {
    /// Make the key of an issuer, and its key set for jwks_file of gateway.issuers
    ///
    /// Writes private.pem, which only its owner can read, and jwks.json. Existing files are not replaced.
    Keys {
        /// The folder, which is made
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Print a token
    Create(CreateTokenArgs),
}

const HELP: &str = "\
An issuer on this machine is for trials and tests: a reader of its key has every role in its
accounts. In production use the issuer of your organisation.

Exit codes:
    0  done
    1  failed: a file or the output cannot be written, or a file exists
    2  usage: a malformed flag, value or file";

/// Arguments of `token create`.
#[derive(Debug, Args)]
pub struct CreateTokenArgs {
    /// The file of the key, from `trestle token keys`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The claim iss: issuer of the section gateway.issuers.NAME
    #[arg(long, value_name = "TEXT", value_parser = claim)]
    issuer: String,
    /// The claim aud: audience of that section
    #[arg(long, value_name = "TEXT", value_parser = claim)]
    audience: String,
    /// The role: delegator, reader, contributor or owner
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Role,
    /// The claim sub: who the caller is
    #[arg(long, value_name = "NAME", value_parser = subject)]
    subject: String,
    /// How long it is valid, 1s to 7d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time_between("1s", "7d"))]
    expires_in: Duration,
}

fn claim(text: &str) -> Result<String, String> {
    let is_visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match is_visible && (1..=CLAIM_BYTES_MAX).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err(format!("must be 1 to {CLAIM_BYTES_MAX} characters of visible ASCII")),
    }
}

fn subject(text: &str) -> Result<String, String> {
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_visible && (1..=SUBJECT_BYTES_MAX).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => {
            let rule = "characters of visible ASCII, without spaces";
            Err(format!("must be 1 to {SUBJECT_BYTES_MAX} {rule}"))
        }
    }
}

fn role(text: &str) -> Result<Role, String> {
    let names = Role::ALL.map(Role::as_str).join(", ");
    Role::parse(text).ok_or_else(|| format!("must be one of {names}"))
}

/// Runs a command.
pub(crate) fn run(command: TokenCommand, is_quiet: bool) -> Result<(), CliError> {
    match command {
        TokenCommand::Keys { out } => keys(&out, is_quiet),
        TokenCommand::Create(args) => print(&args.token()?),
    }
}

fn keys(folder: &Path, is_quiet: bool) -> Result<(), CliError> {
    let failed = |error| CliError::file("cannot make a key")(io::Error::other(error));
    let private = SigningKey::generate().map_err(failed)?;
    let public = SigningKey::parse(&private).map_err(failed)?.key_set();
    fs::create_dir_all(folder).map_err(CliError::file(files::cannot("create", folder)))?;
    write_new(&folder.join(PRIVATE_FILE), PRIVATE_MODE, &private)?;
    write_new(&folder.join(PUBLIC_FILE), PUBLIC_MODE, &format!("{public}\n"))?;
    if !is_quiet {
        report_line(&format!("wrote {PRIVATE_FILE} and {PUBLIC_FILE} to {}", folder.display()));
    }
    Ok(())
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), CliError> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(CliError::file(files::cannot("create", path)))
}

impl CreateTokenArgs {
    fn token(&self) -> Result<String, CliError> {
        let bytes_max = u64::try_from(SIGNING_KEY_BYTES_MAX).unwrap_or(u64::MAX);
        let text = files::read_small(&self.key, bytes_max)?;
        let malformed =
            |error| CliError::Usage(format!("--key: {error}: file=`{}`", self.key.display()));
        let key = SigningKey::parse(&text).map_err(malformed)?;
        let now = SystemClock.now().to_unix().0;
        let lasts = i64::try_from(self.expires_in.as_secs()).unwrap_or(i64::MAX);
        let claims = json!({
            "iss": self.issuer,
            "aud": self.audience,
            "sub": self.subject,
            "roles": [self.role.as_str()],
            "iat": now,
            "nbf": now,
            "exp": now.saturating_add(lasts),
        });
        let token = key.sign(&claims);
        let token =
            token.map_err(|error| CliError::file("cannot sign")(io::Error::other(error)))?;
        if token.len() > BEARER_BYTES_MAX {
            let rule = format!("a token must have at most {BEARER_BYTES_MAX} bytes");
            return Err(CliError::Usage(format!("{rule}: bytes=`{}`", token.len())));
        }
        Ok(token)
    }
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    written.map_err(CliError::file("cannot write standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_have_the_bounds_of_the_server() {
        for (text, is_claim, is_subject) in [
            ("https://localhost/laptop".to_owned(), true, true),
            ("a b".to_owned(), true, false),
            (String::new(), false, false),
            ("a\nb".to_owned(), false, false),
            ("\u{e9}".to_owned(), false, false),
            ("x".repeat(256), true, true),
            ("x".repeat(257), true, false),
            ("x".repeat(1024), true, false),
            ("x".repeat(1025), false, false),
        ] {
            assert_eq!(claim(&text).is_ok(), is_claim, "{text}");
            assert_eq!(subject(&text).is_ok(), is_subject, "{text}");
        }
        assert_eq!(role("reader"), Ok(Role::Reader));
        let rule = "must be one of delegator, reader, contributor, owner";
        assert_eq!(role("Reader"), Err(rule.to_owned()));
    }
}

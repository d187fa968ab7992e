//! A prompt on a terminal before something is deleted.

use std::io::{self, IsTerminal as _, Write as _};

use tonic::{Code, Status};

use crate::{client::NotConnected, errors::CliError, output::escaped};

/// Fails where what is to be deleted does not exist, or no server answers: there is nothing to confirm. Any other error
/// is left to the deletion: its caller may be permitted to delete and not to read.
///
/// # Errors
/// That it is not found, or that no server answers.
pub fn require_found<T>(found: Result<T, Status>) -> Result<(), CliError> {
    match found {
        Err(status) if status.code() == Code::NotFound || NotConnected::of(&status).is_some() => {
            Err(status.into())
        }
        _ => Ok(()),
    }
}

/// Prompts for the name of what is to be deleted unless `yes`; fails with another input, or without a terminal. `doing`
/// is such as `deleting a table`.
///
/// # Errors
/// Another name, or no terminal.
pub fn confirm(yes: bool, doing: &str, kind: &str, name: &str) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::Usage(format!(
            "{doing} deletes everything in it: repeat with --yes: {kind}=`{name}`"
        )));
    }
    let (mut errors, mut answer) = (io::stderr(), String::new());
    write!(
        errors,
        "{doing} {} deletes everything in it. Type the name of the {kind} to continue: ",
        escaped(name)
    )
    .and_then(|()| errors.flush())
    .and_then(|()| io::stdin().read_line(&mut answer))
    .map_err(CliError::file("cannot read the answer"))?;
    match answer.trim() == name {
        true => Ok(()),
        false => {
            Err(CliError::Usage("nothing was deleted: the typed name is another one".to_owned()))
        }
    }
}

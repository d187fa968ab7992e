//! A prompt on a terminal before something is deleted.

use std::io::{self, IsTerminal as _, Write as _};

use crate::errors::CliError;

/// Prompts for the name of what is to be deleted; fails with another input, or without a terminal. `doing` is such as
/// `deleting a table`, `question` has no end.
pub(crate) fn confirm(doing: &str, question: &str, kind: &str, name: &str) -> Result<(), CliError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::Usage(format!(
            "{doing} deletes everything in it: repeat with --yes: {kind}=`{name}`"
        )));
    }
    let (mut errors, mut answer) = (io::stderr(), String::new());
    write!(errors, "{question}? Type the name of the {kind} to go on: ")
        .and_then(|()| errors.flush())
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(CliError::file("cannot read the answer"))?;
    match answer.trim() == name {
        true => Ok(()),
        false => Err(CliError::Usage("nothing was deleted: the name was not typed".to_owned())),
    }
}

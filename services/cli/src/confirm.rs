//! A prompt on a terminal before something is deleted.

use std::io::{self, IsTerminal as _, Write as _};

use crate::errors::CliError;

/// What is to be deleted.
pub(crate) struct Deletion<'a> {
    /// What is done to it, such as `deleting a table`.
    pub(crate) doing: &'a str,
    /// The question, without its end.
    pub(crate) question: &'a str,
    /// What it is, such as `table`.
    pub(crate) kind: &'a str,
    /// Its name, which is to be typed.
    pub(crate) name: &'a str,
}

/// Prompts for the name of what is to be deleted.
pub(crate) fn confirm(deletion: &Deletion<'_>) -> Result<(), CliError> {
    let Deletion { doing, question, kind, name } = deletion;
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::Usage(format!(
            "{doing} deletes everything in it: repeat with --yes: {kind}=`{name}`"
        )));
    }
    let read = |error| CliError::file("cannot read the answer")(error);
    let mut errors = io::stderr();
    let options = write!(errors, "{question}? Type the name of the {kind} to go on: ");
    options.and_then(|()| errors.flush()).map_err(read)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(read)?;
    if answer.trim() == *name {
        Ok(())
    } else {
        Err(CliError::Usage("nothing was deleted: the name was not typed".to_owned()))
    }
}
